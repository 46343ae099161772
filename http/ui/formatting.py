"""How numbers, instants and durations are spelt on every page, so that no two pages differ.

A unit follows its number after a narrow space that never breaks. A percentage has as many digits as
its sample bears, and is cut, never rounded up.
"""

from dataclasses import dataclass
from fractions import Fraction

from ...storage.core.availability import spelt
from ...storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime, to_text

GAP = "\u202f"
NOTHING = "—"
# Coverage is told to a tenth, however many results stand behind it.
COVERAGE_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant for a `time` element: exact for machines and on hover, short to read."""

    iso: str
    exact: str
    text: str


def number(value: int) -> str:
    """Thousands apart: 4 100."""
    return f"{value:,}".replace(",", GAP)


_SPELT = {"tls": "TLS", "ssl": "SSL", "sslmode": "SSL mode", "ip": "IP", "http": "HTTP"}


def label(name: str) -> str:
    """A setting in words: `follow_redirects` is Follow redirects, `password_ref` Password (secret).
    A binding of a scenario is called by its own name."""
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
    """Whole ones, as they are measured: none of them is less than one, and not nothing."""
    return f"{number(value)}{GAP}ms" if value else f"< 1{GAP}ms"


def percent(ratio: Fraction, sample: int) -> str:
    """All of all and nothing of all need no decimals: they are exact."""
    if ratio in (0, 1):
        return f"{100 * int(ratio)}{GAP}%"
    return f"{spelt(ratio, sample)}{GAP}%"


def coverage(ratio: Fraction | None) -> str:
    return NOTHING if ratio is None else percent(ratio, COVERAGE_SAMPLE)


def duration(us: int) -> str:
    """The largest unit that says it, and the next one where hours or days are few."""
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
    """A length that somebody set: exactly, in the largest unit that divides it."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{GAP}{unit}"
    return f"{number(seconds)}{GAP}s"


def clock(at: Instant, *, seconds: bool = True) -> str:
    return f"{to_datetime(at):%H:%M:%S}" if seconds else f"{to_datetime(at):%H:%M}"


def day(at: Instant) -> str:
    moment = to_datetime(at)
    return f"{moment.day} {moment:%B}"


def exactly(at: Instant) -> str:
    return f"{to_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def ago(at: Instant, now: Instant) -> Moment:
    """Relative up to a day, then the day."""
    text = f"{duration(now - at)} ago" if now - at < DAY else dated(at, now)
    return Moment(to_text(at), exactly(at), text)


def moment(at: Instant, now: Instant) -> Moment:
    return Moment(to_text(at), exactly(at), dated(at, now))


def dated(at: Instant, now: Instant) -> str:
    """The time of day while it is today, else the day too, and the year where it is another."""
    then, today = to_datetime(at), to_datetime(now)
    if then.date() == today.date():
        return clock(at)
    text = f"{day(at)} {then:%H:%M}"
    return text if then.year == today.year else f"{text} {then.year}"
