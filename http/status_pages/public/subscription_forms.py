"""Forms to subscribe to a status page, confirm and unsubscribe, without scripts.

A confirmation or an end requires a POST, because mail scanners follow links.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
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
from ....storage.status_pages.rules.page_language import AUTO
from ....storage.status_pages.rules.subscription import (
    CHATS,
    COMPONENTS_CHOSEN_MOST,
    SubscriberKind,
    SubscriptionRequest,
    shown_address,
)
from ...ui.form_routes import page_route
from ...ui.render import HTML
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import Handler, Request, Response, Route
from .html_renderer import policy, subscribe_html, text_html
from .language import listed, phrase, reader_now, speaking
from .page_loader import (
    LanguageQuery,
    ReaderQuery,
    addresses_of,
    in_language,
    public_page,
    reader_of,
)
from .subscription_actions import confirm_subscription, end_subscription, request_subscription
from .urls import Addresses

_SUBSCRIBE: Final = "/status/{slug}/subscribe"
_CONFIRM: Final = "/status/confirm/{token}"
_LEAVE: Final = "/status/unsubscribe/{token}"
_FIELDS: Final = {"email": "email", "url": "url", "components": "component"}
_NO_TRACE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def _in_language(handler: Callable[[Request], Awaitable[Response]]) -> Handler:
    """Returns the handler, which answers in the language of the reader."""

    async def answer(ask: Request) -> Response:
        setting = AUTO
        if "slug" in ask.words:
            async with public_page(ask) as (_, page):
                setting = page.language
        with speaking(reader_of(ask, setting)):
            reply = await handler(ask)
            return replace(reply, headers={**reply.headers, **in_language()})

    return answer


async def show_form(ask: Request) -> Response:
    return await _form(ask, {}, "", "")


async def send_form(ask: Request) -> Response:
    typed = {name: values[-1].strip() for name, values in ask.form.items() if values}
    chosen = ask.form.get("component", [])
    field = "url" if typed.get("url") and not typed.get("email") else "email"
    if typed.get("url") and typed.get("email"):
        return await _form(ask, ask.form, "url", phrase("subscribe.both"))
    try:
        kind = SubscriberKind.MAIL if field == "email" else _kind(typed.get("kind", ""))
        asked = _asked(kind, typed.get(field, ""), chosen)
        await request_subscription(ask, replace(asked, language=reader_now().language))
    except Refused as refused:
        if refused.code != "invalid":
            raise
        return await _form(ask, ask.form, refused.field, _fault_words(refused))
    except Problem as problem:
        if problem.code not in ("rate_limited", "mail_unavailable"):
            raise
        return await _form(ask, ask.form, field, phrase(f"subscribe.{problem.code}"), problem)
    async with public_page(ask) as (tx, page):
        branding = await page_branding(tx, page.branding)
        addresses = addresses_of(ask, page, ask.query.token)
    asked_by = f"asked.{'chat' if kind in CHATS else field}"
    return _answer_text(
        branding,
        addresses,
        page.title,
        phrase(f"{asked_by}.heading"),
        phrase(f"{asked_by}.text"),
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


def _fault_words(refused: Refused) -> str:
    """Returns the fault of a field in the language of the reader."""
    if refused.field == "components":
        most = COMPONENTS_CHOSEN_MOST
        too_many = refused.message == f"must be at most {most}"
        return phrase(
            "subscribe.too_many_components" if too_many else "subscribe.bad_components", n=most
        )
    return phrase(f"subscribe.bad_{refused.field}")


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
    named = {"address": shown_address(found.kind, found.address), "title": found.page_title}
    said = phrase("confirm.text", **named)
    if found.chosen:
        said = phrase("confirm.text_of", names=listed(found.chosen), **named)
    heading = phrase("confirm.heading", title=found.page_title)
    return _answer_text(
        branding, _home(ask), found.page_title, heading, said, phrase("confirm.button")
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
        said = phrase("confirm.limited")
        return _answer_text(
            branding,
            _home(ask),
            "",
            phrase("confirm.not_confirmed"),
            said,
            phrase("confirm.button"),
            status=problem.status,
            more=problem.headers,
        )
    assert found is not None, "it was confirmed"
    said = phrase("confirm.done_text")
    return _answer_text(branding, _home(ask), found.page_title, phrase("confirm.done"), said)


async def show_leave(ask: Request) -> Response:
    found, branding = await _subscription(ask)
    if kind_of(ask.words["token"]) is not TokenKind.SUBSCRIPTION:
        return _gone(ask, branding)
    if found is None:
        return _answer_text(
            branding, _home(ask), "", phrase("leave.none"), phrase("leave.none_text")
        )
    address = shown_address(found.kind, found.address)
    said = phrase("leave.text", address=address, title=found.page_title)
    heading = phrase("leave.heading")
    return _answer_text(
        branding, _home(ask), found.page_title, heading, said, phrase("leave.button")
    )


async def leave(ask: Request) -> Response:
    _, branding = await _subscription(ask)
    if kind_of(ask.words["token"]) is not TokenKind.SUBSCRIPTION:
        return _gone(ask, branding)
    await end_subscription(ask, ask.words["token"])
    said = phrase("leave.done_text")
    return _answer_text(branding, _home(ask), "", phrase("leave.done"), said)


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
    return _answer_text(
        branding, _home(ask), "", phrase("gone.heading"), phrase("gone.text"), status=404
    )


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
        handler=_in_language(show_form),
        summary="The form to subscribe to a status page.",
        query=ReaderQuery,
    ),
    page_route(
        method="POST",
        path=_SUBSCRIBE,
        action=_ANYBODY,
        handler=_in_language(send_form),
        summary="Subscribe to a status page.",
        query=ReaderQuery,
    ),
    *(
        Route(
            method=method,
            path=path,
            action=_ANYBODY,
            handler=_in_language(handler),
            summary=summary,
            query=LanguageQuery,
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
