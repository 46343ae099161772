"""Objects and tags of a project by a part of their name or slug, for type-ahead fields."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

# position() instead of LIKE: the text is not a pattern. Names that begin with it come first.
_FOUND: Final = """
select id, uid, name, slug, type from {source} where org = %(org)s and project = %(project)s
  and (position(lower(%(q)s) in lower(name)) > 0 or position(lower(%(q)s) in slug) > 0)
  and uid is distinct from %(without)s
order by position(lower(%(q)s) in lower(name)) <> 1, lower(name), id limit %(most)s
"""
_NAMED: Final = """
select id, uid, name, slug, type from {source} where org = %(org)s and project = %(project)s
  and (lower(name) = lower(%(text)s) or slug = lower(%(text)s)
    or (slug is null and lower(name || ', ' || type) = lower(%(text)s)))
  and uid is distinct from %(without)s
order by slug is distinct from lower(%(text)s), id limit 2
"""
_CHOSEN: Final = """
select id, uid, name, slug, type from {source} where org = %(org)s and project = %(project)s
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
    # Members of the project, and channels.


# Objects without a slug. Their type tells objects of the same name apart.
TYPED: Final = frozenset({PickableKind.CHANNEL, PickableKind.RECIPIENT})
_SOURCES: Final = {
    PickableKind.MONITOR: "monitors",
    PickableKind.SERVICE: "(select *, '' as type from services) as services",
    PickableKind.CHANNEL: (
        "(select *, null as slug from notification_channels where person is null) as channels"
    ),
    PickableKind.RECIPIENT: """(
      select org, project, id, uid, name, null as slug, 'service' as type from services
      where escalation_policy is not null
      union all
      select org, project, id, uid, name, null, 'escalation policy' from escalation_policies
    ) as recipients""",
}


class Pickable(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    name: str
    slug: str | None
    type: str


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
