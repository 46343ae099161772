"""The monitor that a page of the console is about."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import MonitorRow
from . import monitors as monitors_queries

_NAMES = """
select uid, name from monitors where org = %(org)s and project = %(project)s
order by lower(name), id limit %(most)s
"""


async def select_shown_monitor(tx: Tx, uid: UUID) -> MonitorRow | None:
    return await monitors_queries.select_monitor(tx, uid)


async def select_names(tx: Tx, org: int, project: int, most: int) -> list[tuple[UUID, str]]:
    """The project's monitors by name, for choosing among them."""
    return [(uid, name) for uid, name in await tx.rows(_NAMES, org=org, project=project, most=most)]
