"""Whoever holds the token that was sent to an address says that it wants to be told."""

from ...core.token import TokenKind, digest, kind_of
from ...engine.pools import Tx
from ..tables import subscribers


async def confirm(tx: Tx, token: str) -> bool:
    """False where nothing was asked for by that token within a day. What was asked for counts from
    now on; confirming once more changes nothing."""
    if kind_of(token) is not TokenKind.SUBSCRIPTION:
        return False
    return await subscribers.confirm_subscriber(tx, digest(token))
