"""Due instants of a cron expression in a time zone. Pure; instants are µs since the epoch.

The rule for days on which the clocks change is that of Debian's cron, as `cronsim` states it:

- If the minute or the hour begins with `*`, each existing local time that matches is due. A time
  that exists twice is due twice, and a skipped time is not due.
- Otherwise each local time is due once on its day. A time that exists twice is due at its first
  occurrence, and a skipped time at the change of the clocks.

`cronsim` parses the expression and matches the days. It walks over clock changes of less than an
hour incorrectly, so the conversion to instants is made here.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, cached_property, lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import Final, overload
from zoneinfo import ZoneInfo, reset_tzpath

from cronsim import CronSim, CronSimError

# Only the package tzdata, as `storage/core/instant.py`: an agent must compute the windows of the
# server, whatever zones its host has.
reset_tzpath(to=())

EXPRESSION_LONGEST: Final = 100
# The newest result must be stored until the next due instant, and a month is a common distance.
DISTANCE_DAYS_MOST: Final = 35
# Leap years and all weekdays of each date of a month occur in this time.
_PATTERN: Final = (date(2024, 1, 1), date(2036, 1, 1))
_FIELDS: Final = 5
_MINUTE: Final = 60_000_000
_DAY_MINUTES: Final = 1_440
_DAY: Final = timedelta(days=1)
_DAY_US: Final = _DAY_MINUTES * _MINUTE
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# The days around the instant that is asked about.
_DAYS_KEPT: Final = 4
# A pass over all monitors asks each schedule once, so a smaller cache would never hit. Minutes
# and days are shared by schedules, and have up to 3 and 20 KB.
_SCHEDULES_KEPT: Final = 16_384
_PARTS_KEPT: Final = 4_096
# A change of the clocks can skip the times of one day and so double the longest distance. The
# other days are those around it.
_DAYS_SEARCHED: Final = 2 * DISTANCE_DAYS_MOST + 10


class CronSchedule:
    """Due instants of a valid expression (see `cron_fault`) in a zone; "" is UTC.

    `shortest_us` and `longest_us` are the distances of two consecutive due instants by the local
    clock. A change of the clocks can make one distance shorter or longer, up to `distance_most_us`.
    """

    def __init__(self, expression: str, timezone: str) -> None:
        self._zone = ZoneInfo(timezone or "UTC")
        minute, hour, *days = expression.split()
        self._minutes = _minutes_of_day(minute, hour)
        self._day_fields = " ".join(days)
        self._days_matched = _days_matched(self._day_fields)
        self._is_wild = minute.startswith("*") or hour.startswith("*")
        self._days: dict[date, Sequence[int]] = {}

    @property
    def shortest_us(self) -> int:
        return self._distances[0] * _MINUTE

    @property
    def longest_us(self) -> int:
        return self._distances[1] * _MINUTE

    @property
    def distance_most_us(self) -> int:
        """Upper bound of the distance of two due instants, with all changes of the clocks."""
        # A wild schedule loses the times that a change skips, so two distances become one.
        # Other changes make a distance at most a day longer.
        longer_us = max(self.longest_us, _DAY_US) if self._is_wild else _DAY_US
        return self.longest_us + longer_us

    @cached_property
    def _distances(self) -> tuple[int, int]:
        # Only few callers need them.
        return _distances(self._day_fields, self._minutes)

    def next_after(self, instant: int) -> int:
        """Returns the first due instant after the given one."""
        day = self._local_date(instant) - _DAY
        found: int | None = None
        for _ in range(_DAYS_SEARCHED):
            dues = self._of_day(day)
            at = bisect_right(dues, instant)
            if found is not None:
                # A change of the clocks at midnight can put instants of a day before the last
                # ones of the day before.
                return min(found, dues[at]) if at < len(dues) else found
            if at < len(dues):
                found = dues[at]
            day += _DAY
        raise AssertionError("a valid expression is due within its longest distance")

    def last_through(self, instant: int) -> int:
        """Returns the last due instant that is not after the given one."""
        day = self._local_date(instant) + _DAY
        found: int | None = None
        for _ in range(_DAYS_SEARCHED):
            dues = self._of_day(day)
            at = bisect_right(dues, instant) - 1
            if found is not None:
                return max(found, dues[at]) if at >= 0 else found
            if at >= 0:
                found = dues[at]
            day -= _DAY
        raise AssertionError("a valid expression is due within its longest distance")

    def is_due(self, instant: int) -> bool:
        return self.next_after(instant - 1) == instant

    def _local_date(self, instant: int) -> date:
        return (_EPOCH + timedelta(microseconds=instant)).astimezone(self._zone).date()

    def _of_day(self, day: date) -> Sequence[int]:
        """Returns the due instants whose local times are on the day, in order."""
        found = self._days.get(day)
        if found is None:
            if len(self._days) >= _DAYS_KEPT:
                self._days.pop(next(iter(self._days)))
            found = self._days[day] = self._made_of_day(day)
        return found

    def _made_of_day(self, day: date) -> Sequence[int]:
        if not _matches(self._days_matched, day):
            return ()
        start = datetime.combine(day, time(), self._zone)
        if start.utcoffset() == (start + _DAY).utcoffset():
            return _PlainDay(_micros(start), self._minutes)
        dues: set[int] = set()
        for minute in self._minutes:
            # Arithmetic on aware datetimes of one zone is that of the local clock.
            local = start + timedelta(minutes=minute)
            both = {_micros(local.replace(fold=0)), _micros(local.replace(fold=1))}
            real = sorted(us for us in both if self._shows(us, local))
            if self._is_wild:
                dues.update(real)
            else:
                dues.add(real[0] if real else self._change_between(min(both), max(both)))
        return array("q", sorted(dues))

    def _shows(self, instant: int, local: datetime) -> bool:
        shown = (_EPOCH + timedelta(microseconds=instant)).astimezone(self._zone)
        return shown.replace(tzinfo=None) == local.replace(tzinfo=None)

    def _change_between(self, low: int, high: int) -> int:
        """Returns the only change of the offset in (low, high]; both are whole minutes."""
        before = self._offset(low)
        minutes = range(low // _MINUTE, high // _MINUTE + 1)
        at = bisect_left(minutes, True, key=lambda m: self._offset(m * _MINUTE) != before)
        return minutes[at] * _MINUTE

    def _offset(self, instant: int) -> timedelta | None:
        return (_EPOCH + timedelta(microseconds=instant)).astimezone(self._zone).utcoffset()


class _PlainDay(Sequence[int]):
    """Due instants of a day without a change of the clocks. The minutes are shared."""

    __slots__ = ("_minutes", "_start")

    def __init__(self, start: int, minutes: "array[int]") -> None:
        self._start = start
        self._minutes = minutes

    def __len__(self) -> int:
        return len(self._minutes)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[int]: ...
    def __getitem__(self, at: int | slice) -> int | Sequence[int]:
        if isinstance(at, slice):
            return _PlainDay(self._start, self._minutes[at])
        return self._start + self._minutes[at] * _MINUTE


@lru_cache(maxsize=_SCHEDULES_KEPT)
def cron_schedule(expression: str, timezone: str) -> CronSchedule:
    """Returns the due instants of a valid expression. The result is shared."""
    return CronSchedule(expression, timezone)


@lru_cache(maxsize=_SCHEDULES_KEPT)
def cron_fault(expression: str, days_most: int = DISTANCE_DAYS_MOST) -> str | None:
    """Returns the rule that an expression breaks, None if it is valid.

    `days_most` is the longest allowed distance of two due instants.
    """
    if len(expression) > EXPRESSION_LONGEST:
        return f"must have at most {EXPRESSION_LONGEST} characters"
    fields = expression.split()
    if len(fields) != _FIELDS:
        return "must have five fields: minute, hour, day of month, month, day of week"
    try:
        minutes = _minutes_of_day(*fields[:2])
        _days_matched(" ".join(fields[2:]))
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        return f"has a field {field} that is invalid or never occurs"
    except (ValueError, AssertionError, KeyError, TypeError):
        return "is not a cron expression"
    _, longest = _distances(" ".join(fields[2:]), minutes)
    if not longest:
        return "is never due"
    if longest > days_most * _DAY_MINUTES:
        days = -(-longest // _DAY_MINUTES)
        return f"must be due at least every {days_most} days; its longest gap is {days}"
    return None


def _parsed(expression: str) -> CronSim:
    return CronSim(expression, datetime(2024, 1, 1))  # noqa: DTZ001 - only its fields are used


@lru_cache(maxsize=_PARTS_KEPT)
def _minutes_of_day(minute: str, hour: str) -> "array[int]":
    cron = _parsed(f"{minute} {hour} * * *")
    found = (60 * _whole(h) + _whole(m) for h in cron.hours for m in cron.minutes)
    return array("H", sorted(found))


@lru_cache(maxsize=_PARTS_KEPT)
def _days_matched(day_fields: str) -> CronSim:
    return _parsed(f"0 0 {day_fields}")


def _whole(item: int | tuple[int, int]) -> int:
    assert isinstance(item, int), "hours and minutes are numbers"
    return item


def _matches(cron: CronSim, day: date) -> bool:
    return day.month in cron.months and cron.match_day(day)


def _distances(day_fields: str, minutes: "array[int]") -> tuple[int, int]:
    """Returns the shortest and the longest distance in minutes; zeros if it is never due."""
    days = _days_apart(day_fields)
    if days is None:
        return 0, 0
    within = {b - a for a, b in pairwise(minutes)}
    between = {gap * _DAY_MINUTES - minutes[-1] + minutes[0] for gap in days}
    return min(within | between), max(within | between)


@lru_cache(maxsize=_PARTS_KEPT)
def _days_apart(day_fields: str) -> tuple[int, int] | None:
    """Returns the fewest and the most days between two due days, None if it is never due.

    Sets of days are the bits of a number. A walk over all days takes milliseconds, which a list of
    many monitors would add up.
    """
    cron = _days_matched(day_fields)
    in_months = reduce(or_, map(_days_of_month, cron.months))
    by_date, by_weekday = (
        reduce(or_, (_days_of(kind, item) for item in items))
        for kind, items in (("date", cron.days), ("weekday", cron.weekdays))
    )
    found = in_months & (by_date & by_weekday if cron.day_and else by_date | by_weekday)
    if found.bit_count() < 2:
        return None
    begin, end = _PATTERN
    size = (end - begin).days
    # The last day comes first.
    after, *between, before = f"{found:0{size}b}".split("1")
    apart = [len(gap) + 1 for gap in between]
    ends = (gap for gap in (len(before), len(after) + 1) if gap > DISTANCE_DAYS_MOST)
    return min(apart), max(*apart, *ends, 0)


@cache
def _days_of_month(month: int | tuple[int, int]) -> int:
    return _bits(lambda day: day.month == month)


@cache
def _days_of(kind: str, item: int | tuple[int, int]) -> int:
    """Returns the days that one date or weekday of an expression matches."""
    cron = _parsed("0 0 * * *")
    if kind == "date":
        cron.days = {_whole(item)}
        return _bits(cron.match_dom)
    cron.weekdays = {item}
    return _bits(cron.match_dow)


def _bits(matches: Callable[[date], bool]) -> int:
    begin, end = (day.toordinal() for day in _PATTERN)
    days = (date.fromordinal(number) for number in range(begin, end))
    return sum(1 << at for at, day in enumerate(days) if matches(day))


def _micros(aware: datetime) -> int:
    return (aware.astimezone(UTC) - _EPOCH) // _MICROSECOND
