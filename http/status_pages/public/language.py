"""Language of a public page: its fixed words, numbers, days and durations.

The words of a language are one file, `texts_CODE.toml`. Text of the customer is shown as written.
Console and JSON are English, the language outside of `speaking`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup, escape

from ....storage.core.availability import spelt
from ....storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime
from ....storage.status_pages.rules.page_language import AUTO, ENGLISH, LANGUAGES
from ...ui.formatting import COVERAGE_SAMPLE
from ...ui.shown_time import local

_FOLDER: Final = Path(__file__).parent
# A longer header is not read: a reader has a few languages.
_ACCEPT_LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class Reader:
    """Language of an answer. `chosen` is the language of the URL, which its links keep.

    `path` and `query` belong to the URL without the language, so that a link can switch it.
    `query` is None for an answer without such a link.
    """

    language: str = ENGLISH
    chosen: str | None = None
    query: tuple[tuple[str, str], ...] | None = None
    path: str = ""
    # Another reader of the same URL can get another language.
    varies: bool = False

    def switches(self) -> list[tuple[str, str, str]]:
        """Returns (URL, code, own name) of the other languages."""
        if self.query is None:
            return []
        return [
            (
                f"{self.path}?{urlencode([*self.query, ('lang', code)])}",
                code,
                texts_of(code)["name"],
            )
            for code in LANGUAGES
            if code != self.language
        ]


ENGLISH_READER: Final = Reader()
_reader: ContextVar[Reader] = ContextVar("page_reader", default=ENGLISH_READER)


@cache
def texts_of(code: str) -> Mapping[str, str]:
    return tomllib.loads((_FOLDER / f"texts_{code}.toml").read_text(encoding="utf-8"))


def reader_now() -> Reader:
    return _reader.get()


@contextmanager
def speaking(reader: Reader) -> Iterator[None]:
    """Makes the functions of this module use the language of the reader."""
    before = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(before)


def language_of(setting: str, chosen: str | None, accepted: str) -> str:
    """Returns the language of the URL, else of the page, else the first accepted one."""
    if chosen is not None:
        return chosen
    return accepted if setting == AUTO else setting


@lru_cache(maxsize=1_024)
def accepted_language(header: str) -> str:
    """Returns the language of `Accept-Language` (RFC 9110, 12.5.4), or English."""
    best, weight = ENGLISH, 0.0
    if len(header) > _ACCEPT_LONGEST:
        return best
    for part in header.lower().split(","):
        tag, _, quality = part.strip().partition(";")
        code = tag.strip().split("-")[0]
        found = _weight(quality)
        if code in LANGUAGES and found > weight:
            best, weight = code, found
    return best


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    if not text.strip():
        return 1.0
    try:
        found = float(value) if name.strip() == "q" else 0.0
    except ValueError:
        return 0.0
    return found if 0 <= found <= 1 else 0.0


def phrase(key: str, **values: Any) -> str:
    text = texts_of(_reader.get().language)[key]
    return text.format(**values) if values else text


def many(key: str, n: int, **values: Any) -> str:
    """Returns the text of one or of several."""
    return phrase(f"{key}.{'one' if n == 1 else 'other'}", n=number(n), **values)


def phrase_html(key: str, **values: Any) -> Markup:
    """Returns the text as HTML; values that are not HTML are escaped."""
    return escape(texts_of(_reader.get().language)[key]).format(**values)


def number(value: int) -> str:
    return f"{value:,}".replace(",", phrase("format.thousands"))


def milliseconds(value: int) -> str:
    """Returns whole milliseconds, and `< 1 ms` for 0, as no check takes zero time."""
    text = phrase("format.ms", n=number(value or 1))
    return text if value else phrase("format.less", text=text)


def percent(ratio: Fraction, sample: int) -> str:
    """Returns a percentage. 0 % and 100 % are exact and have no decimals."""
    text = str(100 * int(ratio)) if ratio in (0, 1) else spelt(ratio, sample)
    return phrase("format.percent", n=text.replace(".", phrase("format.decimal")))


def coverage(ratio: Fraction) -> str:
    return percent(ratio, COVERAGE_SAMPLE)


def duration(us: int) -> str:
    """Returns the largest suitable unit, plus the next one for few hours; `< 1 s`, never zero."""
    if us < SECOND:
        return phrase("format.less", text=phrase("format.s", n=1))
    seconds = us // SECOND
    if seconds < 100:
        return phrase("format.s", n=seconds)
    if us < 100 * MINUTE:
        return phrase("format.min", n=seconds // 60)
    if us < 2 * DAY:
        minutes = seconds // 60 % 60
        hours = phrase("format.h", n=seconds // 3600)
        few = minutes and us < 10 * HOUR
        return f"{hours} {phrase('format.min', n=minutes)}" if few else hours
    return phrase("format.days", n=number(seconds // 86_400))


def days_range(first: str, last: str) -> str:
    return phrase("days.range", **{"from": first, "to": last})


def month_word(month: int) -> str:
    return phrase(f"month.{month}")


def day(at: Instant) -> str:
    """Returns `9 June`."""
    moment = local(at)
    return phrase("format.day", day=moment.day, month=month_word(moment.month))


def utc_day(at: Instant) -> str:
    """Returns the name of a day that is counted in UTC, such as a day of availability."""
    moment = to_datetime(at)
    return phrase("format.day", day=moment.day, month=month_word(moment.month))


def dated(at: Instant) -> str:
    """Returns `9 June 2026`."""
    return day_of_year(local(at).date())


def day_of_year(of: date) -> str:
    return phrase("format.day_of_year", day=of.day, month=month_word(of.month), year=of.year)


def month_name(name: str) -> str:
    """Returns the month as text: `2026-06` is June 2026."""
    year, _, month = name.partition("-")
    return phrase("format.month", month=month_word(int(month)), year=year)


def listed(parts: Sequence[str]) -> str:
    """Returns `a`, `a and b` or `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return phrase("list.last", others=", ".join(parts[:-1]), last=parts[-1])
