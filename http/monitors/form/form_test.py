"""Test of the submitted form: one check, not stored, with the time of each phase."""

from dataclasses import dataclass

from ....probes.check.monitor_spec import Spec
from ....probes.check.result import Result, RunOutcome
from ....storage.core.instant import Instant
from ....storage.monitors.rules.monitor import MonitorDraft
from ....storage.results.queries.results import HeartbeatRow
from ...ui.failure_help import explain_trouble
from ...ui.formatting import milliseconds
from ...wire.route import Request
from ..console.last_check import PhaseBar, check_view
from ..routes.check_test import test_check


@dataclass(frozen=True, slots=True)
class FormTestResult:
    """`mark` is up, down or unknown. A local failure is unknown."""

    mark: str
    said: str
    explained: str
    bars: list[PhaseBar]
    rows: list[tuple[str, str, str]]
    failed: str = ""


async def trial_of(ask: Request, draft: MonitorDraft) -> FormTestResult:
    """Runs the test of a draft.

    Raises: Refused, if the draft is not allowed.
    """
    assert ask.scope is not None
    return _trial(await test_check(ask.context, draft, ask.scope), draft.type)


def is_testable(spec: Spec) -> bool:
    return spec.probed


def _trial(result: Result, kind: str) -> FormTestResult:
    phases = result.phases
    beat = HeartbeatRow(
        ts=Instant(result.started_at),
        up=result.outcome is RunOutcome.UP,
        latency_ms=result.latency_ms,
        code=result.code,
        msg=result.msg,
        dns_us=phases.dns_us,
        connect_us=phases.connect_us,
        tls_us=phases.tls_us,
        first_byte_us=phases.first_byte_us,
        condition=result.failed.condition if result.failed else None,
        measured=result.failed.measured if result.failed else None,
    )
    if result.outcome is RunOutcome.UNKNOWN:
        why = f"Test could not run: {explain_trouble(result.unknown_reason)}."
        return FormTestResult("unknown", "Test failed to run", why, [], [])
    view = check_view(beat, None, kind)
    took = milliseconds(result.latency_ms)
    said = f"{view.verdict}, {took}" if view.good else f"{view.verdict}: {result.msg}, {took}"
    mark = "up" if view.good else "down"
    return FormTestResult(mark, said, view.explained, view.bars, view.rows, view.failed)
