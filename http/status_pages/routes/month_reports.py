"""Reports for a calendar month: of a service, and of a status page."""

from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import is_timezone, to_text
from ....storage.status_pages.queries.page_months import select_service_month
from ....storage.status_pages.queries.status_pages import select_page
from ...services.routes.service_json import service_named
from ...ui.form_routes import page_route
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ..public.month_report import (
    figures_json,
    month_asked,
    page_month,
    page_month_json,
    read_month_page,
    read_public_month,
)
from ..public.page_loader import ReaderQuery, TokenQuery
from ..schemas.months import PageMonthReport, ServiceMonthReport


class MonthReportQuery(msgspec.Struct, frozen=True):
    """`month` is YYYY-MM, by default the last month that is over."""

    month: str | None = None


class PublicMonthReportQuery(TokenQuery, frozen=True):
    month: str | None = None


class MonthPageQuery(ReaderQuery, frozen=True):
    month: str | None = None


class ServiceMonthReportQuery(MonthReportQuery, frozen=True):
    timezone: str = "UTC"


async def read_service(ask: Request) -> ServiceMonthReport:
    zone = ask.query.timezone
    if not is_timezone(zone):
        raise Problem("timezone: must be the name of an IANA time zone")
    async with ask.context.pool.transaction("service_month", read_only=True) as tx:
        row = await service_named(ask, tx)
        month = month_asked(ask.query.month, zone, tx)
        found = await select_service_month(tx, row, month.span)
    return ServiceMonthReport(
        month=month.name,
        timezone=zone,
        from_=to_text(month.span.from_),
        to=to_text(month.span.until),
        figures=figures_json(found),
    )


async def read_page(ask: Request) -> PageMonthReport:
    async with ask.context.pool.transaction("page_month", read_only=True) as tx:
        page = await select_page(tx, ask.ids["pageID"])
        if page is None:
            raise Problem("not_found")
        return page_month_json(*await page_month(ask, tx, page))


_VIEW: Final = Permission(Need.VIEWER)
_ANYBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/services/{serviceID}/month-report",
        action=_VIEW,
        scope=("project", "projectID"),
        handler=read_service,
        summary="Uptime of a service in a calendar month of a time zone.",
        tag="reports",
        query=ServiceMonthReportQuery,
        answer=ServiceMonthReport,
    ),
    Route(
        method="GET",
        path="/api/v1/status-pages/{pageID}/month-report",
        action=_VIEW,
        scope=("page", "pageID"),
        handler=read_page,
        summary="Uptime of the components in a calendar month of the page's zone.",
        tag="reports",
        query=MonthReportQuery,
        answer=PageMonthReport,
    ),
    Route(
        method="GET",
        path="/api/v1/public/status-pages/{slug}/month-report",
        action=_ANYBODY,
        handler=read_public_month,
        summary="Uptime of the components in a calendar month, for the public.",
        tag="reports",
        query=PublicMonthReportQuery,
        answer=PageMonthReport,
        also=(404, 429),
    ),
    page_route(
        method="GET",
        path="/status/{slug}/month",
        action=_ANYBODY,
        handler=read_month_page,
        summary="Uptime of the components in a calendar month, to read and to print.",
        query=MonthPageQuery,
    ),
)
