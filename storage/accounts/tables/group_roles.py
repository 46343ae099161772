"""Rules that give groups of the identity provider a role."""

from typing import Final
from uuid import UUID

from ...engine.pools import Tx

# Of concurrent insertions, each counts the rules of the others.
_LOCK: Final = "lock table group_roles in share row exclusive mode"
_COUNT: Final = "select count(*)::int from group_roles"
_INSERT: Final = """
insert into group_roles (uid, issuer, claim, value, org, project, role, created_at)
values (%(uid)s, %(issuer)s, %(claim)s, %(value)s, %(org)s, %(project)s, %(role)s::role,
  at(%(now)s))
on conflict do nothing returning id
"""
_DELETE: Final = """
delete from group_roles where uid = %(uid)s returning claim, value, role::text
"""


async def count_group_roles(tx: Tx) -> int:
    """Counts the rules, and excludes other insertions until the commit."""
    await tx.execute(_LOCK)
    found: int = await tx.value(_COUNT)
    return found


async def insert_group_role(
    tx: Tx,
    uid: UUID,
    issuer: str,
    claim: str,
    value: str,
    place: tuple[int, int | None],
    role: str,
) -> bool:
    """Returns False if a rule gives the same group a role in the same place."""
    org, project = place
    given = {"issuer": issuer, "claim": claim, "value": value, "role": role}
    key = await tx.value(_INSERT, uid=uid, org=org, project=project, now=tx.now, **given)
    return key is not None


async def delete_group_role(tx: Tx, uid: UUID) -> tuple[str, str, str] | None:
    """Returns (claim, value, role) of the deleted rule, None without one."""
    row = await tx.row(_DELETE, uid=uid)
    return None if row is None else (row[0], row[1], row[2])
