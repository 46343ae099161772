"""Rules of services: repair range."""

from typing import Final

from ...core.instant import DAY, Instant

LONGEST_HOLD_DAYS: Final = 3

TOO_OLD: Final = "older_than_raw_retention"


def earliest_repairable(now: Instant, raw_days: int) -> Instant:
    """Of what lies before it, results may be gone, or those whose hold reaches into it: a hold is
    three intervals, of a day each at most. Its figures stay as they are."""
    return Instant(now - now % DAY - (raw_days - 1 - LONGEST_HOLD_DAYS) * DAY)
