"""Reads of on-call overrides."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import OnCallOverrideRow
from ..tables.oncall_overrides import _COLUMNS, _FROM

_BY_UID = f"select {_COLUMNS} {_FROM} where o.uid = %(uid)s"

_OF_SCHEDULE = f"""
select {_COLUMNS} {_FROM} where o.org = %(org)s and o.schedule = %(schedule)s
order by o.starts_at, o.id
"""


async def select_override(tx: Tx, uid: UUID) -> OnCallOverrideRow | None:
    return await tx.one(OnCallOverrideRow, _BY_UID, uid=uid)


async def select_overrides_of(tx: Tx, org: int, schedule: int) -> list[OnCallOverrideRow]:
    return await tx.structs(OnCallOverrideRow, _OF_SCHEDULE, org=org, schedule=schedule)
