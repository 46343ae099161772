"""Reads of incident updates."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import UpdateRow
from ..tables.incident_updates import _COLUMNS

_OF = f"""
select {_COLUMNS} from incident_updates where org = %(org)s and incident = %(incident)s order by seq
"""
_ONE = f"""
select {_COLUMNS} from incident_updates
where org = %(org)s and incident = %(incident)s and uid = %(uid)s
"""


async def select_updates(tx: Tx, org: int, incident: int) -> list[UpdateRow]:
    """Returns the updates of an incident by ascending seq."""
    return await tx.structs(UpdateRow, _OF, org=org, incident=incident)


async def select_update(tx: Tx, org: int, incident: int, uid: UUID) -> UpdateRow | None:
    """Returns one update of the incident."""
    return await tx.one(UpdateRow, _ONE, org=org, incident=incident, uid=uid)
