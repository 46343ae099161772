"""Reads of maintenance series."""

from ...engine.pools import Tx
from ..rows import SeriesRow
from ..tables.maintenance_series import _SELECT

_OF_PROJECT = f"""
{_SELECT} where x.org = %(org)s and x.project = %(project)s and x.ended_at is null order by x.id
"""


async def select_series_of(tx: Tx, org: int, project: int) -> list[SeriesRow]:
    """Returns the series of a project that have not ended."""
    return await tx.structs(SeriesRow, _OF_PROJECT, org=org, project=project)
