"""Who is on call: at every instant exactly one of a schedule's participants.

Shifts follow each other from the anchor in both directions, so that instants before it have an
answer too. Without a timezone a shift has its length in elapsed time. With one, hand-offs stand at
the same local times whatever the clocks do: the shift in which they go forward is an hour shorter,
the one in which they go back an hour longer. A local time that is skipped is handed off when the
clocks have gone forward; one that comes twice, at its first coming. An override wins, the newest
where several do.
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
# Anchors and overrides: wide enough for everybody, and nowhere near what cannot be reckoned with.
EARLIEST_YEAR, LATEST_YEAR = 1970, 2200
_EARLIEST = from_datetime(datetime(EARLIEST_YEAR, 1, 1, tzinfo=UTC))
_LATEST = from_datetime(datetime(LATEST_YEAR, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class OnCallSchedule:
    """`participants` take turns; keys of channels. `timezone` empty counts elapsed time."""

    anchor_at: Instant
    shift_us: int
    participants: tuple[int, ...]
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class OnCallOverride:
    """`number` rises with each that is made."""

    number: int
    channel: int
    starts_at: Instant
    ends_at: Instant


@dataclass(frozen=True, slots=True)
class Duty:
    """[from_at, until) in which one channel is on call; `override` is what puts it there."""

    channel: int
    from_at: Instant
    until: Instant
    override: OnCallOverride | None = None


def on_call(roster: OnCallSchedule, overrides: Sequence[OnCallOverride], at: Instant) -> Duty:
    """Who is on call at that instant, since when, and until when that stays so."""
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
    """The whole of one shift's or one override's time around an instant in which nothing newer
    holds: what a hand-off, a new override or the end of one begins and ends."""
    holding = _holding(overrides, at)
    if holding is None:
        shift = _shift_number(roster, at)
        from_at, until = hand_off(roster, shift), hand_off(roster, shift + 1)
        channel = roster.participants[shift % len(roster.participants)]
    else:
        from_at, until, channel = holding.starts_at, holding.ends_at, holding.channel
    for other in overrides:
        # None of the newer ones holds at this instant: each is over by then, or still to come.
        if holding is None or other.number > holding.number:
            if other.ends_at <= at:
                from_at = max(from_at, other.ends_at)
            else:
                until = min(until, other.starts_at)
    return Duty(channel, from_at, until, holding)


def roster_fault(
    anchor_at: Instant, shift_seconds: int, participants: int, timezone: str
) -> tuple[str, str] | None:
    """The field and the rule that a schedule breaks, given how many take part."""
    if not SHIFT_SECONDS[0] <= shift_seconds <= SHIFT_SECONDS[1]:
        return "shift_seconds", f"must be {SHIFT_SECONDS[0]} to {SHIFT_SECONDS[1]} seconds"
    if not PARTICIPANTS[0] <= participants <= PARTICIPANTS[1]:
        return "participants", f"must have {PARTICIPANTS[0]} to {PARTICIPANTS[1]} entries"
    if timezone and not is_timezone(timezone):
        return "timezone", "is no IANA time zone"
    fault = _instant_fault(anchor_at)
    return ("anchor_at", fault) if fault else None


def override_fault(starts_at: Instant, ends_at: Instant) -> tuple[str, str] | None:
    """The field and the rule that an override's span breaks."""
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
    """All between two instants, in order and without a gap; equal neighbours are one."""
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
    """When shift `number` begins; shift 0 begins at the anchor."""
    if not roster.timezone:
        return Instant(roster.anchor_at + number * roster.shift_us)
    zone = _zone(roster.timezone)
    anchor = to_datetime(roster.anchor_at).astimezone(zone).replace(tzinfo=None)
    return _instant_of(anchor + timedelta(microseconds=number * roster.shift_us), zone)


def _holding(overrides: Sequence[OnCallOverride], at: Instant) -> OnCallOverride | None:
    found = [override for override in overrides if override.starts_at <= at < override.ends_at]
    return max(found, key=lambda override: override.number, default=None)


def _shift_number(roster: OnCallSchedule, at: Instant) -> int:
    """The last shift that has begun. What clocks there show says it, but for those that begun
    before the clocks were put back."""
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
    """The first instant at which clocks there show that time; where they skip it, when they do."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return from_datetime(first)
    # Skipped: its two readings lie around the instant at which the clocks go forward.
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
