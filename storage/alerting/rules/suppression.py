"""Whether people are to be told now that a monitor is down; and if not, why not yet.

It keeps true: what follows from a cause is not told beside it. While something that a monitor
depends on is known to be down, or its last result failed, or it is in maintenance, the monitor is
silent; unknown and paused explain nothing and silence nothing. Before an onset is told, whatever it
depends on was looked at after the failure, or was waited for in vain. What is told after a silence
was seen to be down since that silence ended. Waiting is bounded, and ends in telling, unless
everything is silenced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey

# Beyond the time-outs of the checks that are waited for.
PATIENCE_US: Final = 5 * SECOND


class SuppressionReason(StrEnum):
    WAITING = "waiting"
    RECHECKING = "rechecking"
    DEPENDENCY = "dependency"
    MAINTENANCE = "maintenance"
    PAUSED = "paused"
    UNKNOWN = "unknown"
    # A service speaks for it: of what this file knows, nothing is in the way of telling.
    DELEGATED = "delegated"
    # Nothing is in the way but that nobody is to be told of anything.
    SILENCED = "silenced"


@dataclass(frozen=True, slots=True)
class MonitorCondition:
    """The monitor itself. `is_down` is its folded state while a result holds; `probed` says that
    it can be run at once."""

    key: MonitorKey
    enabled: bool
    in_maintenance: bool
    is_down: bool
    probed: bool
    last_at: Instant
    timeout_us: int


@dataclass(frozen=True, slots=True)
class Upstream:
    """Something that it depends on, directly or not; or, with `counts` false, a member of a
    composite among those, which is only looked at for what is made of it.

    `failing`: known to be down, or its last result, which still holds, failed. `unsettled`: a
    composite whose members have changed since it was looked at.
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
    """Why nobody is told yet. With a wait, a result at or after `since` is its answer, and at
    `until` it ends without one. Left to a service it has been since `since`."""

    by: SuppressionReason
    since: Instant | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """`hold` None: tell now. `ask`: whom to run once more, at once."""

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
    """What is to become of an outage that nobody was told of; `before` is what held it so far.
    `is_silenced`: nobody is told of anything now."""
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
            # It was seen to fail while its cause was there: seen again, it is its own trouble.
            until = Instant(now + own.timeout_us + PATIENCE_US)
            return Judgement(Suppression(SuppressionReason.RECHECKING, now, until), (own.key,))
        case SuppressionReason.DELEGATED:
            # Its causes were looked at before it was left to the service.
            return TELL
        case SuppressionReason.SILENCED if is_silenced:
            # They are looked at once more when somebody would hear of it.
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
