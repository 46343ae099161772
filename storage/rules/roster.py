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
from zoneinfo import ZoneInfo, available_timezones

from .instant import HOUR, SECOND, Instant, from_datetime, to_datetime

SHIFT_SECONDS = (3_600, 366 * 86_400)
PARTICIPANTS = (1, 100)
OVERRIDE_LONGEST_US = 366 * 24 * HOUR
# How far a zone's offset moves at most, in shifts that are an hour at least.
_SHIFTS_OFF = 30


@dataclass(frozen=True, slots=True)
class Roster:
    """`participants` take turns; keys of channels. `timezone` empty counts elapsed time."""

    anchor_at: Instant
    shift_us: int
    participants: tuple[int, ...]
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class Override:
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
    override: Override | None = None


def on_call(roster: Roster, overrides: Sequence[Override], at: Instant) -> Duty:
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


def duties(
    roster: Roster, overrides: Sequence[Override], from_at: Instant, until: Instant
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


def hand_off(roster: Roster, number: int) -> Instant:
    """When shift `number` begins; shift 0 begins at the anchor."""
    if not roster.timezone:
        return Instant(roster.anchor_at + number * roster.shift_us)
    zone = _zone(roster.timezone)
    anchor = to_datetime(roster.anchor_at).astimezone(zone).replace(tzinfo=None)
    return _instant_of(anchor + timedelta(microseconds=number * roster.shift_us), zone)


def is_timezone(name: str) -> bool:
    """One of the IANA database; the host's own is none, since hosts differ."""
    return name in _names()


def _holding(overrides: Sequence[Override], at: Instant) -> Override | None:
    found = [override for override in overrides if override.starts_at <= at < override.ends_at]
    return max(found, key=lambda override: override.number, default=None)


def _shift_number(roster: Roster, at: Instant) -> int:
    """The last shift that has begun: the first guess is off by what the zone's clocks moved."""
    number = (at - roster.anchor_at) // roster.shift_us
    if not roster.timezone:
        return number
    number += min(_SHIFTS_OFF, 1 + 26 * HOUR // roster.shift_us)
    while hand_off(roster, number) > at:
        number -= 1
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


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime", "Factory"}
