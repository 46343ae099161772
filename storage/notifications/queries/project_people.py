"""Members of a project that on-call can name."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

# Choices of a form. Further members are named through the API.
PEOPLE_SHOWN: Final = 500
_MEMBERS = """
select distinct u.uid, coalesce(nullif(u.display_name, ''), u.email) as name,
  exists (select from contact_methods m
    where m.user_id = u.id and m.verified_at is not null and m.enabled)
from memberships m join users u on u.id = m.user_id
where m.org = %(org)s and (m.project is null or m.project = %(project)s)
order by name, u.uid limit %(most)s
"""


class ProjectMember(msgspec.Struct, frozen=True):
    """Member that on-call can name. `is_reachable`: a contact method is verified and enabled."""

    uid: UUID
    name: str
    is_reachable: bool


async def select_project_members(tx: Tx, org: int, project: int) -> list[ProjectMember]:
    return await tx.structs(ProjectMember, _MEMBERS, org=org, project=project, most=PEOPLE_SHOWN)


async def people_choices(tx: Tx, org: int, project: int) -> list[tuple[UUID, str]]:
    """Returns the members by name, with the text that a form shows."""
    return [
        (one.uid, one.name if one.is_reachable else f"{one.name} (no verified contact method)")
        for one in await select_project_members(tx, org, project)
    ]
