"""Monitors of the console screens."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import MonitorRow
from . import monitors as monitors_queries

_PAGE = """
select org, id, uid, name, type from monitors where org = %(org)s and project = %(project)s
order by lower(name), id limit %(most)s offset %(skip)s
"""
_COUNT = "select count(*)::int from monitors where org = %(org)s and project = %(project)s"
_NAMES_OF = "select uid, name from monitors where org = %(org)s and uid = any(%(uids)s::uuid[])"


async def select_shown_monitor(tx: Tx, uid: UUID) -> MonitorRow | None:
    return await monitors_queries.select_monitor(tx, uid)


class ListedMonitor(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    name: str
    type: str

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))


async def count_listed(tx: Tx, org: int, project: int) -> int:
    many: int = await tx.value(_COUNT, org=org, project=project)
    return many


async def select_listed(
    tx: Tx, org: int, project: int, skip: int, most: int
) -> list[ListedMonitor]:
    """Returns the monitors of a project by name, `most` of them after the first `skip`."""
    return await tx.structs(ListedMonitor, _PAGE, org=org, project=project, skip=skip, most=most)


async def select_names_of(tx: Tx, org: int, uids: Collection[UUID]) -> dict[UUID, str]:
    """Returns the names of the monitors that exist."""
    return dict(await tx.rows(_NAMES_OF, org=org, uids=list(uids)))
