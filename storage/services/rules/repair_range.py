"""Earliest instant from which figures can be repaired."""

from typing import Final

from ...core.instant import DAY, Instant

LONGEST_HOLD_DAYS: Final = 3

TOO_OLD: Final = "older_than_raw_retention"


def earliest_repairable(now: Instant, raw_days: int) -> Instant:
    """Returns the instant before which figures are final.

    Before it, results may be deleted, or earlier results whose freshness reaches into that time.
    The longest freshness is three intervals of at most one day.
    """
    return Instant(now - now % DAY - (raw_days - 1 - LONGEST_HOLD_DAYS) * DAY)
