"""Subscribers of a status page, for editors: search by part of an address, and removal."""

from typing import Final

import msgspec

from ....storage.accounts.transactions.authorize import NOT_FOUND
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.status_pages.queries.status_page_subscribers import (
    count_confirmed,
    find_subscribers,
)
from ....storage.status_pages.rules.subscription import shown_address
from ....storage.status_pages.transactions.unsubscribe import remove_subscriber
from ...ui.form_values import stripped, uuid_in
from ...ui.formatting import exactly, number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response, Route
from .page_access import ONE, reached, route

SHOWN_MOST: Final = 100
WANTED_LONGEST: Final = 320
_ALL: Final = f"{ONE}/subscribers"


class FollowersQuery(msgspec.Struct, frozen=True):
    """`find` is a part of an address."""

    find: str = ""


async def render_subscriber_list(ask: Request) -> Response:
    find = ask.query.find.strip()[:WANTED_LONGEST]
    async with ask.context.pool.transaction("console_subscribers", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        found = await reached(ask, tx)
        row = found.row
        told = await count_confirmed(tx, row.org, row.id)
        rows = await find_subscribers(tx, row.org, row.id, find, SHOWN_MOST + 1)
    return page(
        "status_pages/console/subscriber_list.html",
        frame=frame,
        row=row,
        told=number(told),
        is_one=told == 1,
        find=find,
        rows=rows[:SHOWN_MOST],
        is_cut=len(rows) > SHOWN_MOST,
        shown_most=SHOWN_MOST,
        day=_day,
        address=shown_address,
    )


async def remove(ask: Request) -> Response:
    """Removes a subscriber. Idempotent: an absent subscriber is not an error."""
    subscriber = uuid_in(stripped(ask, "remove"))
    async with ask.context.pool.transaction("console_page_named", read_only=True) as tx:
        page_uid = (await reached(ask, tx)).row.uid
    try:
        async with ask.context.pool.transaction("console_remove_subscriber") as tx:
            await remove_subscriber(tx, ask.who, page_uid, subscriber)
    except Refused as refused:
        if refused.code != NOT_FOUND:
            raise
    here = f"/projects/{ask.ids['projectID']}/status-pages/{ask.ids['pageID']}/subscribers"
    return redirect(here)


def _day(at: Instant) -> str:
    return exactly(at).partition(" ")[0]


ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        _ALL,
        render_subscriber_list,
        "The subscribers of a status page.",
        query=FollowersQuery,
    ),
    route("POST", _ALL, remove, "Removes a subscriber of a status page."),
)
