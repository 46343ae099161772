"""Weekly hours in local time: restrictions of an on-call layer, and support hours.

A window begins at a local time of its weekdays and ends at a later one, up to 24 hours after it. As
a hand-off, an edge at a skipped local time occurs when the clocks go forward, and an edge at a
repeated local time occurs at its first occurrence. Windows can overlap.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from ...core.instant import SECOND, Instant, from_datetime, is_timezone, to_datetime

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WINDOWS_MOST: Final = 50
DAY_MINUTES: Final = 1_440
_WEEK_MINUTES: Final = 7 * DAY_MINUTES
# The next change is at most a week away, and a week later where a clock change removes it.
_WEEKS_MOST: Final = 4
_TEXT: Final = re.compile(r"([a-z,]+) (\d\d):(\d\d)-(\d\d):(\d\d)")
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """Window on each of `weekdays` (0 is Monday), in minutes after local midnight.

    If `until` is not after `from_`, the window ends on the next day.
    """

    weekdays: tuple[int, ...]
    from_: int
    until: int

    @property
    def minutes(self) -> int:
        return self.until - self.from_ + (DAY_MINUTES if self.until <= self.from_ else 0)


@dataclass(frozen=True, slots=True)
class HoursSpan:
    """Span [from_at, until) around an instant that is inside or outside as a whole."""

    is_inside: bool
    from_at: Instant
    until: Instant


def hours_at(windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, at: Instant) -> HoursSpan | None:
    """Returns the span of the windows around an instant. None if they cover the whole week."""
    if not windows or _cover_week(windows):
        return None
    week = _monday(to_datetime(at).astimezone(zone).date())
    for reach in range(1, _WEEKS_MOST):
        spans = _united(
            span
            for number in range(-reach, reach + 1)
            for span in _week_spans(windows, zone, week + timedelta(weeks=number))
        )
        found = _around(spans, at)
        if found is not None:
            return found
    raise AssertionError("the windows cover the whole week")


def windows_fault(windows: Sequence[WeeklyWindow]) -> str | None:
    if len(windows) > WINDOWS_MOST:
        return f"must have at most {WINDOWS_MOST} entries"
    if any(not one.weekdays for one in windows):
        return "must each have a weekday"
    return None


def hours_fault(zone: str, windows: Sequence[WeeklyWindow]) -> tuple[str, str] | None:
    """Returns the invalid field of weekly hours in a zone and its rule."""
    if zone and not is_timezone(zone):
        return "timezone", "is not an IANA time zone"
    fault = windows_fault(windows)
    return ("windows", fault) if fault else None


def clock_minutes(text: str) -> int | None:
    """Returns the minutes of a time such as 09:30, None for other text. 24:00 is 1440."""
    if _CLOCK.fullmatch(text) is None:
        return None
    return int(text[:2]) * 60 + int(text[3:])


def clock_text(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def weekday_numbers(names: Iterable[str]) -> tuple[int, ...]:
    """Returns the numbers of weekdays in order, without duplicates. All without a name.

    Raises:
        ValueError: a name is unknown.
    """
    return tuple(sorted({WEEKDAYS.index(name) for name in names})) or tuple(range(7))


def window_text(window: WeeklyWindow) -> str:
    """Returns the stored form, such as `mon,tue 09:00-17:00`."""
    days = ",".join(WEEKDAYS[day] for day in window.weekdays)
    return f"{days} {clock_text(window.from_)}-{clock_text(window.until)}"


@lru_cache(maxsize=512)
def window_of(text: str) -> WeeklyWindow:
    """Parses the stored form."""
    found = _TEXT.fullmatch(text)
    assert found is not None, "stored windows are well-formed"
    days, *numbers = found.groups()
    hour, minute, end_hour, end_minute = map(int, numbers)
    weekdays = weekday_numbers(days.split(","))
    return WeeklyWindow(weekdays, hour * 60 + minute, end_hour * 60 + end_minute)


@lru_cache(maxsize=64)
def zone_of_name(name: str) -> ZoneInfo:
    """Returns the zone. An empty name is UTC."""
    return ZoneInfo(name or "UTC")


def first_instant(local: datetime, zone: ZoneInfo) -> Instant:
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


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _cover_week(windows: tuple[WeeklyWindow, ...]) -> bool:
    """Returns whether every local minute of a week is inside."""
    spans = sorted(
        (day * DAY_MINUTES + one.from_ + turn, day * DAY_MINUTES + one.from_ + one.minutes + turn)
        for one in windows
        for day in one.weekdays
        for turn in (-_WEEK_MINUTES, 0)
    )
    reached = 0
    for from_, until in spans:
        if from_ > reached:
            return False
        reached = max(reached, until)
    return reached >= _WEEK_MINUTES


@lru_cache(maxsize=4_096)
def _week_spans(
    windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, monday: date
) -> list[tuple[Instant, Instant]]:
    """Returns the spans of the windows that begin in a week. A clock change can remove one."""
    found = []
    for one in windows:
        for day in one.weekdays:
            midnight = datetime.combine(monday + timedelta(days=day), datetime.min.time())
            begins = midnight + timedelta(minutes=one.from_)
            from_at = first_instant(begins, zone)
            until = first_instant(begins + timedelta(minutes=one.minutes), zone)
            if from_at < until:
                found.append((from_at, until))
    return found


def _united(spans: Iterable[tuple[Instant, Instant]]) -> list[tuple[Instant, Instant]]:
    """Returns the union in order, without spans that touch each other."""
    found: list[tuple[Instant, Instant]] = []
    for from_at, until in sorted(spans):
        if found and from_at <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until)
        else:
            found.append((from_at, until))
    return found


def _around(spans: list[tuple[Instant, Instant]], at: Instant) -> HoursSpan | None:
    """Returns the span around an instant, None if an edge is outside of `spans`."""
    for number, (from_at, until) in enumerate(spans):
        if at < from_at:
            return HoursSpan(False, spans[number - 1][1], from_at) if number else None
        if at < until:
            # A span at the edge can continue outside.
            return HoursSpan(True, from_at, until) if 0 < number < len(spans) - 1 else None
    return None
