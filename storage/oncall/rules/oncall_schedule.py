"""Rotation of an on-call schedule.

Invariant: exactly one channel is on call at every instant.

Shifts follow each other from the anchor in both directions, so that instants before the anchor
have a shift too. Without a timezone, a shift has a fixed elapsed length. With a timezone, hand-offs
occur at the same local times. The shift in which clocks go forward is shorter by that change, and
the shift in which they go back is longer. A hand-off at a skipped local time occurs when the clocks
go forward; at a repeated local time, at its first occurrence. An override takes precedence; of
several, the newest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from ...core.instant import DAY, HOUR, SECOND, Instant, from_datetime, is_timezone, to_datetime

SHIFT_SECONDS = (3_600, 366 * 86_400)
PARTICIPANTS = (1, 100)
OVERRIDE_LONGEST_US = 366 * 24 * HOUR
# Limits of anchors and overrides, far from the limits of `datetime`.
EARLIEST_YEAR, LATEST_YEAR = 1970, 2200
_EARLIEST = from_datetime(datetime(EARLIEST_YEAR, 1, 1, tzinfo=UTC))
_LATEST = from_datetime(datetime(LATEST_YEAR, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class OnCallSchedule:
    """Rotation of `participants` (channel ids). An empty `timezone` counts elapsed time."""

    anchor_at: Instant
    shift_us: int
    participants: tuple[int, ...]
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class OnCallOverride:
    """Override of a schedule. `number` ascends in the order of creation."""

    number: int
    channel: int
    starts_at: Instant
    ends_at: Instant


@dataclass(frozen=True, slots=True)
class Duty:
    """Span [from_at, until) in which one channel is on call, by `override` if it is set."""

    channel: int
    from_at: Instant
    until: Instant
    override: OnCallOverride | None = None


def on_call(roster: OnCallSchedule, overrides: Sequence[OnCallOverride], at: Instant) -> Duty:
    """Returns the duty at an instant, up to the next hand-off or edge of any override."""
    shift = _shift_number(roster, at)
    from_at, until = hand_off(roster, shift), hand_off(roster, shift + 1)
    holding = _holding(overrides, at)
    for override in overrides:
        for edge in (override.starts_at, override.ends_at):
            if from_at < edge <= at:
                from_at = edge
            elif at < edge < until:
                until = edge
    if holding is not None:
        return Duty(holding.channel, from_at, until, holding)
    turn = roster.participants[shift % len(roster.participants)]
    return Duty(turn, from_at, until)


def stretch(roster: OnCallSchedule, overrides: Sequence[OnCallOverride], at: Instant) -> Duty:
    """Returns the whole span of the shift or override at an instant.

    Overrides cut a shift, and newer overrides cut an override. The edges of the span are the
    instants at which a hand-off, a new override or the end of one changes the duty.
    """
    holding = _holding(overrides, at)
    if holding is None:
        shift = _shift_number(roster, at)
        from_at, until = hand_off(roster, shift), hand_off(roster, shift + 1)
        channel = roster.participants[shift % len(roster.participants)]
    else:
        from_at, until, channel = holding.starts_at, holding.ends_at, holding.channel
    for other in overrides:
        # No newer override is active at this instant: it has ended or has not started.
        if holding is None or other.number > holding.number:
            if other.ends_at <= at:
                from_at = max(from_at, other.ends_at)
            else:
                until = min(until, other.starts_at)
    return Duty(channel, from_at, until, holding)


def roster_fault(
    anchor_at: Instant, shift_seconds: int, participants: int, timezone: str
) -> tuple[str, str] | None:
    """Returns the invalid field of a schedule and its rule. `participants` is their number."""
    if not SHIFT_SECONDS[0] <= shift_seconds <= SHIFT_SECONDS[1]:
        return "shift_seconds", f"must be {SHIFT_SECONDS[0]} to {SHIFT_SECONDS[1]} seconds"
    if not PARTICIPANTS[0] <= participants <= PARTICIPANTS[1]:
        return "participants", f"must have {PARTICIPANTS[0]} to {PARTICIPANTS[1]} entries"
    if timezone and not is_timezone(timezone):
        return "timezone", "is not an IANA time zone"
    fault = _instant_fault(anchor_at)
    return ("anchor_at", fault) if fault else None


def override_fault(starts_at: Instant, ends_at: Instant) -> tuple[str, str] | None:
    """Returns the invalid field of an override's span and its rule."""
    for field, at in (("starts_at", starts_at), ("ends_at", ends_at)):
        fault = _instant_fault(at)
        if fault:
            return field, fault
    if ends_at <= starts_at:
        return "ends_at", "must be after starts_at"
    if ends_at - starts_at > OVERRIDE_LONGEST_US:
        return "ends_at", f"must be at most {OVERRIDE_LONGEST_US // DAY} days after starts_at"
    return None


def _instant_fault(at: Instant) -> str | None:
    if _EARLIEST <= at < _LATEST:
        return None
    return f"must lie in the years {EARLIEST_YEAR} to {LATEST_YEAR - 1}"


def duties(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], from_at: Instant, until: Instant
) -> Iterator[Duty]:
    """Yields the duties between two instants in order and without gaps; merges equal ones."""
    last: Duty | None = None
    at = from_at
    while at < until:
        duty = on_call(roster, overrides, at)
        ends = min(duty.until, until)
        if last is not None and (last.channel, last.override) == (duty.channel, duty.override):
            last = Duty(last.channel, last.from_at, ends, last.override)
        else:
            if last is not None:
                yield last
            last = Duty(duty.channel, at, ends, duty.override)
        at = ends
    if last is not None:
        yield last


def hand_off(roster: OnCallSchedule, number: int) -> Instant:
    """Returns the start of shift `number`. Shift 0 starts at the anchor."""
    if not roster.timezone:
        return Instant(roster.anchor_at + number * roster.shift_us)
    zone = _zone(roster.timezone)
    anchor = to_datetime(roster.anchor_at).astimezone(zone).replace(tzinfo=None)
    return _instant_of(anchor + timedelta(microseconds=number * roster.shift_us), zone)


def _holding(overrides: Sequence[OnCallOverride], at: Instant) -> OnCallOverride | None:
    found = [override for override in overrides if override.starts_at <= at < override.ends_at]
    return max(found, key=lambda override: override.number, default=None)


def _shift_number(roster: OnCallSchedule, at: Instant) -> int:
    """Returns the number of the last shift that has started.

    Local time gives the number. The loop corrects it for shifts that started before the clocks
    went back.
    """
    if not roster.timezone:
        return (at - roster.anchor_at) // roster.shift_us
    zone = _zone(roster.timezone)
    anchor, shows = (
        to_datetime(instant).astimezone(zone).replace(tzinfo=None)
        for instant in (roster.anchor_at, at)
    )
    number = (shows - anchor) // timedelta(microseconds=roster.shift_us)
    while hand_off(roster, number + 1) <= at:
        number += 1
    return number


def _instant_of(local: datetime, zone: ZoneInfo) -> Instant:
    """Returns the first instant with this local time; for a skipped time, the clock change."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return from_datetime(first)
    # Skipped time: the instants for both folds enclose the clock change.
    low, high = sorted(
        from_datetime(local.replace(tzinfo=zone, fold=fold).astimezone(UTC)) // SECOND
        for fold in (0, 1)
    )
    high += 1
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
    return Instant(high * SECOND)


def _offset(second: int, zone: ZoneInfo) -> timedelta | None:
    return to_datetime(Instant(second * SECOND)).astimezone(zone).utcoffset()


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
