"""Runner: performs a check with one deadline over all attempts, and returns a `Result`.

A failure of the target is a value. A local failure gives an unknown result with its reason: dead
resolver, no network, stalled event loop, or a bug, for example. A local failure is never DOWN.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

import trio

from .check.check import Check
from .check.condition import unparse
from .check.condition_evaluation import ProbeValues
from .check.cpu_meter import CpuMeter, metered
from .check.failure import LocalFailure, TargetFailure
from .check.observation import Observation
from .check.phase_timer import Stopwatch, overdue
from .check.result import (
    NETWORK_CLASSES,
    FailedCondition,
    FailureClass,
    Phases,
    Result,
    RunOutcome,
    UnknownReason,
    message,
)
from .kinds.condition_worker import first_false, hold, measure
from .net.egress import Egress
from .probe_kind import ProbeKind, kind_of, prepare

# If this process delayed a run for longer, the result is unknown: the event loop stalled, or the
# run waited for its turn. For a run that is not up, waits for a lock or for a core count too. One
# in which the deadline passes makes the result unknown at any length.
STALL_US_MOST = 1_000_000
# From here on the stall affects the latency, and the result is marked as lagged.
LAGGED_US = 100_000
PAUSE_SECONDS_MOST = 1.0

# Failures that conditions on [CONNECTED] can expect: a closed port may be the desired state.
_UNCONNECTED = frozenset(
    {
        FailureClass.CONNECT_REFUSED,
        FailureClass.CONNECT_TIMEOUT,
        FailureClass.CONNECT_ERROR,
    }
)


@dataclass(slots=True)
class _End:
    """End of an attempt. It is up if neither `failure` nor `unknown` is set.

    `expected` is a connection failure that the conditions expect.
    """

    phases: Phases
    code: int | None = None
    failure: FailureClass | None = None
    unknown: UnknownReason | None = None
    bug: str | None = None
    place: str = ""
    failed: FailedCondition | None = None
    expected: FailureClass | None = None
    certificate: bytes | None = None

    @property
    def up(self) -> bool:
        return self.failure is None and self.unknown is None


async def run(check: Check, reach: Egress, now: Callable[[], int], org: int = 0) -> Result:
    """Runs a check once, with its retries, within its timeout and its CPU budget.

    `now` returns µs since the epoch. `org` is the organization that the CPU is charged to; an
    agent, which does not know it, charges the monitor.
    `reach.lag.watch` must be running.
    Raises: only cancellation.
    """
    kind = kind_of(check.type)
    if kind is not None:
        await prepare(kind, check)
    began_us = reach.lag.begin()
    try:
        return await _run(kind, check, reach, now, CpuMeter(reach.cpu, org), began_us)
    finally:
        reach.lag.end()


async def _run(
    kind: ProbeKind | None,
    check: Check,
    reach: Egress,
    now: Callable[[], int],
    meter: CpuMeter,
    began_us: int,
) -> Result:
    started_at = now()
    if kind is None:
        end = _End(Phases(), unknown=UnknownReason.UNKNOWN_KIND)
    else:
        end = await metered(_attempts(kind, check, reach, now, meter), meter)
    # If a cancellation moved the deadline, the timeout is not a result of the target.
    await trio.lowlevel.checkpoint_if_cancelled()
    stalled_us = max(reach.lag.stalled_since(began_us), meter.waited_us)
    if not end.up:
        # A target that is up has answered, however long its answer waited for a thread.
        stalled_us = max(stalled_us, meter.held_up_us)
    if end.failure is FailureClass.RESPONSE_TOO_EXPENSIVE:
        # The budget counts CPU time, so delays of this process did not use it up.
        pass
    elif stalled_us > STALL_US_MOST:
        end.failure, end.unknown = None, UnknownReason.LOOP_STALLED
    elif (end.failure or end.expected) in NETWORK_CLASSES and await _offline(reach):
        end.failure, end.unknown = None, UnknownReason.PROBER_OFFLINE
    lagged = max(stalled_us, meter.held_up_us) > LAGGED_US
    return _result(check, started_at, end, meter.used_ns // 1_000, lagged=lagged)


async def _offline(reach: Egress) -> bool:
    if reach.connectivity is None:
        return False
    return not await reach.connectivity.online(since=monotonic())


async def _attempts(
    kind: ProbeKind, check: Check, reach: Egress, now: Callable[[], int], meter: CpuMeter
) -> _End:
    """Repeats attempts until one is up or the egress policy blocks it. The last one counts.

    The deadline or the end of the CPU budget between two attempts ends the run with the result of
    the previous attempt.
    """
    end: _End | None = None
    watch = Stopwatch()
    deadline = trio.current_time() + check.timeout_seconds
    with trio.CancelScope(deadline=deadline) as scope:
        meter.scope = scope
        for left in range(check.retries, -1, -1):
            end, watch = None, Stopwatch()
            end = await _attempt(kind, check, reach, watch, now)
            if end.up or left == 0 or end.failure is FailureClass.TARGET_BLOCKED:
                break
            pause = (deadline - trio.current_time()) / (2 * left)
            await trio.sleep(max(0.0, min(PAUSE_SECONDS_MOST, pause)))
    if end is None and meter.is_exhausted:
        end = _End(watch.read(), failure=FailureClass.RESPONSE_TOO_EXPENSIVE)
    elif end is None and meter.was_cut:
        end = _End(watch.read(), unknown=UnknownReason.LOOP_STALLED)
    elif end is None:
        end = _timed_out(check, watch)
    end.place, end.certificate = watch.place, watch.certificate
    return end


async def _attempt(
    kind: ProbeKind, check: Check, reach: Egress, watch: Stopwatch, now: Callable[[], int]
) -> _End:
    try:
        seen = await kind.probe(check, reach, watch)
        phases = watch.read()
        if seen.took_us is not None:
            phases = replace(phases, total_us=seen.took_us)
        if seen.cert_ends_at is not None:
            seen.facts.cert_expiry_us = seen.cert_ends_at - now()
        if seen.domain_ends_at is not None:
            seen.facts.domain_expiry_us = seen.domain_ends_at - now()
        if not check.conditions:
            return _End(phases, seen.code, _result_of(seen))
        seen.facts.response_time_ms = phases.total_us // 1_000
        end = _End(phases, seen.code)
        await _evaluate_conditions(check, seen.facts, reach, end)
        return end
    except TargetFailure as failed:
        return _unless_wanted(check, _End(watch.read(), failed.code, failed.failure))
    except LocalFailure as trouble:
        return _End(watch.read(), unknown=trouble.reason)
    except Exception as error:
        return _End(watch.read(), unknown=UnknownReason.PROBE_BUG, bug=_place_of(error))


def _timed_out(check: Check, watch: Stopwatch) -> _End:
    late, phases = overdue(watch), watch.read()
    if isinstance(late, LocalFailure):
        return _End(phases, unknown=late.reason)
    return _unless_wanted(check, _End(phases, failure=late.failure))


def _result_of(seen: Observation) -> FailureClass | None:
    """Returns the verdict of the probe, for a check without conditions."""
    left_us, least_us = seen.facts.cert_expiry_us, seen.cert_left_us_least
    if left_us is not None and least_us is not None and left_us < least_us:
        return FailureClass.TLS_EXPIRING
    left_us, least_us = seen.facts.domain_expiry_us, seen.domain_left_us_least
    if left_us is not None and least_us is not None and left_us < least_us:
        return FailureClass.DOMAIN_EXPIRING
    return seen.failure


async def _evaluate_conditions(check: Check, facts: ProbeValues, reach: Egress, end: _End) -> None:
    """Sets the failure of `end`, and the condition that was false."""
    condition = await first_false(check.conditions, facts, reach)
    if facts.exhausted:
        end.failure = FailureClass.RESPONSE_TOO_LARGE
    elif condition is not None:
        end.failure = FailureClass.CONDITION_FAILED
        measured = await measure(condition, facts, check, reach)
        end.failed = FailedCondition(condition.text or unparse(condition), measured)


def _unless_wanted(check: Check, end: _End) -> _End:
    """Clears a connection failure if the conditions expect it (`[CONNECTED] == false`)."""
    if end.failure in _UNCONNECTED and check.wants("CONNECTED"):
        response_time_ms = end.phases.total_us // 1_000
        facts = ProbeValues(connected=False, response_time_ms=response_time_ms)
        if end.phases.connect_us is None and hold(check.conditions, facts):
            end.failure, end.expected = None, end.failure
    return end


def _result(check: Check, started_at: int, end: _End, cpu_us: int, *, lagged: bool) -> Result:
    place = end.place or check.host
    if end.up:
        outcome, said = RunOutcome.UP, ""
    elif end.unknown is not None:
        outcome, said = RunOutcome.UNKNOWN, message(FailureClass.PROBE_ERROR, place)
    else:
        assert end.failure is not None
        outcome, said = RunOutcome.DOWN, message(end.failure, place)
    return Result(
        started_at=started_at,
        outcome=outcome,
        latency_ms=end.phases.total_us // 1_000,
        code=end.code,
        msg=said,
        phases=end.phases,
        unknown_reason=end.unknown,
        lagged=lagged,
        bug=end.bug,
        failed=end.failed if end.failure is FailureClass.CONDITION_FAILED else None,
        certificate=end.certificate,
        cpu_us=cpu_us,
    )


def _place_of(error: Exception) -> str:
    """Returns the exception's type and location, without its text.

    The text could contain observed content.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "nowhere"
    return f"{type(error).__name__} at {place}"
