"""Notices of planned maintenance to the subscribers of status pages."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import LockRank, Tx

# First key of the advisory locks. The second key is the page.
LOCK_CLASS: Final = 1_279_610_185

_TRY_LOCK: Final = f"""
select pg_try_advisory_xact_lock({LOCK_CLASS}, id) from status_pages where uid = %(uid)s
"""
_INSERT: Final = """
insert into maintenance_notices (org, maintenance, page, step, components, payload, created_at)
values (%(org)s, %(maintenance)s, %(page)s, %(step)s, %(components)s::uuid[], %(payload)s,
  at(%(now)s))
on conflict do nothing
"""
_OPEN: Final = """
select org, maintenance, page, step from maintenance_notices
where not done order by created_at limit %(most)s
"""
# One that another process passes on is skipped.
_LOCK_OPEN: Final = """
select n.org, n.maintenance, n.page, n.step, n.components, n.payload, n.enqueued_through, x.uid,
  x.project
from maintenance_notices n join maintenances x on x.org = n.org and x.id = n.maintenance
where n.org = %(org)s and n.maintenance = %(maintenance)s and n.page = %(page)s
  and n.step = %(step)s and not n.done
for update of n skip locked
"""
_ADVANCE: Final = """
update maintenance_notices set enqueued_through = %(through)s, done = %(done)s
where org = %(org)s and maintenance = %(maintenance)s and page = %(page)s and step = %(step)s
"""


class NoticeKey(msgspec.Struct, frozen=True):
    org: int
    maintenance: int
    page: int
    step: str


class OpenNotice(NoticeKey, frozen=True):
    """Notice that not all subscribers have a message of, with its maintenance."""

    components: list[UUID]
    payload: str
    enqueued_through: int
    maintenance_uid: UUID
    project: int


async def try_lock_steps(tx: Tx, page: UUID) -> bool:
    """Locks the steps of a page against other processes until the transaction ends.

    A later statement sees the steps that the last holder noted. Returns False without the lock.
    """
    tx.lock_rank(LockRank.PAGE, "the maintenance steps of a status page")
    is_held: bool | None = await tx.value(_TRY_LOCK, uid=page)
    return bool(is_held)


async def insert_notice(
    tx: Tx,
    org: int,
    maintenance: int,
    page: int,
    step: str,
    components: Sequence[UUID],
    payload: str,
) -> bool:
    """Inserts a step of a maintenance for a page. Returns False if it exists."""
    values = {"org": org, "maintenance": maintenance, "page": page, "step": step}
    many = await tx.execute(
        _INSERT, components=list(components), payload=payload, now=tx.now, **values
    )
    return many == 1


async def select_open_notices(tx: Tx, most: int) -> list[NoticeKey]:
    """Returns the oldest notices that not all subscribers have a message of."""
    return await tx.structs(NoticeKey, _OPEN, most=most)


async def lock_open_notice(tx: Tx, key: NoticeKey) -> OpenNotice | None:
    """Locks a notice after its page. None if it is done, or another process passes it on."""
    return await tx.one(OpenNotice, _LOCK_OPEN, **msgspec.structs.asdict(key))


async def advance_notice(tx: Tx, row: OpenNotice, through: int, *, done: bool) -> None:
    place = {"org": row.org, "maintenance": row.maintenance, "page": row.page, "step": row.step}
    await tx.execute(_ADVANCE, through=through, done=done, **place)
