"""History of a status page by calendar months in UTC, over the last 90 days.

The days are those of the bars: 90 including today, which is not over. A month is shown without the
part before the first day or in the future.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, Instant, from_datetime, to_datetime
from ...core.time_span import TimeSpan
from .status_page import DAYS

# Limit of incidents per response.
PAGE_MOST: Final = 50

_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


class MonthRefusal(StrEnum):
    INVALID_MONTH = "invalid_month"
    MONTH_OUTSIDE_HISTORY = "month_outside_history"


@dataclass(frozen=True, slots=True)
class Month:
    """Month of the history. `name` is YYYY-MM; `shown` is the visible part, its end exclusive."""

    name: str
    shown: TimeSpan


def earliest_shown(now: Instant) -> Instant:
    """Returns the midnight at which the history begins."""
    return Instant(now - now % DAY - (DAYS - 1) * DAY)


def month_of(name: str | None, now: Instant) -> Month | MonthRefusal:
    """Returns the requested month, by default the current one."""
    if name is None:
        name = _name(now)
    if not _MONTH.fullmatch(name):
        return MonthRefusal.INVALID_MONTH
    names = months_shown(now)
    if name not in names:
        return MonthRefusal.MONTH_OUTSIDE_HISTORY
    place = names.index(name)
    ends = _begin(names[place - 1]) if place else Instant(now + 1)
    return Month(name, TimeSpan(max(_begin(name), earliest_shown(now)), ends))


def months_shown(now: Instant) -> list[str]:
    """Returns the months of the history, latest first."""
    names = [_name(now)]
    while (begins := _begin(names[-1])) > earliest_shown(now):
        names.append(_name(Instant(begins - 1)))
    return names


def _name(at: Instant) -> str:
    return to_datetime(at).date().isoformat()[:7]


def _begin(name: str) -> Instant:
    year, month = map(int, name.split("-"))
    return from_datetime(datetime(year, month, 1, tzinfo=UTC))
