"""What becomes of every run that was due: one verdict a window, and one way to mend it.

A row is written once with its verdict. The only change that it may ever see is from `missed` to
`covered_late`, when a result turns up that our own trouble had held back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...core.instant import Instant
from .run_schedule import (
    LATE_ARRIVAL_US,
    ResultMode,
    RunWindow,
    ScheduleTerm,
    result_expected_by,
    sealing_at,
    spans,
)


class Verdict(StrEnum):
    RESERVED = "reserved"
    COVERED = "covered"
    COVERED_LATE = "covered_late"
    WITHHELD = "withheld"
    MISSED = "missed"


class MissedReason(StrEnum):
    """Where a run stopped."""

    NEVER_PUBLISHED = "never_published"
    NEVER_CLAIMED = "never_claimed"
    NEVER_FINISHED = "never_finished"
    NO_HEARTBEAT = "no_heartbeat"
    NOT_LISTENING = "not_listening"


class WithheldReason(StrEnum):
    """Why a run was not to be; the last four are the canary's refusals of a dispatch."""

    PAUSED = "paused"
    MAINTENANCE = "maintenance"
    AWAITING_FIRST = "awaiting_first"
    CHILDREN_UNKNOWN = "children_unknown"
    REGION_SATURATED = "region_saturated"
    ALREADY_IN_FLIGHT = "already_in_flight"
    NO_CAPABLE_RUNNER = "no_capable_runner"
    CAPABILITY_MISMATCH = "capability_mismatch"


@dataclass(frozen=True, slots=True)
class VerdictWithReason:
    """A verdict with its reason; the reason is there exactly for missed and withheld."""

    verdict: Verdict
    reason: MissedReason | WithheldReason | None = None


COVERED_LATE = VerdictWithReason(Verdict.COVERED_LATE)


def missed(reason: MissedReason) -> VerdictWithReason:
    return VerdictWithReason(Verdict.MISSED, reason)


def withheld(reason: WithheldReason) -> VerdictWithReason:
    return VerdictWithReason(Verdict.WITHHELD, reason)


def verdict_of_result(
    in_time_until: Instant, committed_at: Instant, *, history: bool = False, backfill: bool = False
) -> Verdict:
    """What a result makes of its window: covered in time, or covered late.

    `in_time_until` is the window's `covered_until`. History and backfill are late whatever the
    clock says: the figures had to do without them.
    """
    late = history or backfill or committed_at > in_time_until
    return Verdict.COVERED_LATE if late else Verdict.COVERED


def covered_until(window: RunWindow, manner: ResultMode) -> Instant:
    """The last instant at which a commit still counts as in time."""
    if manner is ResultMode.PUSH:
        return result_expected_by(window, manner)
    return min(Instant(window.due + window.term.interval_us), sealing_at(window, manner))


def withheld_at_reservation(window: RunWindow, *, in_maintenance: bool) -> VerdictWithReason | None:
    """Why a window is not run at all, which is known the moment it is due; None: it is to run.

    A pause is the stronger reason: it would have stood without the maintenance too. A push window
    waits for its end instead, see `push.ruling`.
    """
    if not window.term.enabled:
        return withheld(WithheldReason.PAUSED)
    if in_maintenance:
        return withheld(WithheldReason.MAINTENANCE)
    return None


def lag_us(timeout_us: int, manner: ResultMode) -> int:
    """How far behind the fence a result may lie and still be live."""
    return LATE_ARRIVAL_US + (timeout_us if manner is ResultMode.PROBE else 0)


def is_history(instant: Instant, fence: Instant, timeout_us: int, manner: ResultMode) -> bool:
    """Whether a result commits after what it belongs to was sealed: it restates, it moves no state.

    `fence` is where the shard's last sealing fenced, `timeout_us` that of the run itself. A
    push_missed is never asked: it is folded whenever it is found.
    """
    return instant < fence - lag_us(timeout_us, manner)


def watermark(
    terms: Sequence[ScheduleTerm], fences: Mapping[int, Instant], manner: ResultMode
) -> Instant | None:
    """The instant before which all that a monitor measured is sealed; None before any term.

    Each term counts that may still have unsealed results, under the fence of its own shard: so
    after a change of region the old region's fence holds the mark back until that term's last
    results are sealed. A term can hold it back only to its own beginning, which is why a longer
    time-out never moves it backwards. A shard without a fence has sealed nothing.
    """
    marks: list[Instant] = []
    for term, end in spans(terms):
        fence = fences.get(term.shard)
        behind_us = lag_us(term.timeout_us, manner)
        if fence is None or end >= fence - behind_us:
            reached = term.from_ if fence is None else fence - behind_us
            marks.append(Instant(max(term.from_, reached)))
    return min(marks, default=None)


def least_watermark(watermarks: Iterable[Instant | None]) -> Instant | None:
    """Of a composite, its children's; None where one has sealed nothing, or there is none."""
    marks = list(watermarks)
    known = [mark for mark in marks if mark is not None]
    return min(known) if known and len(known) == len(marks) else None
