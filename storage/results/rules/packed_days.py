"""Which days can be packed, and which rows can belong to a packed day.

The fence of a shard only moves forward, and a writer holds it until its commit. A row that is newer
than LATE_US before the held fence is therefore committed before the fence has passed the end of its
day by PACKED_AFTER_US. An older row is a late one: its writer asks first whether its day is packed.

The pieces of a slow monitor are merged when all days of their week are packed.
"""

from typing import Final

from ...core.instant import DAY, HOUR, Instant
from ...core.time_span import TimeSpan

PACKED_AFTER_US: Final = 48 * HOUR
LATE_US: Final = 24 * HOUR
WEEK_DAYS: Final = 7
WEEK_US: Final = WEEK_DAYS * DAY
# Most rows of a week whose pieces are merged: an interval of 10 min has 1 008, and some confirming
# runs.
MERGED_MOST: Final = 1_200
_FIRST_MONDAY: Final = Instant(4 * DAY)


def day_of(instant: Instant) -> TimeSpan:
    """Returns the day in UTC that contains the instant. Only merged pieces cross its ends."""
    start = Instant(instant - instant % DAY)
    return TimeSpan(start, Instant(start + DAY))


def week_of(instant: Instant) -> TimeSpan:
    """Returns the week in UTC, from Monday on, that contains the instant.

    No piece crosses its ends.
    """
    start = Instant(instant - (instant - _FIRST_MONDAY) % WEEK_US)
    return TimeSpan(start, Instant(start + WEEK_US))


def is_sealed_day(day: TimeSpan, settled_through: Instant, first_open: Instant | None) -> bool:
    """Returns whether the day can be packed: it is old enough, and no window of it is open.

    Args:
        settled_through: instant through which windows are settled, the least of all shards.
        first_open: the first due instant of a window that can still be settled, None without one.
    """
    if first_open is not None and first_open < day.until:
        return False
    return day.until <= settled_through - PACKED_AFTER_US


def days_to_pack(packed_through: Instant, now: Instant) -> int:
    """Returns the number of days that are old enough and not packed, also if they cannot be."""
    return max((now - PACKED_AFTER_US - packed_through) // DAY, 0)
