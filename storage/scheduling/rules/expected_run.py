"""Verdicts of the expected-run ledger: one per window.

Invariant: a row is written once, with its verdict. The only later change is from `missed` to
`covered_late`, when a delayed result arrives.
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
    """Stage that a missed run did not reach."""

    NEVER_PUBLISHED = "never_published"
    NEVER_CLAIMED = "never_claimed"
    NEVER_FINISHED = "never_finished"
    NO_HEARTBEAT = "no_heartbeat"
    NOT_LISTENING = "not_listening"


class WithheldReason(StrEnum):
    """Reason why a run was not required. The last four are refusals of canary dispatch."""

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
    """Verdict with its reason. Only `missed` and `withheld` have a reason."""

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
    """Returns the verdict of a window that has a result: covered or covered late.

    `in_time_until` is the window's `covered_until`. History and backfill are always late, because
    the figures were computed without them.
    """
    late = history or backfill or committed_at > in_time_until
    return Verdict.COVERED_LATE if late else Verdict.COVERED


def covered_until(window: RunWindow, manner: ResultMode) -> Instant:
    """Returns the last commit instant that counts as in time."""
    if manner is ResultMode.PUSH:
        return result_expected_by(window, manner)
    return min(Instant(window.due + window.term.interval_us), sealing_at(window, manner))


def withheld_at_reservation(window: RunWindow, *, in_maintenance: bool) -> VerdictWithReason | None:
    """Returns why a window is withheld at reservation, or None if it will run.

    A pause takes precedence over maintenance, because it applies without the maintenance too.
    Maintenance of a push window is decided at the window's end, see `push_deadline`.
    """
    if not window.term.enabled:
        return withheld(WithheldReason.PAUSED)
    if in_maintenance:
        return withheld(WithheldReason.MAINTENANCE)
    return None


def lag_us(timeout_us: int, manner: ResultMode) -> int:
    """Returns the largest age of a live result before the fence, in µs."""
    return LATE_ARRIVAL_US + (timeout_us if manner is ResultMode.PROBE else 0)


def is_history(instant: Instant, fence: Instant, timeout_us: int, manner: ResultMode) -> bool:
    """Returns whether a result commits after its time was sealed.

    Such a result repairs figures and changes no state. `fence` is the fence of the shard's last
    sealing, and `timeout_us` is the timeout of the run. Not used for `push_missed`, which is always
    folded.
    """
    return instant < fence - lag_us(timeout_us, manner)


def watermark(
    terms: Sequence[ScheduleTerm], fences: Mapping[int, Instant], manner: ResultMode
) -> Instant | None:
    """Returns the instant before which a monitor's results are sealed; None before any term.

    Each term that may have unsealed results counts, under the fence of its own shard. After a
    change of region, the old region's fence therefore delays the watermark until that term's last
    results are sealed. A term delays it at most to the start of the term, so a longer timeout never
    moves it backwards. A shard without a fence has sealed no results.
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
    """Returns the watermark of a composite from those of its children.

    Returns None without children or if a child has no watermark.
    """
    marks = list(watermarks)
    known = [mark for mark in marks if mark is not None]
    return min(known) if known and len(known) == len(marks) else None
