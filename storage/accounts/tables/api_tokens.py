"""API tokens, found by the SHA-256 of the secret. The secret is shown once and not stored."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import TokenRow

_COLUMNS = """
t.org, t.id, t.uid, o.uid, t.project, p.uid, t.name, t.role::text, t.actions, u.uid, u.email,
t.created_at, t.last_used_at, t.expires_at, t.start, t.chosen_expiry,
(t.is_rotated or t.expires_at is distinct from t.chosen_expiry)
"""
_FROM = """
from api_tokens t join organizations o on o.id = t.org
  left join projects p on p.org = t.org and p.id = t.project
  left join users u on u.id = t.created_by
"""
# An expired token authenticates nobody.
_IS_VALID = "coalesce(t.expires_at > at(%(now)s), true)"
_BY_HASH = f"select {_COLUMNS} {_FROM} where t.token_hash = %(hash)s and {_IS_VALID}"
_BY_UID = f"select {_COLUMNS} {_FROM} where t.uid = %(uid)s and {_IS_VALID}"
_LOCK = f"{_BY_UID} for update of t"
_INSERT = """
insert into api_tokens (org, uid, project, name, role, actions, token_hash, created_by, created_at,
  start, expires_at, chosen_expiry)
select %(org)s, %(uid)s, %(project)s, %(name)s, %(role)s::role, %(actions)s::text[], %(hash)s,
  (select id from users where uid = %(creator)s::uuid), at(%(now)s), %(start)s, at(%(expiry)s),
  at(%(expiry)s)
returning id
"""
_EXPIRE_ROTATED = """
update api_tokens set expires_at = at(%(at)s), is_rotated = true
where org = %(org)s and id = %(id)s
"""
_UPDATE = """
update api_tokens set name = %(name)s, expires_at = at(%(expires)s), chosen_expiry = at(%(chosen)s)
where org = %(org)s and id = %(id)s
"""
_DROP_EXPIRED = "delete from api_tokens where expires_at <= at(%(now)s)"
_DELETE = "delete from api_tokens where org = %(org)s and id = %(id)s"
_NOTE_USED = """
update api_tokens set last_used_at = at(%(now)s) where org = %(org)s and id = %(id)s
  and coalesce(last_used_at, '-infinity') < at(%(now)s) - interval '1 minute'
"""


async def select_token_by_hash(tx: Tx, token_hash: bytes) -> TokenRow | None:
    return await tx.one(TokenRow, _BY_HASH, hash=token_hash, now=tx.now)


async def select_token(tx: Tx, uid: UUID) -> TokenRow | None:
    return await tx.one(TokenRow, _BY_UID, uid=uid, now=tx.now)


async def lock_token(tx: Tx, uid: UUID) -> TokenRow | None:
    return await tx.one(TokenRow, _LOCK, uid=uid, now=tx.now)


async def insert_token(
    tx: Tx,
    org: int,
    uid: UUID,
    project: int | None,
    name: str,
    role: str,
    actions: Sequence[str] | None,
    token_hash: bytes,
    creator: UUID | None,
    start: str,
    expires_at: Instant | None,
) -> None:
    await tx.value(
        _INSERT,
        org=org,
        uid=uid,
        project=project,
        name=name,
        role=role,
        actions=None if actions is None else list(actions),
        hash=token_hash,
        creator=creator,
        start=start,
        expiry=expires_at,
        now=tx.now,
    )


async def expire_rotated(tx: Tx, org: int, token: int, at: Instant) -> None:
    """Writes that the token has a successor, and ends at the instant."""
    await tx.execute(_EXPIRE_ROTATED, org=org, id=token, at=at)


async def update_token(
    tx: Tx,
    org: int,
    token: int,
    *,
    name: str,
    expires_at: Instant | None,
    chosen_expiry: Instant | None,
) -> None:
    await tx.execute(
        _UPDATE, org=org, id=token, name=name, expires=expires_at, chosen=chosen_expiry
    )


async def purge_expired_tokens(tx: Tx) -> int:
    return await tx.execute(_DROP_EXPIRED, now=tx.now)


async def delete_token(tx: Tx, org: int, token: int) -> None:
    await tx.execute(_DELETE, org=org, id=token)


async def record_used(tx: Tx, org: int, token: int) -> None:
    await tx.execute(_NOTE_USED, org=org, id=token, now=tx.now)
