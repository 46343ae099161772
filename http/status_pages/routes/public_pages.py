"""Rendered status pages, and their incidents by month.

Everyone may read a listed page, and an unlisted page with its token. Other pages are not found.
Members can read every page of their scope. A page whose whole scope they see has more fields.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal

import msgspec

from ....storage.accounts.rules.access import Need, Permission, sight
from ....storage.engine.pools import Tx
from ....storage.status_pages.queries.status_pages import (
    StatusPageRow,
    select_page,
    select_page_facts,
)
from ....storage.status_pages.rules.status_page import Audience, Page, render
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ..public.feeds import feed_text
from ..public.page_loader import (
    FeedQuery,
    HistoryQuery,
    LoadedMonth,
    MonthQuery,
    TokenQuery,
    addresses_of,
    asked_month,
    kept_page,
    kept_reply,
    public_month,
    read_month,
    snapshot,
)
from ..public.urls import FEED_TYPES, Addresses
from ..schemas.status_pages import IncidentMonth, StatusPageRender
from .status_page_json import incident_json, page_json

_PUBLIC: Final = "/api/v1/public/status-pages/{slug}"
_OWN: Final = "/api/v1/status-pages/{pageID}"


class OwnFeedQuery(msgspec.Struct, frozen=True):
    format: Literal["rss", "atom", "json"] = "rss"


@asynccontextmanager
async def _page_named(ask: Request) -> AsyncIterator[tuple[Tx, StatusPageRow]]:
    async with snapshot(ask) as tx:
        page = await select_page(tx, ask.ids["pageID"])
        if page is None:
            raise Problem("not_found")
        yield tx, page


async def read_public(ask: Request) -> Response:
    answer, _ = await kept_page(
        ask, "render", lambda shown: msgspec.json.encode(page_json(shown.page)), latency=True
    )
    return kept_reply(ask, answer, "application/json")


def _audience(ask: Request, page: StatusPageRow) -> Audience:
    """Returns the audience of the caller.

    A page of an organization shows several projects. Only a member of the whole organization reads
    it as a member.
    """
    seen = sight(ask.who)
    sees_all = seen.everything or page.org in seen.organizations
    return Audience.MEMBER if sees_all or page.project is not None else Audience.PUBLIC


async def read_own(ask: Request) -> StatusPageRender:
    async with _page_named(ask) as (tx, page):
        audience = _audience(ask, page)
        facts = await select_page_facts(tx, page, audience, latency=True)
    return page_json(render(facts, audience))


async def read_public_feed(ask: Request) -> Response:
    form = ask.query.format
    answer, _ = await kept_page(ask, form, lambda shown: _feed(form, shown.page, shown.addresses))
    return kept_reply(ask, answer, _feed_type(form))


async def read_own_feed(ask: Request) -> Response:
    """Returns the feed of a page to a member, as the public sees it."""
    form = ask.query.format
    async with _page_named(ask) as (tx, page):
        facts = await select_page_facts(tx, page, Audience.PUBLIC)
    body = _feed(form, render(facts, Audience.PUBLIC), addresses_of(ask, page, None))
    return Response(body=body, content_type=_feed_type(form))


def _feed(form: str, page: Page, addresses: Addresses) -> bytes:
    return feed_text(form, page, addresses).encode()


def _feed_type(form: str) -> str:
    return f"{FEED_TYPES[form]}; charset=utf-8"


async def read_public_history(ask: Request) -> IncidentMonth:
    async with public_month(ask) as (_, _, shown):
        return _month(shown)


async def read_own_history(ask: Request) -> IncidentMonth:
    month = asked_month(ask)
    async with _page_named(ask) as (tx, page):
        return _month(await read_month(ask, tx, page, month, _audience(ask, page)))


def _month(shown: LoadedMonth) -> IncidentMonth:
    return IncidentMonth(
        month=shown.month.name,
        incidents=[incident_json(one) for one in shown.incidents],
        next_cursor=shown.following,
    )


_ANYBODY: Final = Permission(Need.NOBODY)
_READ: Final = Permission(Need.VIEWER)
_PAGE: Final = ("page", "pageID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_PUBLIC,
        action=_ANYBODY,
        handler=read_public,
        summary="Read a status page as the public sees it.",
        tag="public_pages",
        query=TokenQuery,
        answer=StatusPageRender,
        also=(404,),
        short=True,
    ),
    Route(
        method="GET",
        path=f"{_PUBLIC}/feed",
        action=_ANYBODY,
        handler=read_public_feed,
        summary="The incidents of a status page as RSS 2.0, Atom or JSON Feed 1.1.",
        tag="public_pages",
        query=FeedQuery,
        answer=str,
        content_type=FEED_TYPES["rss"],
        content_types_too=(FEED_TYPES["atom"], FEED_TYPES["json"]),
        also=(404,),
        short=True,
    ),
    Route(
        method="GET",
        path=f"{_PUBLIC}/history",
        action=_ANYBODY,
        handler=read_public_history,
        summary="Incidents of the last 90 days, a month in UTC at a time, newest first.",
        tag="public_pages",
        query=HistoryQuery,
        answer=IncidentMonth,
        also=(404, 429),
    ),
    Route(
        method="GET",
        path=f"{_OWN}/render",
        action=_READ,
        scope=_PAGE,
        handler=read_own,
        summary="Read a status page as members see it, with non-public details.",
        tag="public_pages",
        answer=StatusPageRender,
    ),
    Route(
        method="GET",
        path=f"{_OWN}/feed",
        action=_READ,
        scope=_PAGE,
        handler=read_own_feed,
        summary="The feed of a status page, as the public reads it.",
        tag="public_pages",
        query=OwnFeedQuery,
        answer=str,
        content_type=FEED_TYPES["rss"],
        content_types_too=(FEED_TYPES["atom"], FEED_TYPES["json"]),
    ),
    Route(
        method="GET",
        path=f"{_OWN}/history",
        action=_READ,
        scope=_PAGE,
        handler=read_own_history,
        summary="Incidents of the last 90 days, as members see them.",
        tag="public_pages",
        query=MonthQuery,
        answer=IncidentMonth,
    ),
)
