"""Reads of services."""

from collections.abc import Sequence
from uuid import UUID

from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rows import ServiceRow
from ..tables import services as services_table
from ..tables.services import COLUMNS, FROM

_OF_PROJECT = f"""
select {COLUMNS} {FROM} where s.org = %(org)s and s.project = %(project)s order by s.slug
"""


async def select_services_of_project(tx: Tx, org: int, project: int) -> list[ServiceRow]:
    """Returns the services of a project by slug."""
    return await tx.structs(ServiceRow, _OF_PROJECT, org=org, project=project)


async def select_service(tx: Tx, uid: UUID) -> ServiceRow | None:
    return await services_table.select_service(tx, uid)


async def select_services(tx: Tx, keys: Sequence[ServiceKey]) -> dict[ServiceKey, ServiceRow]:
    return await services_table.select_services(tx, keys)
