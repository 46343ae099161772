"""Calendar months of a report, in a time zone, and the figure of one month.

A month begins at the first instant of its first local day. The figure counts only time that was
sealed; if stored time is missing, it is withheld.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from ...core.availability import Availability, Withheld, figure
from ...core.instant import Instant, from_datetime, to_datetime
from ...core.sli import Split
from ...core.time_span import TimeSpan
from .status_page_history import MonthRefusal

# Months of a report, with the present one.
MONTHS_MOST: Final = 25
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class ReportMonth:
    """Month YYYY-MM with the whole span of it, also if it is not over."""

    name: str
    zone: str
    span: TimeSpan


@dataclass(frozen=True, slots=True)
class MonthFigure:
    """Figure of a month. `covered` is the part of the month with sealed time, None without any.

    `sample` is the number of its minutes or runs, for the precision of the text.
    """

    availability: Availability
    split: Split
    covered: TimeSpan | None
    sample: int = 0


def report_month(name: str | None, zone: str, now: Instant) -> ReportMonth | MonthRefusal:
    """Returns the named month, by default the last one that is over."""
    known = report_months(zone, now)
    if name is None:
        name = known[1]
    if not _MONTH.fullmatch(name):
        return MonthRefusal.INVALID_MONTH
    if name not in known:
        return MonthRefusal.MONTH_OUTSIDE_HISTORY
    year, month = int(name[:4]), int(name[5:])
    following = (year + month // 12, month % 12 + 1)
    return ReportMonth(name, zone, TimeSpan(_begin(year, month, zone), _begin(*following, zone)))


def report_months(zone: str, now: Instant) -> list[str]:
    """Returns the months of reports, latest first."""
    local = to_datetime(now).astimezone(ZoneInfo(zone))
    first = local.year * 12 + local.month - 1
    months = (divmod(first - n, 12) for n in range(MONTHS_MOST))
    return [f"{year:04}-{month + 1:02}" for year, month in months]


def month_figure(
    covered: TimeSpan | None,
    stored_us: int,
    split: Split,
    sample: int,
    *,
    over_at: Instant | None = None,
    edge_us: int = 0,
) -> MonthFigure:
    """Returns the figure of the covered time, of which `stored_us` are stored.

    `over_at` is the end of a month that is over: the covered time must reach it. `edge_us` is time
    at the edges that hours do not have, and whose results cannot be read.
    """
    if covered is None:
        return MonthFigure(Availability(None, 0.0, Withheld.NOTHING_SEALED), Split(), None)
    found = figure(split)
    if over_at is not None and covered.until < over_at:
        found = Availability(None, found.coverage, Withheld.NOT_SEALED_YET)
    elif edge_us and stored_us + edge_us == covered.length_us:
        found = Availability(None, found.coverage, Withheld.EDGE_NOT_STORED)
    elif stored_us != covered.length_us:
        found = Availability(None, found.coverage, Withheld.STORAGE_GAP)
    return MonthFigure(found, split, covered, sample)


def covered_part(
    month: TimeSpan, begun: Instant | None, through: Instant | None
) -> TimeSpan | None:
    """Returns the part of a month from the begin of an object to its seal, None if it is empty."""
    if begun is None or through is None:
        return None
    from_, until = max(month.from_, begun), min(month.until, through)
    return TimeSpan(from_, until) if from_ < until else None


def _begin(year: int, month: int, zone: str) -> Instant:
    local = datetime(year, month, 1, tzinfo=ZoneInfo(zone))
    # A local midnight that does not exist is moved to the first instant of the day.
    return from_datetime(local.astimezone(UTC))
