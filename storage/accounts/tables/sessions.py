"""Sessions of users. A cookie is stored only as its SHA-256."""

from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import SessionRow

_INSERT = """
insert into sessions (token_hash, uid, user_id, client, created_at, last_seen_at, expires_at,
  issuer)
values (%(hash)s, %(uid)s, %(user)s, %(client)s, at(%(now)s), at(%(now)s), at(%(expires)s),
  %(issuer)s)
"""
_FIND = """
select s.uid, s.user_id, s.created_at, s.last_seen_at, s.expires_at
from sessions s where s.token_hash = %(hash)s and s.expires_at > at(%(now)s)
"""
_OF_USER = """
select uid, user_id, created_at, last_seen_at, expires_at, client from sessions
where user_id = %(user)s and expires_at > at(%(now)s) order by created_at desc
"""
# One write per minute is sufficient for the last use.
_SEEN = """
update sessions set last_seen_at = at(%(now)s)
where token_hash = %(hash)s and last_seen_at < at(%(now)s) - interval '1 minute'
"""
_DELETE = "delete from sessions where token_hash = %(hash)s returning issuer"
_DELETE_ONE = "delete from sessions where user_id = %(user)s and uid = %(uid)s"
_DELETE_OTHERS = "delete from sessions where user_id = %(user)s and token_hash <> %(keep)s"
_DROP = "delete from sessions where expires_at <= at(%(now)s)"


async def insert_session(
    tx: Tx,
    token_hash: bytes,
    uid: UUID,
    user: int,
    client: str,
    expires: Instant,
    issuer: str | None = None,
) -> None:
    """Inserts a session. `issuer` is the provider of a single sign-on."""
    await tx.execute(
        _INSERT,
        hash=token_hash,
        uid=uid,
        user=user,
        client=client,
        now=tx.now,
        expires=expires,
        issuer=issuer,
    )


async def select_session(tx: Tx, token_hash: bytes) -> SessionRow | None:
    """Returns None if the session is unknown or expired."""
    return await tx.one(SessionRow, _FIND, hash=token_hash, now=tx.now)


async def select_sessions_of(tx: Tx, user: int) -> list[SessionRow]:
    return await tx.structs(SessionRow, _OF_USER, user=user, now=tx.now)


async def record_seen(tx: Tx, token_hash: bytes) -> None:
    await tx.execute(_SEEN, hash=token_hash, now=tx.now)


async def delete_session(tx: Tx, token_hash: bytes) -> tuple[bool, str | None]:
    """Deletes a session. Returns whether it existed, and its provider."""
    rows = await tx.rows(_DELETE, hash=token_hash)
    return bool(rows), rows[0][0] if rows else None


async def delete_session_of(tx: Tx, user: int, uid: UUID) -> int:
    return await tx.execute(_DELETE_ONE, user=user, uid=uid)


async def delete_other_sessions(tx: Tx, user: int, keep: bytes) -> int:
    return await tx.execute(_DELETE_OTHERS, user=user, keep=keep)


async def purge_expired(tx: Tx) -> int:
    return await tx.execute(_DROP, now=tx.now)
