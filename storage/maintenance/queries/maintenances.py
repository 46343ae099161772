"""Reads of maintenances."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import MaintenanceRow
from ..tables.maintenances import _BY_UID, _COLUMNS, _FROM

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM}
where x.org = %(org)s and x.project = %(project)s
  and (%(archived)s or x.archived_at is null)
  -- Otherwise the maintenance of a deleted monitor would appear as one for the whole project.
  and (x.monitor is null or m.id is not null)
order by x.starts_at desc, x.id desc limit %(most)s
"""


async def select_maintenance(tx: Tx, uid: UUID) -> MaintenanceRow | None:
    return await tx.one(MaintenanceRow, _BY_UID, uid=uid)


async def select_maintenances_of(
    tx: Tx, org: int, project: int, most: int, *, archived: bool = False
) -> list[MaintenanceRow]:
    """Returns the maintenances of a project, latest start first.

    `archived` includes those that were cancelled before their start or annulled.
    """
    return await tx.structs(
        MaintenanceRow, _OF_PROJECT, org=org, project=project, most=most, archived=archived
    )
