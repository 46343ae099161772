"""Recording of the last use of sessions, tokens and users."""

from ...engine.pools import Tx
from ..tables import api_tokens, sessions, users


async def record_session_seen(tx: Tx, token_hash: bytes) -> None:
    await sessions.record_seen(tx, token_hash)


async def record_token_used(tx: Tx, org: int, token: int) -> None:
    await api_tokens.record_used(tx, org, token)


async def record_user_active(tx: Tx, user: int) -> None:
    await users.record_active(tx, user)
