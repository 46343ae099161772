"""How the console shows times to a user: a zone of the IANA database, and 12 or 24 hours."""

from typing import Final

from ...core.instant import is_timezone

CLOCKS: Final = (12, 24)


def time_zone_fault(name: str) -> str | None:
    return None if is_timezone(name) else "is not a time zone, such as Europe/Berlin"


def hour_clock_fault(hours: int) -> str | None:
    return None if hours in CLOCKS else "must be 12 or 24"
