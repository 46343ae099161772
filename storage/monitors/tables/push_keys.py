"""Push keys of projects."""

from uuid import UUID

from ...engine.pools import Tx

_PUT = """
insert into push_keys (org, project, uid, token_hash, token_ciphertext, creates_monitors,
  created_at)
values (%(org)s, %(project)s, %(uid)s, %(hash)s, %(sealed)s, %(creates)s, at(%(now)s))
on conflict (org, project) do update set uid = excluded.uid, token_hash = excluded.token_hash,
  token_ciphertext = excluded.token_ciphertext, creates_monitors = excluded.creates_monitors,
  created_at = excluded.created_at
"""
_SET = """
update push_keys set creates_monitors = %(creates)s
where org = %(org)s and project = %(project)s
"""
_DELETE = "delete from push_keys where org = %(org)s and project = %(project)s"


async def put_push_key(
    tx: Tx, org: int, project: int, uid: UUID, token_hash: bytes, sealed: bytes, *, creates: bool
) -> None:
    """Stores the key in place of an earlier one."""
    await tx.execute(
        _PUT,
        org=org,
        project=project,
        uid=uid,
        hash=token_hash,
        sealed=sealed,
        creates=creates,
        now=tx.now,
    )


async def set_creates_monitors(tx: Tx, org: int, project: int, *, creates: bool) -> bool:
    """Returns whether the project has a key."""
    return bool(await tx.execute(_SET, org=org, project=project, creates=creates))


async def delete_push_key(tx: Tx, org: int, project: int) -> bool:
    """Returns whether the project had a key."""
    return bool(await tx.execute(_DELETE, org=org, project=project))
