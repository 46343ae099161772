"""Formatting of numbers, instants and durations, uniform on all screens.

Instants are in the time zone and with the clock of the user (`shown_time`).

A narrow no-break space separates number and unit, but not the percent sign. The digits of a
percentage depend on its sample, and it is truncated, never rounded up.
"""

from dataclasses import dataclass
from fractions import Fraction

from ...storage.core.availability import spelt
from ...storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime, to_text
from .shown_time import local, time_of_day, zone_word

GAP = "\u202f"
NOTHING = "—"
# Sample size that gives coverage one decimal, regardless of the number of results.
COVERAGE_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Moment:
    """Instant for a `time` element: exact for machines and on hover, and a short text."""

    iso: str
    exact: str
    text: str


def number(value: int) -> str:
    """Returns the number with a comma for thousands: 4,100."""
    return f"{value:,}"


_SPELT = {
    "tls": "TLS",
    "ssl": "SSL",
    "sslmode": "SSL mode",
    "ip": "IP",
    "http": "HTTP",
    "oauth2": "OAuth2",
    "rdap": "RDAP",
    "url": "URL",
}


def label(name: str) -> str:
    """Returns the label of a setting: `follow_redirects` is Follow redirects.

    `password_ref` is Password (secret). A binding of a scenario has its own name.
    """
    kind, is_binding, binding = name.removesuffix("_ref").partition("_secret_")
    if is_binding and kind == "scenario":
        return f"{binding} (secret)"
    words = [_SPELT.get(word, word) for word in name.removesuffix("_ref").split("_")]
    text = " ".join(words)
    said = text[:1].upper() + text[1:]
    return f"{said} (secret)" if name.endswith("_ref") else said


def count(many: int, noun: str, plural: str = "") -> str:
    return f"{number(many)} {noun if many == 1 else plural or noun + 's'}"


def milliseconds(value: int) -> str:
    """Returns whole milliseconds, and `< 1 ms` for 0, as no check takes zero time."""
    return f"{number(value)}{GAP}ms" if value else f"< 1{GAP}ms"


def percent(ratio: Fraction, sample: int) -> str:
    """Returns a percentage. 0 % and 100 % are exact and have no decimals."""
    if ratio in (0, 1):
        return f"{100 * int(ratio)}%"
    return f"{spelt(ratio, sample)}%"


def coverage(ratio: Fraction | None) -> str:
    return NOTHING if ratio is None else percent(ratio, COVERAGE_SAMPLE)


def duration(us: int) -> str:
    """Returns the largest suitable unit, plus the next one for few hours."""
    seconds = max(us, 0) // SECOND
    if seconds < 100:
        return f"{seconds}{GAP}s"
    if us < 100 * MINUTE:
        return f"{seconds // 60}{GAP}min"
    if us < 2 * DAY:
        minutes = seconds // 60 % 60
        hours = f"{seconds // 3600}{GAP}h"
        return f"{hours} {minutes}{GAP}min" if minutes and us < 10 * HOUR else hours
    return f"{seconds // 86_400}{GAP}d"


def setting(seconds: int) -> str:
    """Returns a configured duration exactly, in the largest unit that divides it."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{GAP}{unit}"
    return f"{number(seconds)}{GAP}s"


def rhythm(interval_seconds: int, schedule: str, timezone: str) -> str:
    """Returns the interval of a monitor, or its cron expression with the time zone."""
    return f"{schedule} ({timezone or 'UTC'})" if schedule else setting(interval_seconds)


def clock(at: Instant, *, seconds: bool = True) -> str:
    return time_of_day(local(at), seconds=seconds)


def day(at: Instant) -> str:
    moment = local(at)
    return f"{moment.day} {moment:%B}"


def short_day(at: Instant) -> str:
    moment = local(at)
    return f"{moment.day} {moment:%b}"


def utc_day(at: Instant) -> str:
    """Returns the name of a day that is counted in UTC, such as a day of availability."""
    moment = to_datetime(at)
    return f"{moment.day} {moment:%B}"


def exactly(at: Instant) -> str:
    moment = local(at)
    return f"{moment:%Y-%m-%d} {time_of_day(moment, seconds=True)} {zone_word()}"


def ago(at: Instant, now: Instant) -> Moment:
    """Returns a relative instant up to one day, else the date."""
    text = f"{duration(now - at)} ago" if now - at < DAY else dated(at, now)
    return Moment(to_text(at), exactly(at), text)


def ahead(at: Instant, now: Instant) -> Moment:
    """Returns a future instant relative to now: whole days from two days on."""
    left = at - now
    text = f"in {count(left // DAY, 'day')}" if left >= 2 * DAY else f"in {duration(left)}"
    return Moment(to_text(at), exactly(at), text)


def moment(at: Instant, now: Instant) -> Moment:
    return Moment(to_text(at), exactly(at), dated(at, now))


def dated(at: Instant, now: Instant) -> str:
    """Returns the time of day, with the day unless it is today, and the year if it differs."""
    then, today = local(at), local(now)
    if then.date() == today.date():
        return clock(at)
    text = f"{day(at)} {clock(at, seconds=False)}"
    return text if then.year == today.year else f"{text} {then.year}"
