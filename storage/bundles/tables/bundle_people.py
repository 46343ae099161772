"""People of bundles, and the contact methods that they propose.

Locks: an application locks the project and no account. The adoption of methods is a short
transaction that locks one account.
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
# The condition on users is that of their index.
_DUE: Final = """
select distinct u.id
from bundle_people b join projects p on p.org = b.org and p.id = b.project
  join users u on lower(u.email) = lower(b.email) and u.email_verified and u.email <> ''
where b.pending <> '[]' and (%(project)s::uuid is null or p.uid = %(project)s) and u.id > %(after)s
  and exists (select from memberships m where m.user_id = u.id and m.org = b.org
    and (m.project is null or m.project = b.project))
order by u.id limit %(most)s
"""
# Notes of an account. A bundle can propose older methods again.
NOTES_KEPT: Final = 200
_FORGET: Final = """
delete from proposed_methods n where n.user_id = %(user)s and n.digest in (
  select o.digest from proposed_methods o where o.user_id = %(user)s
  order by o.proposed_at desc, o.digest offset %(kept)s)
"""
_ADOPT: Final = "select adopt_proposed_methods(%(user)s::int, at(%(now)s))"


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
    """Deletes the people without an owner: only a bundle edits them."""
    await tx.execute(_DROP_RELEASED)


async def select_due_accounts(tx: Tx, project: UUID | None, after: int, most: int) -> Sequence[int]:
    """Returns the accounts with proposals that they can receive, in their order.

    These are verified members of the project of the bundle. `project` None is for all projects.
    """
    rows = await tx.rows(_DUE, project=project, after=after, most=most)
    return [user for (user,) in rows]


async def adopt_methods(tx: Tx, user: int) -> bool:
    """Gives an account the methods that bundles propose, as unverified ones.

    Locks the account, but waits for no lock. Returns False if another transaction has it.
    """
    if not await tx.value(_ADOPT, user=user, now=tx.now):
        return False
    await tx.execute(_FORGET, user=user, kept=NOTES_KEPT)
    return True
