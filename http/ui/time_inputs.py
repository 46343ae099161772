"""Conversion of form text: local times of a zone, and durations."""

from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from ...storage.core.instant import (
    MINUTE,
    Instant,
    from_datetime,
    is_timezone,
    to_datetime,
    to_text,
)
from ...storage.core.refusal import Refused

UNITS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "seconds": 1}


def zone_named(name: str) -> ZoneInfo:
    """Returns the zone, UTC for an absent or unknown name. The rule refuses unknown names."""
    return ZoneInfo(name if name and is_timezone(name) else "UTC")


def instant_typed(field: str, text: str, zone: ZoneInfo) -> str:
    """Returns a local time as an instant in JSON format. Refused if it is malformed."""
    try:
        local = datetime.fromisoformat(text)
        aware = local if local.tzinfo else local.replace(tzinfo=zone)
        return to_text(from_datetime(aware.astimezone(UTC)))
    except (ValueError, OverflowError):
        raise Refused("invalid", field, "must be a day and a time") from None


def spelt_local(at: Instant, zone: ZoneInfo) -> str:
    """Returns the value of a `datetime-local` field."""
    local = to_datetime(at).astimezone(zone).replace(tzinfo=None)
    return local.isoformat(timespec="minutes" if at % MINUTE == 0 else "milliseconds")


def length_typed(field: str, text: str, unit: str) -> int:
    """Returns whole seconds. Refused if the text is not a number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and unit in UNITS):
        raise Refused("invalid", field, "must be a whole number")
    return int(text) * UNITS[unit]


def spelt_length(seconds: int) -> tuple[str, str]:
    """Returns a number and the largest unit that divides the duration."""
    unit = next(unit for unit, length in UNITS.items() if seconds % length == 0)
    return str(seconds // UNITS[unit]), unit
