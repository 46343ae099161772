"""Suppression of outages: decides when a down monitor can be announced.

Invariant: an outage is not announced in addition to its cause. A monitor is suppressed while an
upstream is known to be down, has a failed last result, or is in maintenance. An unknown or paused
upstream suppresses no outage. Before an onset is announced, every upstream is checked after the
failure, or its wait has expired. After a suppression, a later result must show the failure again.
Every wait is bounded and ends with the announcement, except while muted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey

# Added to the longest timeout of the checks that are waited for.
PATIENCE_US: Final = 5 * SECOND


class SuppressionReason(StrEnum):
    WAITING = "waiting"
    RECHECKING = "rechecking"
    DEPENDENCY = "dependency"
    MAINTENANCE = "maintenance"
    PAUSED = "paused"
    UNKNOWN = "unknown"
    # A service pages for the monitor; no other reason applies.
    DELEGATED = "delegated"
    # A mute or the global silence is in force; no other reason applies.
    SILENCED = "silenced"


@dataclass(frozen=True, slots=True)
class MonitorCondition:
    """Condition of the monitor itself.

    `is_down` is its folded state while the result is fresh; `probed`: an extra run is possible.
    """

    key: MonitorKey
    enabled: bool
    in_maintenance: bool
    is_down: bool
    probed: bool
    last_at: Instant
    timeout_us: int


@dataclass(frozen=True, slots=True)
class Upstream:
    """Direct or indirect upstream of the monitor.

    Args:
        counts: False for a child of a composite upstream, which is only checked for the composite.
        failing: known to be down, or the last result is fresh and failed.
        unsettled: a composite with children that changed since its last evaluation.
    """

    key: MonitorKey
    counts: bool
    failing: bool
    in_maintenance: bool
    probed: bool
    last_at: Instant | None
    timeout_us: int
    unsettled: bool = False

    @property
    def silences(self) -> bool:
        return self.counts and (self.failing or self.in_maintenance)

    def is_older_than(self, instant: Instant) -> bool:
        return self.probed and (self.last_at is None or self.last_at < instant)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Reason why an outage is not announced yet.

    A wait is answered by a result at or after `since` and expires at `until`. For a delegated
    outage, `since` is the start of the delegation.
    """

    by: SuppressionReason
    since: Instant | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Decision about an outage. It is announced if `hold` is None; `ask` lists extra runs."""

    hold: Suppression | None
    ask: tuple[MonitorKey, ...] = ()


TELL: Final = Judgement(None)


def decide_suppression(
    own: MonitorCondition,
    upstreams: Sequence[Upstream],
    before: Suppression | None,
    now: Instant,
    *,
    is_silenced: bool = False,
) -> Judgement:
    """Decides about an outage that is not announced.

    Args:
        before: the suppression so far.
        is_silenced: a mute or the global silence is in force.
    """
    found = _decided(own, upstreams, before, now, is_silenced=is_silenced)
    return _held(SuppressionReason.SILENCED) if is_silenced and found.hold is None else found


def _decided(
    own: MonitorCondition,
    upstreams: Sequence[Upstream],
    before: Suppression | None,
    now: Instant,
    *,
    is_silenced: bool,
) -> Judgement:
    if not own.enabled:
        return _held(SuppressionReason.PAUSED)
    if own.in_maintenance:
        return _held(SuppressionReason.MAINTENANCE)
    if not own.is_down:
        return _held(SuppressionReason.UNKNOWN)
    if any(upstream.silences for upstream in upstreams):
        return _held(SuppressionReason.DEPENDENCY)
    match before.by if before else None:
        case SuppressionReason.DEPENDENCY if own.probed:
            # The failure dates from the time of the cause. A failed recheck is the monitor's own.
            until = Instant(now + own.timeout_us + PATIENCE_US)
            return Judgement(Suppression(SuppressionReason.RECHECKING, now, until), (own.key,))
        case SuppressionReason.DELEGATED:
            # The upstreams were checked before the delegation.
            return TELL
        case SuppressionReason.SILENCED if is_silenced:
            # The upstreams are checked again when the silence ends.
            return TELL
        case SuppressionReason.RECHECKING:
            return _still_rechecking(own, before, now)
        case SuppressionReason.WAITING:
            return _still_waiting(upstreams, before, now)
    return _at_onset(own, upstreams, now)


def _held(by: SuppressionReason) -> Judgement:
    return Judgement(Suppression(by))


def _at_onset(own: MonitorCondition, upstreams: Sequence[Upstream], now: Instant) -> Judgement:
    asked = [upstream for upstream in upstreams if upstream.is_older_than(own.last_at)]
    if not asked and not any(upstream.unsettled for upstream in upstreams):
        return TELL
    longest_us = max((upstream.timeout_us for upstream in asked), default=0)
    until = Instant(now + longest_us + PATIENCE_US)
    ask = tuple(sorted({upstream.key for upstream in asked}))
    return Judgement(Suppression(SuppressionReason.WAITING, own.last_at, until), ask)


def _still_waiting(
    upstreams: Sequence[Upstream], before: Suppression | None, now: Instant
) -> Judgement:
    if before is None or before.since is None or before.until is None or now >= before.until:
        return TELL
    since = before.since
    open_ = any(upstream.is_older_than(since) or upstream.unsettled for upstream in upstreams)
    return Judgement(before) if open_ else TELL


def _still_rechecking(own: MonitorCondition, before: Suppression | None, now: Instant) -> Judgement:
    if before is None or before.since is None or before.until is None or now >= before.until:
        return TELL
    return Judgement(before) if own.last_at < before.since else TELL
