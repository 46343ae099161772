"""Recurrence of maintenance: an RRULE in local time. Source: RFC 5545.

Occurrences begin at the same local time. At a skipped local time, they begin as much later as the
clocks go forward; at a repeated local time, at its first occurrence. Frequencies above daily are
refused.
"""

import re
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rrulestr

from ..core.instant import DAY, SECOND, Instant, from_datetime, is_timezone, to_datetime

RRULE_LONGEST: Final = 200
DURATION_SECONDS: Final = (60, 7 * 86_400)
INTERVAL_MOST: Final = 366
COUNT_MOST: Final = 1_000
_SAME_DAYS_YEARS: Final = 400
_FREQUENCIES: Final = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_PARTS: Final = frozenset(
    ("FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST")
)
_UNTIL: Final = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?")


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Recurrence rule. `starts_at` is the first occurrence; an empty `timezone` is UTC."""

    rrule: str
    starts_at: Instant
    duration_us: int
    timezone: str = ""


def fault(recurrence: Recurrence) -> tuple[str, str] | None:
    """Returns an invalid field of a recurrence and its rule, None if it is valid."""
    least, most = DURATION_SECONDS
    if recurrence.timezone and not is_timezone(recurrence.timezone):
        return "timezone", "is not an IANA time zone"
    if not least * SECOND <= recurrence.duration_us <= most * SECOND:
        return "duration_seconds", f"must be between {least} and {most}"
    said = _rule_fault(recurrence.rrule)
    if said is not None:
        return "rrule", said
    try:
        found = occurrences(recurrence, Instant(recurrence.starts_at - 1), _far(recurrence))
    except (ValueError, TypeError, OverflowError):
        return "rrule", "cannot be read as a recurrence rule"
    if not found or found[0] != recurrence.starts_at:
        return "starts_at", "must be an instant at which the rule begins"
    return None


def occurrences(recurrence: Recurrence, after: Instant, until: Instant) -> list[Instant]:
    """Returns the starts in (after, until], in order."""
    zone = ZoneInfo(recurrence.timezone or "UTC")
    text, last = _without_until(recurrence.rrule, zone)
    begins = _local(recurrence.starts_at, zone)
    end = _local(until, zone)
    end = end if last is None else min(end, last)
    later = _later_years(max(begins, end))
    rule = rrulestr(text, dtstart=begins.replace(year=begins.year + later))
    assert isinstance(rule, rrule), "the text is one rule, not a set"
    found = []
    for then in rule:
        local = then.replace(year=then.year - later)
        if local > end:
            break
        at = from_datetime(local.replace(tzinfo=zone).astimezone(UTC))
        if after < at <= until:
            found.append(at)
    return found


def _later_years(last: datetime) -> int:
    """Returns the years by which a rule is shifted toward the end of the calendar.

    dateutil follows a rule without occurrences to the year 9999, which takes seconds. The calendar
    repeats every 400 years, so that the last years give the same result in less time.
    """
    return (MAXYEAR - last.year) // _SAME_DAYS_YEARS * _SAME_DAYS_YEARS


def _local(instant: Instant, zone: ZoneInfo) -> datetime:
    return to_datetime(instant).astimezone(zone).replace(tzinfo=None)


def _far(recurrence: Recurrence) -> Instant:
    return Instant(recurrence.starts_at + 4 * 366 * DAY)


def _rule_fault(text: str) -> str | None:
    if len(text) > RRULE_LONGEST:
        return f"must be at most {RRULE_LONGEST} characters"
    pairs = [part.partition("=") for part in text.split(";")]
    given = {name: value for name, _, value in pairs}
    if len(given) != len(pairs) or not all(value for value in given.values()):
        return "must be parts NAME=VALUE between semicolons, each once"
    unknown = sorted(given.keys() - _PARTS)
    if unknown:
        return f"{unknown[0][:20]} is not one of {', '.join(sorted(_PARTS))}"
    if given.get("FREQ") not in _FREQUENCIES:
        return f"FREQ must be one of {', '.join(_FREQUENCIES)}"
    for name, most in (("INTERVAL", INTERVAL_MOST), ("COUNT", COUNT_MOST)):
        value = given.get(name, "1")
        if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= most):
            return f"{name} must be between 1 and {most}"
    if "UNTIL" in given and not _UNTIL.fullmatch(given["UNTIL"]):
        return "UNTIL must be a date, or a date and a time, as 20270131 or 20270131T220000Z"
    return None


def _without_until(text: str, zone: ZoneInfo) -> tuple[str, datetime | None]:
    """Returns the rule without UNTIL, and UNTIL in local time."""
    kept = ";".join(part for part in text.split(";") if not part.startswith("UNTIL="))
    found = re.search(r"UNTIL=([0-9TZ]+)", text)
    if found is None:
        return kept, None
    date, time, utc = (_UNTIL.fullmatch(found[1]) or _never()).groups()
    if time is None:
        day = _parsed(date + "000000", zone)
        return kept, day.replace(tzinfo=None) + timedelta(days=1, microseconds=-1)
    last = _parsed(date + time, UTC if utc else zone)
    return kept, last.astimezone(zone).replace(tzinfo=None)


def _parsed(digits: str, zone: tzinfo) -> datetime:
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=zone)


def _never() -> re.Match[str]:
    raise ValueError("UNTIL")
