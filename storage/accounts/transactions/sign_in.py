"""Sessions of users: sign-in by password, and sign-out."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import UserRow
from ..rules.access import Need, Permission, Principal
from ..tables import sessions, users
from .authorize import NOT_FOUND, demand

UNAUTHORIZED = "unauthorized"
END_SESSION = Permission(Need.SESSION)


async def sign_in(tx: Tx, user: UserRow, token_hash: bytes, client: str, ttl_seconds: int) -> None:
    """Creates a session.

    `user` is the account whose password was verified outside of a transaction.

    Raises:
        Refused unauthorized if the account is deleted or the password was changed.
    """
    now = await users.select_user_by_id(tx, user.id)
    if now is None or now.password != user.password:
        raise Refused(UNAUTHORIZED)
    expires = Instant(tx.now + ttl_seconds * SECOND)
    await sessions.insert_session(tx, token_hash, uuid7(), user.id, client, expires)
    await users.record_active(tx, user.id)


async def sign_out(tx: Tx, token_hash: bytes) -> str | None:
    """Deletes a session. Returns its single sign-on provider, None without one."""
    _, issuer = await sessions.delete_session(tx, token_hash)
    return issuer


async def end_session(tx: Tx, principal: Principal, session: UUID) -> None:
    """Ends one of the principal's own sessions.

    Raises:
        Refused not_found.
    """
    demand(principal, END_SESSION, None)
    assert isinstance(principal.user, UUID), "a session has a person"
    user = await users.select_user(tx, principal.user)
    if user is None or not await sessions.delete_session_of(tx, user.id, session):
        raise Refused(NOT_FOUND)
