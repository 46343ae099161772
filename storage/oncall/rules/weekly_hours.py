"""Weekly hours in local time: restrictions of an on-call layer, and support hours.

A window begins at a local time of its weekdays and ends at a later one, up to 24 hours after it. As
a hand-off, an edge at a skipped local time occurs when the clocks go forward, and an edge at a
repeated local time occurs at its first occurrence. Windows can overlap.
"""

import re
from array import array
from bisect import bisect_right
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
    if not windows:
        return None
    week = _monday(to_datetime(at).astimezone(zone).date())
    for reach in range(1, _WEEKS_MOST):
        edges = _edges_near(windows, zone, week, reach)
        if edges is None:
            return None
        number = bisect_right(edges, at)
        is_inside = number % 2 == 1
        # A span at either end can continue outside of the weeks.
        margin = 2 if is_inside else 1
        if margin <= number <= len(edges) - margin:
            return HoursSpan(is_inside, Instant(edges[number - 1]), Instant(edges[number]))
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


# Both caches together take at most about 40 MiB, with layers of WINDOWS_MOST windows on each day.
@lru_cache(maxsize=2_048)
def _edges_near(
    windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, monday: date, reach: int
) -> Sequence[int] | None:
    """Returns the edges of the union of the spans from `reach` weeks before to as many after.

    The edges ascend, alternately the start and the end of a span. None if the windows cover the
    whole week.
    """
    if _cover_week(windows):
        return None
    weeks = (monday + timedelta(weeks=number) for number in range(-reach, reach + 1))
    near = [_week_edges(windows, zone, week) for week in weeks]
    return _united(span for edges in near for span in zip(edges[::2], edges[1::2], strict=True))


@lru_cache(maxsize=2_048)
def _week_edges(windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, monday: date) -> Sequence[int]:
    """Returns the edges of the union of the spans that begin in a week.

    A clock change can remove a span.
    """
    found = []
    for one in windows:
        for day in one.weekdays:
            midnight = datetime.combine(monday + timedelta(days=day), datetime.min.time())
            begins = midnight + timedelta(minutes=one.from_)
            from_at = first_instant(begins, zone)
            until = first_instant(begins + timedelta(minutes=one.minutes), zone)
            if from_at < until:
                found.append((from_at, until))
    return _united(found)


def _united(spans: Iterable[tuple[int, int]]) -> Sequence[int]:
    """Returns the edges of the union. Spans that touch each other become one."""
    edges: array[int] = array("q")
    for from_at, until in sorted(spans):
        if edges and from_at <= edges[-1]:
            edges[-1] = max(edges[-1], until)
        else:
            edges.extend((from_at, until))
    return edges
