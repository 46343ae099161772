"""Reads of incidents."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import IncidentRow
from ..tables.incidents import _COLUMNS, _FROM

_BY_UID = f"select {_COLUMNS} {_FROM} where i.uid = %(uid)s"

_OPEN_OF_ALERTS = """
select external_key, started_at from incidents
where org = %(org)s and project = %(project)s and external_key = any(%(keys)s::text[])
  and status <> 'resolved'
"""

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM}
where i.org = %(org)s and i.project = %(project)s and i.id < %(before)s
  and (%(open)s::boolean is null or (i.status <> 'resolved') = %(open)s)
order by i.id desc limit %(most)s
"""

_LAST = 2**31 - 1


async def select_incident(tx: Tx, uid: UUID) -> IncidentRow | None:
    return await tx.one(IncidentRow, _BY_UID, uid=uid)


async def select_open_of_alerts(
    tx: Tx, org: int, project: int, keys: Sequence[str]
) -> dict[str, Instant]:
    """Returns the start of the open incident for each fingerprint with one."""
    found = await tx.rows(_OPEN_OF_ALERTS, org=org, project=project, keys=list(keys))
    return dict(found)


async def select_incidents_of(
    tx: Tx, org: int, project: int, most: int, *, open_ones: bool | None, before: int | None = None
) -> list[IncidentRow]:
    """Returns incidents of a project, newest first.

    Args:
        open_ones: True for open, False for resolved, None for all.
        before: id of the last incident of the previous part of the list.
    """
    return await tx.structs(
        IncidentRow,
        _OF_PROJECT,
        org=org,
        project=project,
        open=open_ones,
        before=_LAST if before is None else before,
        most=most,
    )
