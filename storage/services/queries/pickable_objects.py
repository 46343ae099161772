"""Objects, people and tags of a project by a part of their name, for type-ahead fields."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

# position() instead of LIKE: the text is not a pattern. Names that begin with it come first.
_FOUND: Final = """
select id, uid, name, slug, type, note from {source} where org = %(org)s and project = %(project)s
  and (position(lower(%(q)s) in lower(name)) > 0 or position(lower(%(q)s) in slug) > 0)
  and uid is distinct from %(without)s
order by position(lower(%(q)s) in lower(name)) <> 1, lower(name), id limit %(most)s
"""
_NAMED: Final = """
select id, uid, name, slug, type, note from {source} where org = %(org)s and project = %(project)s
  and (lower(name) = lower(%(text)s) or slug = lower(%(text)s)
    or (slug is null and lower(name || ', ' || type) = lower(%(text)s)))
  and uid is distinct from %(without)s
order by slug is distinct from lower(%(text)s), id limit 2
"""
_CHOSEN: Final = """
select id, uid, name, slug, type, note from {source} where org = %(org)s and project = %(project)s
  and uid = any(%(uids)s::uuid[])
"""
_TAGS: Final = """
select tag from (
  select distinct unnest(tags) as tag from monitors where org = %(org)s and project = %(project)s
) as used where position(lower(%(q)s) in lower(tag)) > 0
order by position(lower(%(q)s) in lower(tag)) <> 1, lower(tag), tag limit %(most)s
"""


class PickableKind(StrEnum):
    MONITOR = "monitor"
    SERVICE = "service"
    CHANNEL = "channel"
    # Services with an escalation policy, and policies.
    RECIPIENT = "recipient"
    PERSON = "person"
    # Members of the project, and channels.
    PARTICIPANT = "participant"
    # What a step of an escalation policy can page.
    TARGET = "target"
    # Members of the project, and escalation policies.
    ASSIGNEE = "assignee"


class PickableType(StrEnum):
    """Type of an object among several; a channel has the name of its notification service."""

    SERVICE = "service"
    POLICY = "escalation policy"
    SCHEDULE = "on-call schedule"
    PERSON = "person"


# Objects without a slug. Their type tells objects of the same name apart.
TYPED: Final = frozenset(set(PickableKind) - {PickableKind.MONITOR, PickableKind.SERVICE})
# Kinds with the names of people, which only editors of the project search.
PEOPLE: Final = frozenset(
    {
        PickableKind.PERSON,
        PickableKind.PARTICIPANT,
        PickableKind.TARGET,
        PickableKind.ASSIGNEE,
    }
)

_CHANNELS: Final = """
  select org, project, id, uid, name, null as slug, type,
    case when enabled then '' else 'disabled' end as note
  from notification_channels where person is null
"""
_POLICIES: Final = """
  select org, project, id, uid, name, null as slug, 'escalation policy' as type, '' as note
  from escalation_policies
"""
_SCHEDULES: Final = """
  select org, project, id, uid, name, null as slug, 'on-call schedule' as type, '' as note
  from oncall_schedules
"""
# People of the same name are told apart by their addresses.
_PEOPLE: Final = """
  select org, project, id, uid,
    case when count(*) over (partition by org, project, lower(name)) = 1 then name
      else name || ' (' || email || ')' end as name,
    null as slug, 'person' as type,
    case when exists (select from contact_methods c
        where c.user_id = members.id and c.verified_at is not null and c.enabled)
      then '' else 'no verified contact method' end as note
  from (
    select distinct p.org, p.id as project, u.id, u.uid, u.email,
      coalesce(nullif(u.display_name, ''), u.email) as name
    from memberships m join projects p on p.org = m.org and (m.project is null or m.project = p.id)
      join users u on u.id = m.user_id
  ) as members
"""


def _any_of(*sources: str) -> str:
    return f"({' union all '.join(sources)}) as objects"


_SOURCES: Final = {
    PickableKind.MONITOR: "(select *, '' as note from monitors) as monitors",
    PickableKind.SERVICE: "(select *, '' as type, '' as note from services) as services",
    PickableKind.CHANNEL: _any_of(_CHANNELS),
    PickableKind.RECIPIENT: _any_of(
        "select org, project, id, uid, name, null as slug, 'service' as type, '' as note"
        " from services where escalation_policy is not null",
        _POLICIES,
    ),
    PickableKind.PERSON: _any_of(_PEOPLE),
    PickableKind.PARTICIPANT: _any_of(_PEOPLE, _CHANNELS),
    PickableKind.TARGET: _any_of(_SCHEDULES, _PEOPLE, _CHANNELS, _POLICIES),
    PickableKind.ASSIGNEE: _any_of(_PEOPLE, _POLICIES),
}


class Pickable(msgspec.Struct, frozen=True):
    """`note` states why a choice does not reach a person now, empty if it does."""

    id: int
    uid: UUID
    name: str
    slug: str | None
    type: str
    note: str = ""


async def select_pickable(
    tx: Tx,
    org: int,
    project: int,
    kind: PickableKind,
    q: str,
    most: int,
    without: UUID | None = None,
) -> list[Pickable]:
    """Returns objects with `q` in their name or slug, by name."""
    query = _FOUND.replace("{source}", _SOURCES[kind])
    return await tx.structs(
        Pickable, query, org=org, project=project, q=q, most=most, without=without
    )


async def select_named(
    tx: Tx, org: int, project: int, kind: PickableKind, text: str, without: UUID | None = None
) -> list[Pickable]:
    """Returns at most two objects with this name or slug, the slug first.

    An object without a slug is also named by its name and type: `Ops, slack`.
    """
    query = _NAMED.replace("{source}", _SOURCES[kind])
    return await tx.structs(Pickable, query, org=org, project=project, text=text, without=without)


async def select_chosen(
    tx: Tx, org: int, project: int, kind: PickableKind, uids: Collection[UUID]
) -> dict[UUID, Pickable]:
    """Returns the objects of the project among the uids."""
    query = _CHOSEN.replace("{source}", _SOURCES[kind])
    rows = await tx.structs(Pickable, query, org=org, project=project, uids=list(uids))
    return {row.uid: row for row in rows}


async def select_pickable_tags(tx: Tx, org: int, project: int, q: str, most: int) -> list[str]:
    """Returns tags of monitors with `q` in them, by name."""
    return [tag for (tag,) in await tx.rows(_TAGS, org=org, project=project, q=q, most=most)]
