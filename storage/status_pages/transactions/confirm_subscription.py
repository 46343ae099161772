"""Confirmation of a subscription by the token that was sent to the address."""

from ...core.token import TokenKind, digest, kind_of
from ...engine.pools import Tx
from ..tables import subscribers


async def confirm(tx: Tx, token: str) -> bool:
    """Confirms the requested subscription. Idempotent.

    Returns False without a request of that token within CONFIRM_US.
    """
    if kind_of(token) is not TokenKind.SUBSCRIPTION:
        return False
    return await subscribers.confirm_subscriber(tx, digest(token))
