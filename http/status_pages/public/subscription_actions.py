"""Somebody asks to be told of a page, says yes, or says no more: what the API and the pages share.

Nothing that is answered tells whether an address is known. Links are made of the address that is
configured, never of what a request says of itself.
"""

from ....storage.core.token import TokenKind, kind_of
from ....storage.status_pages.rules.subscription import SubscriberKind, SubscriptionRequest
from ....storage.status_pages.transactions.confirm_subscription import confirm
from ....storage.status_pages.transactions.subscribe import subscribe
from ....storage.status_pages.transactions.unsubscribe import unsubscribe
from ...wire.admission_control import LoginAttempts
from ...wire.app_context import AppContext
from ...wire.errors import Problem
from ...wire.mail_config import mailing_now
from ...wire.route import Request
from .page_loader import public_page


async def require_mail(context: AppContext, kind: SubscriberKind) -> None:
    """Problem mail_unavailable, where there is no server, or no address to link to."""
    mailing = await mailing_now(context)
    if not mailing.can_link or (kind is SubscriberKind.MAIL and not mailing.can_mail):
        raise Problem("mail_unavailable")


async def request_subscription(ask: Request, asked: SubscriptionRequest) -> None:
    """Problem not_found where the page is not open to who asks; mail_unavailable; rate_limited;
    Refused as `subscribe`."""
    async with public_page(ask) as (_, page):
        pass
    await require_mail(ask.context, asked.kind)
    _take(ask, ask.context.subscribing)
    keyring = ask.context.keyring
    await ask.context.pool.transact("subscribe", lambda tx: subscribe(tx, page, asked, keyring))
    ask.context.on_told()


async def confirm_subscription(ask: Request, token: str) -> None:
    """Problem not_found where nothing was asked for by that token within a day; rate_limited."""
    demand_token(token)
    _take(ask, ask.context.confirming)
    if not await ask.context.pool.transact("confirm", lambda tx: confirm(tx, token)):
        raise Problem("not_found")


async def end_subscription(ask: Request, token: str) -> None:
    """As often as anybody likes: what has ended stays so. Problem not_found of what is no token."""
    demand_token(token)
    await ask.context.pool.transact("unsubscribe", lambda tx: unsubscribe(tx, token))


def demand_token(token: str) -> None:
    if kind_of(token) is not TokenKind.SUBSCRIPTION:
        raise Problem("not_found")


def _take(ask: Request, tries: LoginAttempts) -> None:
    wait_seconds = tries.take(ask.client, ask.context.clock())
    if wait_seconds:
        raise Problem("rate_limited", headers={"Retry-After": str(wait_seconds)})
