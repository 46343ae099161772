"""Public routes of a status page: HTML, incidents by month, badges, widget.

Also serves the JSON format of Atlassian Statuspage, for its clients.
"""

from functools import partial
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.status_pages.queries.branding import page_branding
from ....storage.status_pages.queries.status_page_incidents import select_page_incident
from ....storage.status_pages.queries.status_pages import about_of, select_bindings, select_frame
from ....storage.status_pages.rules.status_page import (
    Audience,
    affected_names,
    shown_incidents,
)
from ...ui.form_routes import page_route
from ...ui.render import HTML
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from .badge import component_badge, page_badge, uptime_badge
from .html_renderer import (
    WIDGET_POLICY,
    history_html,
    incident_html,
    page_html,
    policy,
    widget_html,
)
from .language import speaking
from .page_loader import (
    LoadedPage,
    ReaderMonthQuery,
    ReaderQuery,
    TokenQuery,
    addresses_of,
    in_language,
    kept_page,
    kept_reply,
    public_month,
    public_page,
    reader_of,
)
from .statuspage_v2 import FORMS

_PAGE: Final = "/status/{slug}"
# Seconds until a browser loads the page again.
REFRESH: Final = "60"
# Public data, so scripts of every site may read it.
_ANY_SITE: Final = {"Access-Control-Allow-Origin": "*"}


class BadgeQuery(ReaderQuery, frozen=True):
    """Without a component, the badge is of the page. `uptime` requires a component."""

    component: UUID | None = None
    show: Literal["status", "uptime"] = "status"


async def read_page(ask: Request) -> Response:
    answer, shown = await kept_page(
        ask,
        "html",
        lambda shown: page_html(shown.page, shown.branding, shown.addresses),
        latency=True,
    )
    rules = policy(shown.branding)
    return kept_reply(
        ask, answer, HTML, Content_Security_Policy=rules, Refresh=REFRESH, **_said_in(shown)
    )


def _said_in(shown: LoadedPage) -> dict[str, str]:
    return {"Content-Language": shown.reader.language}


async def read_incident(ask: Request) -> Response:
    """Returns the permanent page of an incident, not found if the page does not show it."""
    context = ask.context
    with context.histories.permit(ask.client, context.clock(), takes_token=False):
        async with public_page(ask) as (tx, page):
            about = about_of(page, await select_bindings(tx, page))
            found = await select_page_incident(tx, about, ask.ids["incidentID"])
            frame = await select_frame(tx, page)
            branding = await page_branding(tx, page.branding)
            now = tx.now
    shown = [] if found is None else shown_incidents(frame, [found], Audience.PUBLIC)
    if found is None or not shown:
        raise Problem("not_found")
    addresses = addresses_of(ask, page, ask.query.token)
    names = affected_names(frame, found)
    with speaking(reader_of(ask, page.language)):
        body = incident_html(page.title, branding, addresses, shown[0], names, now)
        headers = in_language() | {"Content-Security-Policy": policy(branding)}
    if shown[0].resolved_at is None:
        headers["Refresh"] = REFRESH
    return Response(body=body, headers=headers, content_type=HTML)


async def read_history(ask: Request) -> Response:
    async with public_month(ask) as (tx, page, shown):
        branding = await page_branding(tx, page.branding)
    addresses = addresses_of(ask, page, ask.query.token)
    following = shown.following and addresses.history(shown.month.name, shown.following)
    with speaking(reader_of(ask, page.language)):
        body = history_html(
            page.title, branding, addresses, shown.month, shown.incidents, following, tx.now
        )
        headers = in_language() | {"Content-Security-Policy": policy(branding)}
    return Response(body=body, headers=headers, content_type=HTML)


async def read_widget(ask: Request) -> Response:
    answer, shown = await kept_page(
        ask, "widget", lambda shown: widget_html(shown.page, shown.branding, shown.addresses)
    )
    return kept_reply(ask, answer, HTML, Content_Security_Policy=WIDGET_POLICY, **_said_in(shown))


async def read_badge(ask: Request) -> Response:
    component, show = ask.query.component, ask.query.show
    what = f"badge {component} {show}"
    answer, _ = await kept_page(ask, what, lambda shown: _badge(shown, component, show))
    return kept_reply(ask, answer, "image/svg+xml", **_ANY_SITE)


def _badge(shown: LoadedPage, component: UUID | None, show: str) -> bytes:
    if component is None:
        if show == "uptime":
            raise Problem("component: is required for an uptime badge")
        return page_badge(shown.page).encode()
    found = next((one for one in shown.page.components if one.uid == component), None)
    if found is None:
        raise Problem("not_found")
    return (uptime_badge(found) if show == "uptime" else component_badge(found)).encode()


async def read_form(ask: Request, *, name: str) -> Response:
    """Returns a page as JSON. `name` is one of FORMS."""
    answer, _ = await kept_page(
        ask, name, lambda shown: msgspec.json.encode(FORMS[name](shown.page, shown.addresses))
    )
    return kept_reply(ask, answer, "application/json", **_ANY_SITE)


_ANYBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    *(
        Route(
            method="GET",
            path=f"{_PAGE}/api/v2/{name}",
            action=_ANYBODY,
            handler=partial(read_form, name=name),
            summary="A status page in the format of Statuspage.",
            query=TokenQuery,
            in_document=False,
            short=True,
        )
        for name in FORMS
    ),
    Route(
        method="GET",
        path=f"{_PAGE}/badge.svg",
        action=_ANYBODY,
        handler=read_badge,
        summary="The badge of a status page or component.",
        query=BadgeQuery,
        in_document=False,
        short=True,
    ),
    page_route(
        method="GET",
        path=f"{_PAGE}/widget",
        action=_ANYBODY,
        handler=read_widget,
        summary="The first line of a status page, to be framed.",
        query=ReaderQuery,
        short=True,
    ),
    page_route(
        method="GET",
        path=_PAGE,
        action=_ANYBODY,
        handler=read_page,
        summary="A status page for people.",
        query=ReaderQuery,
        short=True,
    ),
    page_route(
        method="GET",
        path=f"{_PAGE}/incidents/{{incidentID}}",
        action=_ANYBODY,
        handler=read_incident,
        summary="An incident on a status page, for people.",
        query=ReaderQuery,
    ),
    page_route(
        method="GET",
        path=f"{_PAGE}/history",
        action=_ANYBODY,
        handler=read_history,
        summary="A status page's incidents, a month at a time, for people.",
        query=ReaderMonthQuery,
    ),
)
