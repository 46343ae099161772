"""API tokens, found by the SHA-256 of the secret. The secret is shown once and not stored."""

from collections.abc import Sequence
from uuid import UUID

from ...engine.pools import Tx
from ..rows import TokenRow

_COLUMNS = """
t.org, t.id, t.uid, o.uid, t.project, p.uid, t.name, t.role::text, t.actions, u.uid, u.email,
t.created_at, t.last_used_at
"""
_FROM = """
from api_tokens t join organizations o on o.id = t.org
  left join projects p on p.org = t.org and p.id = t.project
  left join users u on u.id = t.created_by
"""
_BY_HASH = f"select {_COLUMNS} {_FROM} where t.token_hash = %(hash)s"
_BY_UID = f"select {_COLUMNS} {_FROM} where t.uid = %(uid)s"
_INSERT = """
insert into api_tokens (org, uid, project, name, role, actions, token_hash, created_by, created_at)
select %(org)s, %(uid)s, %(project)s, %(name)s, %(role)s::role, %(actions)s::text[], %(hash)s,
  (select id from users where uid = %(creator)s::uuid), at(%(now)s)
returning id
"""
_DELETE = "delete from api_tokens where org = %(org)s and id = %(id)s"
_NOTE_USED = """
update api_tokens set last_used_at = at(%(now)s) where org = %(org)s and id = %(id)s
  and coalesce(last_used_at, '-infinity') < at(%(now)s) - interval '1 minute'
"""


async def select_token_by_hash(tx: Tx, token_hash: bytes) -> TokenRow | None:
    return await tx.one(TokenRow, _BY_HASH, hash=token_hash)


async def select_token(tx: Tx, uid: UUID) -> TokenRow | None:
    return await tx.one(TokenRow, _BY_UID, uid=uid)


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
        now=tx.now,
    )


async def delete_token(tx: Tx, org: int, token: int) -> None:
    await tx.execute(_DELETE, org=org, id=token)


async def record_used(tx: Tx, org: int, token: int) -> None:
    await tx.execute(_NOTE_USED, org=org, id=token, now=tx.now)
