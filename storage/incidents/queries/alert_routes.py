"""Reads of the routes of external alerts."""

from typing import Final
from uuid import UUID

from ...engine.pools import Tx
from ..rows import AlertRouteRow

_OF_PROJECT = """
select r.matchers, r.service, s.uid, s.name, coalesce(r.policy, s.escalation_policy), r.policy,
  p.uid, p.name
from alert_routes r
  left join services s on s.org = r.org and s.id = r.service
  left join escalation_policies p on p.org = r.org and p.id = r.policy
where r.org = %(org)s and r.project = %(project)s order by r.place
"""

_TARGETS = """
select 'policy' as kind, uid, name from escalation_policies
where org = %(org)s and project = %(project)s
union all
select 'service', uid, name from services
where org = %(org)s and project = %(project)s and escalation_policy is not null
order by kind, name, uid limit %(most)s
"""
# Choices of a form. Further recipients are named through the API.
TARGETS_SHOWN: Final = 1_000


async def select_route_targets(tx: Tx, org: int, project: int) -> list[tuple[str, UUID, str]]:
    """Returns (kind, uid, name) of the policies, and of the services that have one."""
    rows = await tx.rows(_TARGETS, org=org, project=project, most=TARGETS_SHOWN)
    return [(row[0], row[1], row[2]) for row in rows]


async def select_routes_of(tx: Tx, org: int, project: int) -> list[AlertRouteRow]:
    """Returns the routes of a project in their order. The default, if any, is the last."""
    return await tx.structs(AlertRouteRow, _OF_PROJECT, org=org, project=project)
