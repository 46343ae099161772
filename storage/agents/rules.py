"""Conversion of agent results: an incoming result, None, or a fault.

Invariant: a result covers a window only if the terms in force then scheduled it, the run began
within the claim period, and it used the definition in force. An instant is never moved.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...probes.check.condition import is_condition
from ...probes.check.measured_value import is_admissible
from ...probes.check.result import FailureClass
from ...probes.jobs.agent_protocol import AgentResult, window_job_id
from ..core.instant import DAY, SECOND, Instant, from_datetime
from ..core.key import MonitorKey
from ..monitors.rules.monitor import MonitorType, manner_of
from ..results.rules.incoming_result import IncomingResult, ResultSource
from ..scheduling.rules.expected_run import covered_until
from ..scheduling.rules.run_schedule import (
    LATE_ARRIVAL_US,
    ResultMode,
    RunWindow,
    ScheduleTerm,
    claimable_until,
    window_at,
)

# Largest lead of the agent's estimate of server time.
AHEAD_US: Final = 60 * SECOND
# Number of definitions, from the current one back, whose job ids are recognized.
REVISIONS_BACK: Final = 100
_CLASSES: Final = frozenset(FailureClass) - {
    FailureClass.PROBE_ERROR,
    FailureClass.PUSH_MISSED,
    FailureClass.PUSH_OVERRUN,
}
_MESSAGE_MOST: Final = 300


class AgentMonitor(msgspec.Struct, frozen=True):
    """Monitor that results are reported for."""

    org: int
    id: int
    uid: UUID
    shard: int
    region: str
    type: str
    revision: int
    interval_seconds: int
    timeout_seconds: int
    show_values: bool = False

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))


class Unstorable(msgspec.Struct, frozen=True):
    """Well-formed result that cannot be stored at its instant."""

    reason: str


def fault(item: AgentResult) -> tuple[str, str] | None:
    """Returns the faulty field and its fault; None if the item is well formed."""
    if item.ts < item.due_at:
        return "ts", "is before due_at"
    return _message_fault(item)


def unstorable(
    item: AgentResult, now: Instant, kept_days: int, hold_us: int = 0
) -> Unstorable | None:
    """Returns why no instant of the store can take the result; None if one can.

    `hold_us` is how long a result of its monitor can apply. A repair reads the results of that
    time before it, so they must still be stored too.
    """
    ts, due = from_datetime(item.ts), from_datetime(item.due_at)
    if ts > now + AHEAD_US:
        return Unstorable(f"ts: is over {AHEAD_US // SECOND} s ahead of the server's time")
    if min(due, ts) < now - kept_days * DAY:
        return Unstorable(f"ts: is older than the results that are kept ({kept_days} days)")
    if ts - hold_us < now - kept_days * DAY:
        return Unstorable(f"ts: a repair needs results that are older than {kept_days} days")
    return None


def _message_fault(item: AgentResult) -> tuple[str, str] | None:
    if item.up:
        return ("msg", "must be empty if the target is up") if item.msg else None
    if item.msg.partition(" ")[0] not in _CLASSES:
        return "msg", "begins with no failure class"
    if len(item.msg) > _MESSAGE_MOST or not item.msg.isprintable():
        return "msg", "must contain only a failure class and a host"
    return None


def arrival_of(
    item: AgentResult, monitor: AgentMonitor, terms: Sequence[ScheduleTerm], source: ResultSource
) -> IncomingResult | None:
    """Returns the result for a window, None if it covers no scheduled window."""
    due = from_datetime(item.due_at)
    window = window_at(terms, due)
    if window is None or manner_of(MonitorType(monitor.type)) is not ResultMode.PROBE:
        return None
    if from_datetime(item.ts) >= claimable_until(due, window.term.interval_us):
        return None
    revision = _revision(item, monitor, due)
    if revision is None:
        return None
    return _arrival(item, monitor, revision, source, window)


def _revision(item: AgentResult, monitor: AgentMonitor, due: Instant) -> int | None:
    """Returns the revision that was run, 0 without a job id, None for an unknown job id."""
    if isinstance(item.job_id, msgspec.UnsetType):
        return 0
    oldest = max(monitor.revision - REVISIONS_BACK, 0)
    for revision in range(monitor.revision, oldest, -1):
        if item.job_id == window_job_id(monitor.uid, due, revision):
            return revision
    return None


def arrival_beside(
    item: AgentResult, monitor: AgentMonitor, revision: int, source: ResultSource
) -> IncomingResult:
    """Returns the result of a job without a window, which was issued with `revision`."""
    return _arrival(item, monitor, revision, source, None)


def _arrival(
    item: AgentResult,
    monitor: AgentMonitor,
    revision: int,
    source: ResultSource,
    window: RunWindow | None,
) -> IncomingResult:
    timeout_us = window.term.timeout_us if window else monitor.timeout_seconds * SECOND
    condition, measured = _failed_condition(item, monitor)
    arrival = IncomingResult(
        org=monitor.org,
        monitor=monitor.id,
        shard=monitor.shard,
        ts=from_datetime(item.ts),
        up=item.up,
        latency_ms=item.latency_ms,
        code=None if isinstance(item.code, msgspec.UnsetType) else item.code,
        msg=item.msg,
        reach_us=timeout_us + LATE_ARRIVAL_US,
        source=source,
        revision=revision,
        condition=condition,
        measured=measured,
    )
    if window is None:
        return arrival
    # Backfill is always late, because the figures were computed without it.
    until = (
        Instant(0) if source is ResultSource.BACKFILL else covered_until(window, ResultMode.PROBE)
    )
    return msgspec.structs.replace(arrival, dues=(window.due,), windowed=True, covered_until=until)


def _failed_condition(item: AgentResult, monitor: AgentMonitor) -> tuple[str | None, str | None]:
    """Returns the failed condition and its value, without a value that must not be shown.

    The agent ran the definition of the job. The current setting decides what is shown.
    """
    failed = item.failed_condition
    if isinstance(failed, msgspec.UnsetType) or item.up:
        return None, None
    if item.msg.partition(" ")[0] != FailureClass.CONDITION_FAILED:
        return None, None
    if not is_condition(failed.condition):
        return None, None
    measured = None if isinstance(failed.measured, msgspec.UnsetType) else failed.measured
    if measured is not None and not is_admissible(
        failed.condition, measured, show_values=monitor.show_values
    ):
        measured = None
    return failed.condition, measured


def of_other_regions(monitors: Mapping[UUID, AgentMonitor], region: str) -> list[UUID]:
    return [uid for uid, monitor in monitors.items() if monitor.region != region]
