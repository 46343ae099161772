"""Forms to subscribe to a status page, confirm and unsubscribe, without scripts.

A confirmation or an end requires a POST, because mail scanners follow links.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.refusal import Refused
from ....storage.core.token import TokenKind, kind_of
from ....storage.status_pages.queries.branding import page_branding, shown_branding
from ....storage.status_pages.queries.status_page_subscribers import (
    Subscription,
    select_subscription,
)
from ....storage.status_pages.queries.status_pages import select_bindings
from ....storage.status_pages.rules.branding import Branding
from ....storage.status_pages.rules.subscription import (
    CHATS,
    SubscriberKind,
    SubscriptionRequest,
    shown_address,
)
from ...ui.form_routes import page_route
from ...ui.render import HTML
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import Request, Response, Route
from .html_renderer import policy, subscribe_html, text_html
from .page_loader import TokenQuery, addresses_of, public_page
from .page_text import listed
from .subscription_actions import confirm_subscription, end_subscription, request_subscription
from .urls import Addresses

_SUBSCRIBE: Final = "/status/{slug}/subscribe"
_CONFIRM: Final = "/status/confirm/{token}"
_LEAVE: Final = "/status/unsubscribe/{token}"
_FIELDS: Final = {"email": "email", "url": "url", "components": "component"}
_NO_TRACE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


async def show_form(ask: Request) -> Response:
    return await _form(ask, {}, "", "")


async def send_form(ask: Request) -> Response:
    typed = {name: values[-1].strip() for name, values in ask.form.items() if values}
    chosen = ask.form.get("component", [])
    field = "url" if typed.get("url") and not typed.get("email") else "email"
    if typed.get("url") and typed.get("email"):
        return await _form(ask, ask.form, "url", "give either an e-mail address or a URL")
    try:
        kind = SubscriberKind.MAIL if field == "email" else _kind(typed.get("kind", ""))
        await request_subscription(ask, _asked(kind, typed.get(field, ""), chosen))
    except Refused as refused:
        if refused.code != "invalid":
            raise
        return await _form(ask, ask.form, refused.field, refused.message)
    except Problem as problem:
        if problem.code not in ("rate_limited", "mail_unavailable"):
            raise
        return await _form(ask, ask.form, field, _WHY[problem.code], problem)
    async with public_page(ask) as (tx, page):
        branding = await page_branding(tx, page.branding)
        addresses = addresses_of(ask, page, ask.query.token)
    return _answer_text(
        branding,
        addresses,
        page.title,
        *_ASKED["chat" if kind in CHATS else field],
    )


def _kind(text: str) -> SubscriberKind:
    """Returns the kind of a URL; an absent or unknown one is a webhook."""
    return next((kind for kind in CHATS if kind == text), SubscriberKind.WEBHOOK)


def _asked(kind: SubscriberKind, address: str, chosen: Sequence[str]) -> SubscriptionRequest:
    try:
        components = frozenset(UUID(text) for text in chosen)
    except ValueError:
        raise Refused("invalid", "components", "must be components of the page") from None
    return SubscriptionRequest(kind=kind, address=address, components=components or None)


_ASKED: Final = {
    "email": (
        "Check your inbox",
        "Check your inbox for a confirmation link. It expires in 24 hours. At most one e-mail"
        " per address is sent in 10 minutes.",
    ),
    "chat": (
        "Check your channel",
        "We sent a confirmation link to the channel. It expires in 24 hours. At most one message"
        " per URL is sent in 10 minutes.",
    ),
    "url": (
        "Confirm your webhook",
        "We sent a challenge to the URL; answer it to confirm. At most one challenge per URL"
        " is sent in 10 minutes.",
    ),
}
_WHY: Final = {
    "rate_limited": "was requested too often; try again later",
    "mail_unavailable": "cannot receive messages from this installation",
}


async def _form(
    ask: Request,
    typed: Mapping[str, list[str]],
    field: str,
    fault: str,
    problem: Problem | None = None,
) -> Response:
    """Returns the form with its submitted values, and the fault at its field."""
    async with public_page(ask) as (tx, page):
        branding = await page_branding(tx, page.branding)
        bindings = await select_bindings(tx, page)
        mailing = await mailing_in(tx, ask.context)
    body = subscribe_html(
        page.title,
        branding,
        addresses_of(ask, page, ask.query.token),
        components=[(str(one.uid), one.name) for one in bindings],
        can_mail=mailing.can_mail,
        can_link=mailing.can_link,
        typed={name: values[-1] for name, values in typed.items() if values},
        chosen=typed.get("component", []),
        wrong={_FIELDS.get(field, field): fault} if fault else {},
    )
    headers = _NO_TRACE | {"Content-Security-Policy": policy(branding)}
    status = 200
    if fault:
        status = 400 if problem is None else problem.status
        headers |= {} if problem is None else problem.headers
    return Response(body=body, status=status, headers=headers, content_type=HTML)


async def show_confirm(ask: Request) -> Response:
    found, branding = await _subscription(ask)
    if found is None or not found.can_confirm:
        return _gone(ask, branding)
    of = f": {listed(found.chosen)}" if found.chosen else ""
    address = shown_address(found.kind, found.address)
    said = f"{address} will receive incident updates of {found.page_title}{of}."
    heading = f"Confirm your subscription to {found.page_title}"
    return _answer_text(
        branding, _home(ask), found.page_title, heading, said, "Confirm subscription"
    )


async def confirm(ask: Request) -> Response:
    found, branding = await _subscription(ask)
    try:
        await confirm_subscription(ask, ask.words["token"])
    except Problem as problem:
        if problem.code == "not_found":
            return _gone(ask, branding)
        if problem.code != "rate_limited":
            raise
        said = "Too many confirmations from your network. Try again in 1 minute."
        return _answer_text(
            branding,
            _home(ask),
            "",
            "Not confirmed",
            said,
            "Confirm subscription",
            status=problem.status,
            more=problem.headers,
        )
    assert found is not None, "it was confirmed"
    said = "You receive messages on new incidents, updates and resolution."
    return _answer_text(branding, _home(ask), found.page_title, "Subscription confirmed", said)


async def show_leave(ask: Request) -> Response:
    found, branding = await _subscription(ask)
    if kind_of(ask.words["token"]) is not TokenKind.SUBSCRIPTION:
        return _gone(ask, branding)
    if found is None:
        return _answer_text(
            branding, _home(ask), "", "You are not subscribed", "This subscription has ended."
        )
    address = shown_address(found.kind, found.address)
    said = f"{address} receives incident updates of {found.page_title}."
    heading = "Unsubscribe from updates?"
    return _answer_text(branding, _home(ask), found.page_title, heading, said, "Unsubscribe")


async def leave(ask: Request) -> Response:
    _, branding = await _subscription(ask)
    if kind_of(ask.words["token"]) is not TokenKind.SUBSCRIPTION:
        return _gone(ask, branding)
    await end_subscription(ask, ask.words["token"])
    said = "This subscription has ended. You can subscribe again at any time."
    return _answer_text(branding, _home(ask), "", "You are unsubscribed", said)


async def _subscription(ask: Request) -> tuple[Subscription | None, Branding]:
    """Returns the subscription of the token, None if the token is unknown."""
    async with ask.context.pool.transaction("read_subscription", read_only=True) as tx:
        found = await select_subscription(tx, ask.words["token"])
        if found is None:
            return None, await shown_branding(tx)
        return found, await page_branding(tx, found.branding)


def _home(ask: Request) -> Addresses:
    """Returns the base address without a page. A subscription token opens no unlisted page."""
    return Addresses(ask.context.options.public_base_url, "")


def _gone(ask: Request, branding: Branding) -> Response:
    said = (
        "The link is unknown or has expired. Subscribe again on the status page to get a new one."
    )
    return _answer_text(branding, _home(ask), "", "This link has expired", said, status=404)


def _answer_text(
    branding: Branding,
    addresses: Addresses,
    title: str,
    heading: str,
    text: str,
    button: str = "",
    status: int = 200,
    more: Mapping[str, str] | None = None,
) -> Response:
    body = text_html(title, branding, addresses, heading, text, button)
    headers = _NO_TRACE | {"Content-Security-Policy": policy(branding)} | dict(more or {})
    return Response(body=body, status=status, headers=headers, content_type=HTML)


_ANYBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    page_route(
        method="GET",
        path=_SUBSCRIBE,
        action=_ANYBODY,
        handler=show_form,
        summary="The form to subscribe to a status page.",
        query=TokenQuery,
    ),
    page_route(
        method="POST",
        path=_SUBSCRIBE,
        action=_ANYBODY,
        handler=send_form,
        summary="Subscribe to a status page.",
        query=TokenQuery,
    ),
    *(
        Route(
            method=method,
            path=path,
            action=_ANYBODY,
            handler=handler,
            summary=summary,
            body_ignored=method == "POST",
            page=True,
            in_document=False,
        )
        for method, path, handler, summary in (
            ("GET", _CONFIRM, show_confirm, "A button that confirms a subscription."),
            ("POST", _CONFIRM, confirm, "Confirm a subscription."),
            ("GET", _LEAVE, show_leave, "A button that ends a subscription."),
            ("POST", _LEAVE, leave, "End a subscription."),
        )
    ),
)
