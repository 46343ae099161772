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
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
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
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# A day has up to 1 440 due instants, so the instants of few days are kept.
_DAYS_KEPT: Final = 4
_SCHEDULES_KEPT: Final = 2_048
# The longest distance, a skipped day and the days around them.
_DAYS_SEARCHED: Final = DISTANCE_DAYS_MOST + 10


class CronSchedule:
    """Due instants of a valid expression (see `cron_fault`) in a zone; "" is UTC.

    `shortest_us` and `longest_us` are the distances of two consecutive due instants by the local
    clock. A change of the clocks can make one distance shorter or longer.
    """

    def __init__(self, expression: str, timezone: str) -> None:
        self._cron = _parsed(expression)
        self._zone = ZoneInfo(timezone or "UTC")
        self._minutes = _minutes_of_day(self._cron)
        fields = expression.split()
        self._is_wild = fields[0].startswith("*") or fields[1].startswith("*")
        shortest, longest = _distances(self._cron, self._minutes)
        self.shortest_us: Final = shortest * _MINUTE
        self.longest_us: Final = longest * _MINUTE
        self._days: dict[date, array[int]] = {}

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

    def _of_day(self, day: date) -> "array[int]":
        """Returns the due instants whose local times are on the day, in order."""
        found = self._days.get(day)
        if found is None:
            if len(self._days) >= _DAYS_KEPT:
                self._days.pop(next(iter(self._days)))
            found = self._days[day] = self._made_of_day(day)
        return found

    def _made_of_day(self, day: date) -> "array[int]":
        if not _matches(self._cron, day):
            return array("q")
        start = datetime.combine(day, time(), self._zone)
        if start.utcoffset() == (start + _DAY).utcoffset():
            first = _micros(start)
            return array("q", (first + minute * _MINUTE for minute in self._minutes))
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
    if len(expression.split()) != _FIELDS:
        return "must have five fields: minute, hour, day of month, month, day of week"
    try:
        cron = _parsed(expression)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        return f"has a field {field} that is invalid or never occurs"
    except (ValueError, AssertionError, KeyError, TypeError):
        return "is not a cron expression"
    minutes = _minutes_of_day(cron)
    _, longest = _distances(cron, minutes)
    if not longest:
        return "is never due"
    if longest > days_most * _DAY_MINUTES:
        days = -(-longest // _DAY_MINUTES)
        return f"must be due at least every {days_most} days; its longest gap is {days}"
    return None


def _parsed(expression: str) -> CronSim:
    return CronSim(expression, datetime(2024, 1, 1))  # noqa: DTZ001 - only its fields are used


def _minutes_of_day(cron: CronSim) -> tuple[int, ...]:
    return tuple(sorted(60 * _whole(hour) + _whole(m) for hour in cron.hours for m in cron.minutes))


def _whole(item: int | tuple[int, int]) -> int:
    assert isinstance(item, int), "hours and minutes are numbers"
    return item


def _matches(cron: CronSim, day: date) -> bool:
    return day.month in cron.months and cron.match_day(day)


def _distances(cron: CronSim, minutes: tuple[int, ...]) -> tuple[int, int]:
    """Returns the shortest and the longest distance in minutes; zeros if it is never due."""
    first, last = minutes[0], minutes[-1]
    within = {b - a for a, b in pairwise(minutes)}
    begin, end = _PATTERN
    days = [
        number
        for number in range(begin.toordinal(), end.toordinal())
        if _matches(cron, date.fromordinal(number))
    ]
    if len(days) < 2:
        return 0, 0
    ends = {days[0] - begin.toordinal(), end.toordinal() - days[-1]}
    apart = {b - a for a, b in pairwise(days)}
    apart |= {gap for gap in ends if gap > DISTANCE_DAYS_MOST}
    between = {gap * _DAY_MINUTES - last + first for gap in apart}
    return min(within | between), max(within | between)


def _micros(aware: datetime) -> int:
    return (aware.astimezone(UTC) - _EPOCH) // _MICROSECOND
