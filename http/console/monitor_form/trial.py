"""One check of what stands in the form, without storing anything, and where its time went."""

from dataclasses import dataclass

from ....probes.check import make_check
from ....probes.result import Outcome, Result
from ....probes.run import run
from ....probes.spec import Spec
from ....storage.rules.instant import Instant
from ....storage.transactions.monitors.draft import MonitorDraft, check_draft
from ....storage.views.results import HeartbeatRow
from ...route import Ask
from ..monitor.check import Bar, check_view
from ..words import milliseconds


@dataclass(frozen=True, slots=True)
class Trial:
    """`mark` is up, down or unknown: our own trouble is told as ours."""

    mark: str
    said: str
    bars: list[Bar]
    rows: list[tuple[str, str, str]]


async def try_out(ask: Ask, draft: MonitorDraft) -> Trial:
    """Refused where the draft may not be. A run waits for a permit, as the API's test does."""
    context = ask.context
    check_draft(draft, context.options.regions)
    check = make_check(
        draft.type,
        draft.target,
        draft.method,
        draft.config,
        draft.conditions,
        retries=draft.retries,
        timeout_seconds=draft.timeout_seconds,
        interval_seconds=draft.interval_seconds,
    )
    async with context.test_permits:
        result = await run(check, context.reach, context.clock)
    return _trial(result)


def is_testable(spec: Spec) -> bool:
    return spec.probed


def _trial(result: Result) -> Trial:
    phases = result.phases
    beat = HeartbeatRow(
        ts=Instant(result.started_at),
        up=result.outcome is Outcome.UP,
        latency_ms=result.latency_ms,
        code=result.code,
        msg=result.msg,
        dns_us=phases.dns_us,
        connect_us=phases.connect_us,
        tls_us=phases.tls_us,
        first_byte_us=phases.first_byte_us,
    )
    if result.outcome is Outcome.UNKNOWN:
        reason = (result.unknown_reason or "").replace("_", " ")
        said = f"Could not be tried for a reason of ours: {reason}"
        return Trial("unknown", said, [], [])
    view = check_view(beat, None)
    took = milliseconds(result.latency_ms)
    said = f"{view.verdict}, {took}" if view.good else f"{view.verdict}: {result.msg}, {took}"
    return Trial("up" if view.good else "down", said, view.bars, view.rows)
