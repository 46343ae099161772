"""Earliest instant from which figures can be repaired."""

from typing import Final

from ...core.instant import DAY, Instant

TOO_OLD: Final = "older_than_raw_retention"


def earliest_repairable(now: Instant, raw_days: int, hold_us: int) -> Instant:
    """Returns the instant before which figures are final.

    Before it, results may be deleted, or earlier results whose freshness reaches into that time.

    Args:
        raw_days: days for which results are stored.
        hold_us: longest freshness of a result of the monitors concerned, in µs.
    """
    hold_days = -(-hold_us // DAY)
    return Instant(now - now % DAY - (raw_days - 1 - hold_days) * DAY)
