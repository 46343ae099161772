"""Reads of cover requests."""

from collections.abc import Collection
from uuid import UUID

from ...engine.pools import Tx
from ..rows import CoverRequestRow
from ..tables.cover_requests import _COLUMNS, _FROM

_BY_UID = f"select {_COLUMNS} {_FROM} where q.uid = %(uid)s"
# Requests that are not over.
_OF_SCHEDULES = f"""
select {_COLUMNS} {_FROM}
where q.org = %(org)s and q.schedule = any(%(schedules)s::int[]) and q.ends_at > at(%(now)s)
order by q.starts_at, q.id
"""


async def select_cover_requests(
    tx: Tx, org: int, schedules: Collection[int]
) -> list[CoverRequestRow]:
    """Returns the requests that are not over, in order of their start."""
    return await tx.structs(
        CoverRequestRow, _OF_SCHEDULES, org=org, schedules=sorted(schedules), now=tx.now
    )


async def select_cover_request(tx: Tx, uid: UUID) -> CoverRequestRow | None:
    return await tx.one(CoverRequestRow, _BY_UID, uid=uid)
