"""Routes of external alerts of projects. Every writer locks the project."""

from collections.abc import Sequence

from ...engine.pools import Tx

_DELETE = "delete from alert_routes where org = %(org)s and project = %(project)s"
_INSERT = """
insert into alert_routes (org, project, place, matchers, service, policy)
select %(org)s, %(project)s, t.place, t.matchers, t.service, t.policy
from unnest(%(places)s::int[], %(matchers)s::text[], %(services)s::int[], %(policies)s::int[])
  as t(place, matchers, service, policy)
"""


_ENSURE_MARKS = """
insert into alert_route_lists (org, project, uid)
select p.org, p.id, p.uid from projects p where p.org = %(org)s and p.id = %(project)s
on conflict do nothing
"""


async def ensure_route_marks(tx: Tx, org: int, project: int) -> None:
    """Inserts the row of the marks of a locked project."""
    await tx.execute(_ENSURE_MARKS, org=org, project=project)


async def replace_routes(
    tx: Tx, org: int, project: int, routes: Sequence[tuple[str, int | None, int | None]]
) -> None:
    """Replaces the routes by (matchers, service, policy) in their order."""
    await tx.execute(_DELETE, org=org, project=project)
    await tx.execute(
        _INSERT,
        org=org,
        project=project,
        places=list(range(len(routes))),
        matchers=[matchers for matchers, _, _ in routes],
        services=[service for _, service, _ in routes],
        policies=[policy for _, _, policy in routes],
    )
