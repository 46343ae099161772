"""People of bundles, and the contact methods that they propose.

Locks: an application holds the lock of the project, and the adoption of methods locks the account.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

_PUT: Final = """
insert into bundle_people (org, uid, project, email, name, role, methods, pending)
values (%(org)s, %(uid)s, %(project)s, %(email)s, %(name)s, %(role)s::role, %(methods)s::jsonb,
  %(pending)s::jsonb)
on conflict (uid) do update set email = excluded.email, name = excluded.name, role = excluded.role,
  methods = excluded.methods, pending = excluded.pending
"""
_PENDING: Final = "select pending::text from bundle_people where uid = %(uid)s"
_DROP: Final = "delete from bundle_people where org = %(org)s and uid = any(%(uids)s)"
_DROP_RELEASED: Final = "delete from bundle_people where managed_by = ''"
# In the order of the accounts, so that two applications do not wait for each other.
_ADOPT: Final = """
select adopt_proposed_methods(u.id, at(%(now)s)) from (
  select u.id from users u join bundle_people b on lower(b.email) = lower(u.email)
  where b.org = %(org)s and b.project = %(project)s and b.pending <> '[]' and u.email_verified
    and exists (select from memberships m where m.user_id = u.id and m.org = b.org
      and (m.project is null or m.project = b.project))
  group by u.id order by u.id) u
"""


async def put_person(
    tx: Tx,
    home: tuple[int, int],
    uid: UUID,
    row: Mapping[str, str],
    methods: Sequence[Mapping[str, Any]],
    pending: Sequence[Mapping[str, Any]],
) -> None:
    """Writes a person of a project. `row` has email, name and role."""
    await tx.execute(
        _PUT,
        org=home[0],
        project=home[1],
        uid=uid,
        methods=msgspec.json.encode(methods).decode(),
        pending=msgspec.json.encode(pending).decode(),
        **row,
    )


async def select_pending(tx: Tx, uid: UUID) -> list[dict[str, Any]]:
    """Returns the proposed methods that no account has received."""
    found: str | None = await tx.value(_PENDING, uid=uid)
    return [] if found is None else msgspec.json.decode(found, type=list[dict[str, Any]])


async def delete_people(tx: Tx, org: int, uids: Collection[UUID]) -> None:
    await tx.execute(_DROP, org=org, uids=list(uids))


async def delete_released_people(tx: Tx) -> None:
    """Deletes the people without an owner: nobody edits them outside of a bundle."""
    await tx.execute(_DROP_RELEASED)


async def adopt_methods(tx: Tx, home: tuple[int, int]) -> None:
    """Gives the members of a project the methods that its bundles propose, as unverified ones."""
    await tx.rows(_ADOPT, org=home[0], project=home[1], now=tx.now)
