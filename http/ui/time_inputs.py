"""Conversion of form text: local times of a zone, and durations."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from ...storage.core.instant import (
    MINUTE,
    SECOND,
    Instant,
    from_datetime,
    is_timezone,
    to_datetime,
    to_text,
    zone_names,
)
from ...storage.core.refusal import Refused
from .shown_time import local, zone_shown

# Areas of the IANA database that contain no places.
_NO_PLACES: Final = frozenset({"Etc", "SystemV", "US", "Canada", "Brazil", "Chile", "Mexico"})
UNITS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "seconds": 1}


def zone_named(name: str) -> ZoneInfo:
    """Returns the zone, UTC for an absent or unknown name. The rule refuses unknown names."""
    return ZoneInfo(name if name and is_timezone(name) else "UTC")


def zone_choices(present: str) -> dict[str, list[str]]:
    """Returns the zones that a user can choose, by continent: UTC, and places.

    Names without a place, such as GMT+3, are older spellings. `present` is always a choice.
    """
    found: dict[str, list[str]] = {"UTC": ["UTC"]}
    for name in sorted({*zone_names(), present} - {"UTC"}):
        area, slash, _ = name.partition("/")
        if name == present or (slash and area not in _NO_PLACES):
            found.setdefault(area if slash else "UTC", []).append(name)
    return found


def instant_typed(field: str, text: str, zone: ZoneInfo, present: Instant | None = None) -> str:
    """Returns a local time as an instant in JSON format.

    A form that is saved unchanged keeps the `present` instant. Refused if the text is malformed, or
    if a change of the clocks leaves out or repeats the time; an offset (`+02:00`) selects one.
    """
    if present is not None and text == spelt_local(present, zone):
        return to_text(present)
    first, second = _both_meanings(field, text, zone)
    place = zone.key.rpartition("/")[2].replace("_", " ")
    if first > second:
        rule = f"does not exist in {place}: clocks go forward on that day. Give a later time"
        raise Refused("invalid", field, rule)
    if first < second:
        rule = (
            f"happens twice in {place}: clocks go back on that day. Give an earlier or later time"
        )
        raise Refused("invalid", field, rule)
    return to_text(first)


def range_typed(field: str, text: str, zone: ZoneInfo, *, is_end: bool) -> Instant:
    """Returns a local time as the start or the end of a range that is only shown.

    The range contains both meanings of a time that clocks repeat. Refused if it is malformed.
    """
    meanings = _both_meanings(field, text, zone)
    return max(meanings) if is_end else min(meanings)


def _both_meanings(field: str, text: str, zone: ZoneInfo) -> tuple[Instant, Instant]:
    """Returns the instants of a local time before and after a change of the clocks.

    The first is later if the time does not exist. Usually both are equal.
    """
    try:
        typed = datetime.fromisoformat(text)
        folds = [typed.replace(tzinfo=typed.tzinfo or zone, fold=fold) for fold in (0, 1)]
        before, after = (from_datetime(one.astimezone(UTC)) for one in folds)
    except (ValueError, OverflowError):
        raise Refused("invalid", field, "must be a day and a time") from None
    return before, after


def spelt_local(at: Instant, zone: ZoneInfo) -> str:
    """Returns the value of a `datetime-local` field."""
    local = to_datetime(at).astimezone(zone).replace(tzinfo=None)
    return local.isoformat(timespec="minutes" if at % MINUTE == 0 else "milliseconds")


def day_start(field: str, text: str, *, days: int = 0) -> Instant:
    """Returns the start of a day, or of a later one, in the zone of the user.

    Refused if the text is not a date.
    """
    try:
        day = date.fromisoformat(text) + timedelta(days=days)
        return from_datetime(datetime.combine(day, time(), tzinfo=zone_shown()).astimezone(UTC))
    except (ValueError, OverflowError):
        raise Refused("invalid", field, "must be a date, as in 2026-12-31") from None


def day_after(field: str, text: str) -> Instant:
    """Returns the end of a day, which is the start of the next."""
    return day_start(field, text, days=1)


def end_of_day(field: str, text: str) -> Instant:
    """Returns the last second of a day."""
    return Instant(day_after(field, text) - SECOND)


def day_field(at: Instant) -> str:
    """Returns the value of a `date` field, in the zone of the user."""
    return f"{local(at):%Y-%m-%d}"


def length_typed(field: str, text: str, unit: str) -> int:
    """Returns whole seconds. Refused if the text is not a number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and unit in UNITS):
        raise Refused("invalid", field, "must be a whole number")
    return int(text) * UNITS[unit]


def spelt_length(seconds: int) -> tuple[str, str]:
    """Returns a number and the largest unit that divides the duration."""
    unit = next(unit for unit, length in UNITS.items() if seconds % length == 0)
    return str(seconds // UNITS[unit]), unit
