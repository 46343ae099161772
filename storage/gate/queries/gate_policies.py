"""Reads of gate policies."""

from ...engine.pools import Tx
from ..rows import GatePolicyRow
from ..tables.gate_policies import _COLUMNS, _FROM, _row

# The service's policy sorts before the project's; the first row governs.
_GOVERNING = f"""
select {_COLUMNS} {_FROM} and (g.service = %(service)s or g.service is null) and g.ended_at is null
order by g.service nulls last
"""

_OWN = f"""
select {_COLUMNS} {_FROM} and g.service is not distinct from %(service)s::int
  and g.ended_at is null
"""


_OF_PROJECT = f"select {_COLUMNS} {_FROM} and g.ended_at is null"


async def select_policies_of(tx: Tx, org: int, project: int) -> dict[int | None, GatePolicyRow]:
    """Returns the present policies by the key of their service; None is that of the project."""
    rows = await tx.structs(_row, _OF_PROJECT, org=org, project=project)
    return {row.service: row for row in rows}


async def select_governing(tx: Tx, org: int, project: int, service: int) -> GatePolicyRow | None:
    """Returns the policy of a service, or else its project's."""
    return await tx.one(_row, _GOVERNING, org=org, project=project, service=service)


async def select_policy(
    tx: Tx, org: int, project: int, service: int | None
) -> GatePolicyRow | None:
    """Returns the policy of a service itself; with None the project's."""
    return await tx.one(_row, _OWN, org=org, project=project, service=service)
