"""Support hours of a service: weekly hours outside of which incidents of low urgency wait.

Severity `page` never waits. A service without windows supports at all hours.
"""

from collections.abc import Sequence

from ...core.instant import Instant
from ...oncall.rules.weekly_hours import hours_at, window_of, zone_of_name


def opens_at(zone: str, windows: Sequence[str], now: Instant) -> Instant | None:
    """Returns when the support hours begin, None during them and for a service without any."""
    hours = hours_at(tuple(window_of(text) for text in windows), zone_of_name(zone), now)
    return None if hours is None or hours.is_inside else hours.until
