"""Present names of the objects that audit entries identify by kind and id."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from ...engine.pools import Tx

_OF_ORGANIZATION = """
select k.kind, k.uid, k.name, p.uid from (
  select 'monitor', uid, name, org, project from monitors
  union all select 'service', uid, name, org, project from services
  union all select 'incident', uid, title, org, project from incidents
  union all select 'incident_template', uid, name, org, project from incident_templates
  union all select 'mute', uid, reason, org, project from mutes
  union all select 'channel', uid, name, org, project from notification_channels
  union all select 'escalation_policy', uid, name, org, project from escalation_policies
  union all select 'oncall_schedule', uid, name, org, project from oncall_schedules
  union all select 'token', uid, name, org, project from api_tokens
  union all select 'status_page', uid, title, org, project from status_pages
  union all select 'status_component', uid, name, org, null from status_components
  union all select 'project', uid, name, org, id from projects
  union all select 'invitation', uid, email, org, project from invitations
  -- The address of a former member is not shown again.
  union all select distinct 'user', u.uid, u.email, m.org, null::int
    from users u join memberships m on m.user_id = u.id
) k(kind, uid, name, org, project)
  left join projects p on p.org = k.org and p.id = k.project
where k.org = %(org)s and k.uid = any(%(uids)s::uuid[])
"""
_OF_INSTALLATION = """
select 'user', uid, email, null::uuid from users where uid = any(%(uids)s::uuid[])
union all select 'organization', uid, name, null from organizations
  where uid = any(%(uids)s::uuid[])
union all select 'agent_token', uid, name, null from agent_tokens where uid = any(%(uids)s::uuid[])
"""


class AuditedObject(msgspec.Struct, frozen=True):
    """Object that still exists. `project` is None outside projects."""

    kind: str
    uid: UUID
    name: str
    project: UUID | None


async def select_audited(
    tx: Tx, org: int, uids: Collection[UUID], *, is_installation: bool
) -> dict[tuple[str, UUID], AuditedObject]:
    """Returns the objects by kind and id: of the organization, or of the installation."""
    statement = _OF_INSTALLATION if is_installation else _OF_ORGANIZATION
    given = {"uids": list(uids)} | ({} if is_installation else {"org": org})
    rows = await tx.structs(AuditedObject, statement, **given)
    return {(row.kind, row.uid): row for row in rows}
