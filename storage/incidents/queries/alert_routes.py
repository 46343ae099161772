"""Reads of the routes of external alerts."""

from ...engine.pools import Tx
from ..rows import AlertRouteRow, RouteListRow

_OF_PROJECT = """
select r.matchers, r.service, s.uid, s.name, coalesce(r.policy, s.escalation_policy), r.policy,
  p.uid, p.name
from alert_routes r
  left join services s on s.org = r.org and s.id = r.service
  left join escalation_policies p on p.org = r.org and p.id = r.policy
where r.org = %(org)s and r.project = %(project)s order by r.place
"""
_MARKS = """
select id, uid, managed_by, bundle_uid, bundle_path, orphaned_at from alert_route_lists
where org = %(org)s and project = %(project)s
"""


async def select_routes_of(tx: Tx, org: int, project: int) -> list[AlertRouteRow]:
    """Returns the routes of a project in their order. The default, if any, is the last."""
    return await tx.structs(AlertRouteRow, _OF_PROJECT, org=org, project=project)


async def select_route_marks(tx: Tx, org: int, project: int) -> RouteListRow | None:
    """Returns the bundle of the routes, None if people have always owned them."""
    return await tx.one(RouteListRow, _MARKS, org=org, project=project)
