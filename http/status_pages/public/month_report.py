"""Report of a status page for a calendar month in its zone: JSON, and a page to print."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from zoneinfo import ZoneInfo

from ....storage.core.availability import Withheld
from ....storage.core.instant import to_datetime, to_text
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Tx
from ....storage.status_pages.queries.branding import page_branding
from ....storage.status_pages.queries.page_months import ComponentMonth, select_component_months
from ....storage.status_pages.queries.status_pages import StatusPageRow, select_bindings
from ....storage.status_pages.rules.page_month import (
    MonthFigure,
    ReportMonth,
    report_month,
    report_months,
)
from ....storage.status_pages.rules.status_page_history import MonthRefusal
from ...ui.formatting import NOTHING
from ...ui.render import HTML
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.schema import known
from ..schemas.months import ComponentMonthReport, MonthFigures, PageMonthReport
from .html_renderer import month_report_html, policy
from .language import coverage, day_of_year, duration, percent, phrase, speaking
from .page_loader import addresses_of, in_language, public_page, reader_of
from .page_text import withheld_word


@dataclass(frozen=True, slots=True)
class MonthLine:
    """Line of the report. A withheld figure is a dash with its reason.

    `span` is the covered part of the month, empty for the whole month.
    """

    name: str
    uptime: str
    down: str
    excluded: str
    coverage: str
    span: str = ""


def month_asked(name: str | None, zone: str, tx: Tx) -> ReportMonth:
    """Returns the month. Raises: Problem invalid_month, month_outside_history."""
    found = report_month(name, zone, tx.now)
    if isinstance(found, MonthRefusal):
        raise Problem(found.value)
    return found


async def page_month(
    ask: Request, tx: Tx, page: StatusPageRow
) -> tuple[ReportMonth, list[ComponentMonth]]:
    month = month_asked(ask.query.month, page.time_zone, tx)
    bindings = await select_bindings(tx, page)
    days = ask.context.options.heartbeat_days
    return month, await select_component_months(tx, page.org, bindings, month.span, days)


def page_month_json(month: ReportMonth, found: Sequence[ComponentMonth]) -> PageMonthReport:
    return PageMonthReport(
        month=month.name,
        timezone=month.zone,
        from_=to_text(month.span.from_),
        to=to_text(month.span.until),
        components=[
            ComponentMonthReport(
                id=one.component.uid,
                name=one.component.name,
                group=one.component.group,
                figures=known(None if one.figure is None else figures_json(one.figure)),
            )
            for one in found
        ],
    )


def figures_json(found: MonthFigure) -> MonthFigures:
    split, covered = found.split, found.covered
    is_withheld = found.availability.withheld_reason is not None
    return MonthFigures(
        uptime_percent=known(found.availability.uptime_percent),
        withheld_reason=known(found.availability.withheld_reason),
        coverage=found.availability.coverage,
        covered_from=known(None if covered is None else to_text(covered.from_)),
        covered_to=known(None if covered is None else to_text(covered.until)),
        down_us=known(None if is_withheld else split.bad_us),
        unknown_us=known(None if is_withheld else split.unknown_us),
        excluded_us=known(None if is_withheld else split.excluded_us),
    )


async def read_public_month(ask: Request) -> PageMonthReport:
    context = ask.context
    with context.histories.permit(ask.client, context.clock(), takes_token=False):
        async with public_page(ask) as (tx, page):
            return page_month_json(*await page_month(ask, tx, page))


async def read_month_page(ask: Request) -> Response:
    context = ask.context
    with context.histories.permit(ask.client, context.clock(), takes_token=False):
        async with public_page(ask) as (tx, page):
            month, found = await page_month(ask, tx, page)
            branding = await page_branding(tx, page.branding)
            is_over, now = month.span.until <= tx.now, tx.now
    with speaking(reader_of(ask, page.language)):
        body = month_report_html(
            page.title,
            branding,
            addresses_of(ask, page, ask.query.token),
            month,
            report_months(page.time_zone, now),
            [_line(one, month) for one in found],
            whole=is_over,
        )
        headers = in_language() | {"Content-Security-Policy": policy(branding)}
    return Response(body=body, headers=headers, content_type=HTML)


def _span_text(covered: TimeSpan, zone: str) -> str:
    """Returns `1 December 2025 00:00 to 5 December 2025 00:00`, in the zone of the page."""
    edges = [to_datetime(at).astimezone(ZoneInfo(zone)) for at in (covered.from_, covered.until)]
    first, last = (f"{day_of_year(at.date())} {at:%H:%M}" for at in edges)
    return phrase("report.span", **{"from": first, "to": last})


def _line(one: ComponentMonth, month: ReportMonth) -> MonthLine:
    name, found = one.component.name, one.figure
    if found is None:
        return MonthLine(name, f"{NOTHING} {phrase('report.manual')}", NOTHING, NOTHING, NOTHING)
    share = coverage(Fraction(str(found.availability.coverage)))
    availability = found.split.availability()
    if found.availability.withheld_reason is not None or availability is None:
        why = withheld_word(found.availability.withheld_reason or Withheld.NOTHING_MEASURED)
        return MonthLine(name, f"{NOTHING} {why}", NOTHING, NOTHING, share)
    covered = found.covered
    down, excluded = found.split.bad_us, found.split.excluded_us
    return MonthLine(
        name,
        percent(availability, found.sample),
        duration(down) if down else phrase("report.none"),
        duration(excluded) if excluded else phrase("report.none"),
        share,
        "" if covered is None or covered == month.span else _span_text(covered, month.zone),
    )
