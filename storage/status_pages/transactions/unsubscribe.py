"""End of a subscription, by its token or by an owner of the page, with its unsent events."""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.refusal import Refused
from ...core.token import TokenKind, digest, kind_of
from ...engine.pools import Tx
from ..tables import subscribers
from .edit_pages import demand_page, page_target


async def unsubscribe(tx: Tx, token: str) -> None:
    """Deletes a subscription. Idempotent."""
    if kind_of(token) is TokenKind.SUBSCRIPTION:
        await subscribers.delete_by_token(tx, digest(token))


async def remove_subscriber(tx: Tx, principal: Principal, page: UUID, subscriber: UUID) -> None:
    """Deletes a subscriber. The audit log does not contain the address.

    Raises:
        Refused not_found, forbidden.
    """
    row = await demand_page(tx, principal, page)
    if await subscribers.delete_subscriber(tx, row.org, row.id, subscriber) is None:
        raise Refused(NOT_FOUND)
    target = f"subscriber:{subscriber} {page_target(row)}"
    await audit(tx, principal, row.org, "status_page.remove_subscriber", target)
