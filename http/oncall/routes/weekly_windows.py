"""Weekly windows in JSON and in forms: of on-call layers and of support hours."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

from ....storage.core.refusal import Refused
from ....storage.oncall.rules.weekly_hours import (
    DAY_MINUTES,
    WEEKDAYS,
    clock_minutes,
    clock_text,
    weekday_numbers,
    window_of,
)
from ....storage.oncall.rules.weekly_hours import WeeklyWindow as WindowRule
from ...wire.errors import Problem
from ..schemas import Weekday, WeeklyWindow, WeeklyWindowRequest

_LINE: Final = re.compile(r"(?:([a-z,\- ]+?) )?(\d\d?(?::\d\d)?) ?- ?(\d\d?(?::\d\d)?)")


def window_json(text: str) -> WeeklyWindow:
    """Returns the window of its stored form."""
    window = window_of(text)
    return WeeklyWindow(
        weekdays=[WEEKDAYS[day] for day in window.weekdays],
        from_=clock_text(window.from_),
        to=clock_text(window.until),
    )


def window_given(field: str, body: WeeklyWindowRequest) -> WindowRule:
    """Returns the requested window. Raises: Problem with the field."""
    from_, until = clock_minutes(body.from_), clock_minutes(body.to)
    if from_ is None or from_ == DAY_MINUTES:
        raise Problem(f"{field}.from: must be a time such as 09:00")
    if until is None:
        raise Problem(f"{field}.to: must be a time such as 17:00, or 24:00")
    return WindowRule(weekday_numbers(body.weekdays), from_, until)


def windows_typed(field: str, text: str) -> list[WeeklyWindowRequest]:
    """Returns the windows of a form text: one in each line, such as `mon-fri 9-17`.

    Raises:
        Refused invalid.
    """
    found = []
    for line in filter(None, (line.strip().lower() for line in text.splitlines())):
        parts = _LINE.fullmatch(line)
        try:
            if parts is None:
                raise ValueError(line)
            days, from_, until = parts[1], _full(parts[2]), _full(parts[3])
            if clock_minutes(from_) in (None, DAY_MINUTES) or clock_minutes(until) is None:
                raise ValueError(line)
            weekdays = [WEEKDAYS[day] for day in sorted(set(_days(days or "mon-sun")))]
        except ValueError:
            rule = f"{line[:40]!r} is not such as mon-fri 9-17"
            raise Refused("invalid", field, rule) from None
        found.append(
            WeeklyWindowRequest(weekdays=cast("list[Weekday]", weekdays), from_=from_, to=until)
        )
    return found


def windows_spelt(stored: Sequence[str]) -> str:
    """Returns the form text of windows in their stored form."""
    return "\n".join(_spelt(window_of(text)) for text in stored)


def _spelt(window: WindowRule) -> str:
    days = window.weekdays
    names = ",".join(WEEKDAYS[day] for day in days)
    if len(days) > 2 and days[-1] - days[0] == len(days) - 1:
        names = f"{WEEKDAYS[days[0]]}-{WEEKDAYS[days[-1]]}"
    return f"{names} {clock_text(window.from_)}-{clock_text(window.until)}"


def _full(clock: str) -> str:
    """Returns a time with two digits and minutes."""
    hour, _, minute = clock.partition(":")
    return f"{hour:0>2}:{minute or '00'}"


def _days(text: str) -> Iterator[int]:
    """Yields the numbers of weekdays such as `sat-mon,wed`. Raises: ValueError."""
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        begins, ends = WEEKDAYS.index(first), WEEKDAYS.index(last or first)
        for day in range(begins, ends + 1 if ends >= begins else ends + 8):
            yield day % 7
