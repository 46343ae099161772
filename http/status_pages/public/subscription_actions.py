"""Actions of subscriptions, shared by API and forms: request, confirm, end.

No response reveals whether an address is subscribed. Links use the configured address, never a
header of the request.
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
    """Raises Problem `mail_unavailable` without a mail server or without a base URL for links."""
    mailing = await mailing_now(context)
    if not mailing.can_link or (kind is SubscriberKind.MAIL and not mailing.can_mail):
        raise Problem("mail_unavailable")


async def request_subscription(ask: Request, asked: SubscriptionRequest) -> None:
    """Requests a subscription.

    Raises: Problem `not_found`, if the page is not open to the caller; `mail_unavailable`;
    `rate_limited`; Refused as `subscribe`.
    """
    async with public_page(ask) as (_, page):
        pass
    await require_mail(ask.context, asked.kind)
    _take(ask, ask.context.subscribing)
    keyring = ask.context.keyring
    await ask.context.pool.transact("subscribe", lambda tx: subscribe(tx, page, asked, keyring))
    ask.context.on_told()


async def confirm_subscription(ask: Request, token: str) -> None:
    """Confirms a subscription.

    Raises: Problem `not_found`, if no request of the last 24 h has the token; `rate_limited`.
    """
    demand_token(token)
    _take(ask, ask.context.confirming)
    if not await ask.context.pool.transact("confirm", lambda tx: confirm(tx, token)):
        raise Problem("not_found")


async def end_subscription(ask: Request, token: str) -> None:
    """Ends a subscription. Idempotent.

    Raises: Problem `not_found`, if the token is malformed.
    """
    demand_token(token)
    await ask.context.pool.transact("unsubscribe", lambda tx: unsubscribe(tx, token))


def demand_token(token: str) -> None:
    if kind_of(token) is not TokenKind.SUBSCRIPTION:
        raise Problem("not_found")


def _take(ask: Request, tries: LoginAttempts) -> None:
    wait_seconds = tries.take(ask.client, ask.context.clock())
    if wait_seconds:
        raise Problem("rate_limited", headers={"Retry-After": str(wait_seconds)})
