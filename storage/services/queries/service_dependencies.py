"""Reads of service dependencies."""

from ...engine.pools import Tx

_GENERATION = "select graph_generation from projects where org = %(org)s and id = %(project)s"

_OF_PROJECT = """
select d.service, d.upstream
from service_dependencies d join services s on s.org = d.org and s.id = d.service
where d.org = %(org)s and s.project = %(project)s
order by d.service, d.upstream
"""


async def select_generation(tx: Tx, org: int, project: int) -> int:
    generation: int = await tx.value(_GENERATION, org=org, project=project)
    return generation


async def select_edges(tx: Tx, org: int, project: int) -> dict[int, list[int]]:
    """Returns the upstreams per service of a project, for services with upstreams."""
    found: dict[int, list[int]] = {}
    for service, upstream in await tx.rows(_OF_PROJECT, org=org, project=project):
        found.setdefault(service, []).append(upstream)
    return found
