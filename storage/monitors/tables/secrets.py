"""Secrets of projects by name. Values are already encrypted."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import LockRank, Tx

_COLUMNS = "org, id, uid, project, name, value_ciphertext, created_at, rotated_at"
_OF_NAME = f"""
select {_COLUMNS} from project_secrets
where org = %(org)s and project = %(project)s and name = %(name)s
"""
# A rename or deletion waits for transactions that refer to the secret: these lock it FOR KEY SHARE.
_LOCK = f"{_OF_NAME} for update"
_HOLD = """
select name from project_secrets
where org = %(org)s and project = %(project)s and name = any(%(names)s) order by name for key share
"""
_NAMED = f"""
select {_COLUMNS} from project_secrets
where org = %(org)s and project = %(project)s and name = any(%(names)s)
"""
_COUNT = "select count(*) from project_secrets where org = %(org)s and project = %(project)s"
_INSERT = """
insert into project_secrets (org, uid, project, name, value_ciphertext, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(name)s, %(sealed)s, at(%(now)s), at(%(now)s))
on conflict (org, project, name) do nothing
returning id
"""
_RENAME = """
update project_secrets set name = %(name)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s and not exists (
  select from project_secrets o where o.org = %(org)s and o.project = %(project)s
    and o.name = %(name)s)
"""
_RENAME_IN_CHANNELS = """
update notification_channels c set updated_at = at(%(now)s), config = (
  select jsonb_object_agg(f.key,
    case when right(f.key, 4) = '_ref' and f.value = %(name)s then %(new_name)s else f.value end)
  from jsonb_each_text(c.config) f)
where c.org = %(org)s and c.project = %(project)s and exists (
  select from jsonb_each_text(c.config) f
  where right(f.key, 4) = '_ref' and f.value = %(name)s)
"""
_REPLACE = """
update project_secrets set value_ciphertext = %(sealed)s, rotated_at = at(%(now)s),
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from project_secrets where org = %(org)s and id = %(id)s"


class SecretRow(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    project: int
    name: str
    value_ciphertext: bytes
    created_at: Instant
    rotated_at: Instant | None


async def select_secret(tx: Tx, org: int, project: int, name: str) -> SecretRow | None:
    return await tx.one(SecretRow, _OF_NAME, org=org, project=project, name=name)


async def select_secrets_named(
    tx: Tx, org: int, project: int, names: Collection[str]
) -> dict[str, SecretRow]:
    """Returns the secrets that exist."""
    rows = await tx.structs(SecretRow, _NAMED, org=org, project=project, names=sorted(names))
    return {row.name: row for row in rows}


async def lock_secret(tx: Tx, org: int, project: int, name: str) -> SecretRow | None:
    """Locks a secret for a rename or deletion.

    No transaction can refer to it until the commit.
    """
    tx.lock_rank(LockRank.SECRET, "a secret that changes")
    return await tx.one(SecretRow, _LOCK, org=org, project=project, name=name)


async def lock_shared_secrets(tx: Tx, org: int, project: int, names: Collection[str]) -> set[str]:
    """Returns the names that exist, and locks them against a rename and deletion."""
    tx.lock_rank(LockRank.SECRET, "secrets that are referred to")
    rows = await tx.rows(_HOLD, org=org, project=project, names=sorted(names))
    return {name for (name,) in rows}


async def count_secrets(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def insert_secret(
    tx: Tx, org: int, project: int, uid: UUID, name: str, sealed: bytes
) -> int | None:
    """Returns the key of the new secret, None if the name is taken."""
    key: int | None = await tx.value(
        _INSERT, org=org, project=project, uid=uid, name=name, sealed=sealed, now=tx.now
    )
    return key


async def rename_secret(tx: Tx, row: SecretRow, name: str) -> bool:
    """Returns False if the name is taken."""
    changed = await tx.execute(
        _RENAME, org=row.org, id=row.id, project=row.project, name=name, now=tx.now
    )
    return changed == 1


async def rename_in_channels(tx: Tx, row: SecretRow, new_name: str) -> None:
    """Writes the new name of a locked secret into the channels that refer to it."""
    tx.lock_rank(LockRank.CHANNEL, "channels that refer to a renamed secret")
    await tx.execute(
        _RENAME_IN_CHANNELS,
        org=row.org,
        project=row.project,
        name=row.name,
        new_name=new_name,
        now=tx.now,
    )


async def replace_value(tx: Tx, row: SecretRow, sealed: bytes) -> None:
    count = await tx.execute(_REPLACE, org=row.org, id=row.id, sealed=sealed, now=tx.now)
    assert count == 1, "the secret is locked and there"


async def delete_secret(tx: Tx, row: SecretRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)
