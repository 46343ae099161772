"""Subscriptions to status pages: public request, confirmation and end; list and removal."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.status_pages.queries.status_page_subscribers import SubscriberItem as Row
from ....storage.status_pages.queries.status_page_subscribers import select_subscribers
from ....storage.status_pages.queries.status_pages import select_status_page
from ....storage.status_pages.rules.subscription import (
    SubscriberKind,
    SubscriptionRequest,
    shown_address,
)
from ....storage.status_pages.transactions.edit_pages import EDIT
from ....storage.status_pages.transactions.unsubscribe import remove_subscriber
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ..public.page_loader import TokenQuery
from ..public.subscription_actions import (
    confirm_subscription,
    end_subscription,
    request_subscription,
)
from ..schemas.subscriptions import Subscribe, Subscriber

_OF_PAGE: Final = "/api/v1/status-pages/{pageID}/subscribers"
_PUBLIC: Final = "/api/v1/public/status-pages/{slug}/subscribers"
_ONE: Final = "/api/v1/public/subscriptions/{token}"
BODY_LARGEST: Final = 64 << 10


def _subscriber_json(row: Row) -> Subscriber:
    is_mail = row.kind == SubscriberKind.MAIL
    return Subscriber(
        id=row.uid,
        status_page_id=row.page_uid,
        email=known(row.address if is_mail else None),
        url=known(None if is_mail else shown_address(row.kind, row.address)),
        kind=SubscriberKind(row.kind),
        confirmed_at=known(None if row.confirmed_at is None else to_text(row.confirmed_at)),
        bounces=known(row.bounces or None),
        suspended_at=known(None if row.suspended_at is None else to_text(row.suspended_at)),
        created_at=to_text(row.created_at),
    )


async def list_subscribers(ask: Request) -> list[Subscriber]:
    async with ask.context.pool.transaction("list_subscribers", read_only=True) as tx:
        page = await select_status_page(tx, ask.ids["pageID"])
        if page is None:
            raise Problem("not_found")
        rows = await select_subscribers(tx, page.org, page.id)
    return [_subscriber_json(row) for row in rows]


async def remove(ask: Request) -> None:
    page, subscriber = ask.ids["pageID"], ask.ids["subscriberID"]
    async with ask.context.pool.transaction("remove_subscriber") as tx:
        await remove_subscriber(tx, ask.who, page, subscriber)


async def subscribe(ask: Request) -> None:
    await request_subscription(ask, _asked(ask.body))


def _asked(body: Subscribe) -> SubscriptionRequest:
    email, url, components = given(body.email), given(body.url), given(body.components)
    if (email is None) == (url is None):
        raise Problem("email: one of email and url is required")
    kind = SubscriberKind.MAIL if url is None else SubscriberKind(given(body.kind) or "webhook")
    if url is None and given(body.kind) is not None:
        raise Problem("kind: applies to a url only")
    return SubscriptionRequest(
        kind=kind,
        address=str(url if email is None else email),
        components=None if components is None else frozenset(components),
    )


async def confirm(ask: Request) -> None:
    await confirm_subscription(ask, ask.words["token"])


async def leave(ask: Request) -> None:
    await end_subscription(ask, ask.words["token"])


_ANYBODY: Final = Permission(Need.NOBODY)
_PAGE: Final = ("page", "pageID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_OF_PAGE,
        action=EDIT,
        scope=_PAGE,
        handler=list_subscribers,
        summary="List the subscribers of a status page.",
        tag="subscriptions",
        answer=list[Subscriber],
    ),
    Route(
        method="DELETE",
        path=f"{_OF_PAGE}/{{subscriberID}}",
        action=EDIT,
        scope=_PAGE,
        handler=remove,
        summary="Remove a subscriber.",
        tag="subscriptions",
        status=204,
    ),
    Route(
        method="POST",
        path=_PUBLIC,
        action=_ANYBODY,
        handler=subscribe,
        summary="Request a subscription to a status page; the address must confirm it.",
        tag="subscriptions",
        query=TokenQuery,
        body=Subscribe,
        body_largest=BODY_LARGEST,
        status=202,
        also=(404, 409, 429, 503),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/confirm",
        action=_ANYBODY,
        handler=confirm,
        summary="Confirm a subscription.",
        tag="subscriptions",
        body_ignored=True,
        body_largest=BODY_LARGEST,
        also=(404, 429),
    ),
    Route(
        method="POST",
        path=_ONE,
        action=_ANYBODY,
        handler=leave,
        summary="Unsubscribe by one click (RFC 8058).",
        tag="subscriptions",
        body_ignored=True,
        body_largest=BODY_LARGEST,
        also=(404,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        action=_ANYBODY,
        handler=leave,
        summary="Unsubscribe.",
        tag="subscriptions",
        status=204,
        also=(404,),
    ),
)
