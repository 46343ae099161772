"""Monitors of the console screens."""

from collections.abc import Collection
from uuid import UUID

from ...engine.pools import Tx
from ..rows import MonitorRow
from . import monitors as monitors_queries

_NAMES = """
select uid, name from monitors where org = %(org)s and project = %(project)s
order by lower(name), id limit %(most)s
"""
_NAMES_OF = "select uid, name from monitors where org = %(org)s and uid = any(%(uids)s::uuid[])"


async def select_shown_monitor(tx: Tx, uid: UUID) -> MonitorRow | None:
    return await monitors_queries.select_monitor(tx, uid)


async def select_names(tx: Tx, org: int, project: int, most: int) -> list[tuple[UUID, str]]:
    """Returns the monitors of a project by name, for selection lists."""
    return [(uid, name) for uid, name in await tx.rows(_NAMES, org=org, project=project, most=most)]


async def select_names_of(tx: Tx, org: int, uids: Collection[UUID]) -> dict[UUID, str]:
    """Returns the names of the monitors that exist."""
    return dict(await tx.rows(_NAMES_OF, org=org, uids=list(uids)))
