"""Notices of planned maintenance to the subscribers of status pages."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

_INSERT: Final = """
insert into maintenance_notices (org, maintenance, page, step, components, payload, created_at)
values (%(org)s, %(maintenance)s, %(page)s, %(step)s, %(components)s::uuid[], %(payload)s,
  at(%(now)s))
on conflict do nothing
"""
# One that another process passes on is skipped.
_LOCK_OPEN: Final = """
select n.org, n.maintenance, n.page, n.step, n.components, n.payload, n.enqueued_through, x.uid,
  x.project
from maintenance_notices n join maintenances x on x.org = n.org and x.id = n.maintenance
where not n.done order by n.created_at limit 1 for update of n skip locked
"""
_ADVANCE: Final = """
update maintenance_notices set enqueued_through = %(through)s, done = %(done)s
where org = %(org)s and maintenance = %(maintenance)s and page = %(page)s and step = %(step)s
"""


class OpenNotice(msgspec.Struct, frozen=True):
    """Notice that not all subscribers have a message of, with its maintenance."""

    org: int
    maintenance: int
    page: int
    step: str
    components: list[UUID]
    payload: str
    enqueued_through: int
    maintenance_uid: UUID
    project: int


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


async def lock_open_notice(tx: Tx) -> OpenNotice | None:
    """Locks the oldest notice that no other process passes on."""
    return await tx.one(OpenNotice, _LOCK_OPEN)


async def advance_notice(tx: Tx, row: OpenNotice, through: int, *, done: bool) -> None:
    place = {"org": row.org, "maintenance": row.maintenance, "page": row.page, "step": row.step}
    await tx.execute(_ADVANCE, through=through, done=done, **place)
