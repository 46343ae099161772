"""Scopes of objects, for checks of visibility."""

from uuid import UUID

from ...engine.pools import Tx
from ..rules.access import Scope

_OF = {
    "organization": """
select id, null from organizations where uid = %(uid)s and deleting_since is null""",
    "project": "select org, id from projects where uid = %(uid)s and deleting_since is null",
    "monitor": "select org, project from monitors where uid = %(uid)s",
    "token": "select org, null from api_tokens where uid = %(uid)s",
    "invitation": "select org, null from invitations where uid = %(uid)s",
    "channel": (
        "select org, project from notification_channels where uid = %(uid)s and person is null"
    ),
    "webhook": "select org, null from webhooks where uid = %(uid)s",
    "incident": "select org, project from incidents where uid = %(uid)s",
    "template": "select org, project from incident_templates where uid = %(uid)s",
    "mute": "select org, project from mutes where uid = %(uid)s",
    "service": "select org, project from services where uid = %(uid)s",
    "policy": "select org, project from escalation_policies where uid = %(uid)s",
    "schedule": "select org, project from oncall_schedules where uid = %(uid)s",
    "override": """
select s.org, s.project from oncall_overrides o
  join oncall_schedules s on s.org = o.org and s.id = o.schedule
where o.uid = %(uid)s""",
    "cover_request": """
select s.org, s.project from oncall_cover_requests q
  join oncall_schedules s on s.org = q.org and s.id = q.schedule
where q.uid = %(uid)s""",
    "maintenance": "select org, project from maintenances where uid = %(uid)s",
    "series": "select org, project from maintenance_series where uid = %(uid)s",
    "page": "select org, project from status_pages where uid = %(uid)s",
    "component": """
select g.org, g.project from status_components c
  join status_pages g on g.org = c.org and g.id = c.page
where c.uid = %(uid)s""",
    "operation": "select org, project from operations where uid = %(uid)s",
}
KINDS = frozenset(_OF)


async def select_scope(tx: Tx, kind: str, uid: UUID) -> Scope | None:
    """Returns the scope of an object of one of KINDS, None if it does not exist."""
    row = await tx.row(_OF[kind], uid=uid)
    return Scope(row[0], row[1]) if row else None
