"""Transactions of accounts: record use."""

from ...engine.pools import Tx
from ..tables import api_tokens, sessions, users


async def note_seen(tx: Tx, token_hash: bytes) -> None:
    await sessions.note_seen(tx, token_hash)


async def note_used(tx: Tx, org: int, token: int) -> None:
    await api_tokens.note_used(tx, org, token)


async def note_active(tx: Tx, user: int) -> None:
    await users.note_active(tx, user)
