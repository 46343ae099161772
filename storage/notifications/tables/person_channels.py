"""People as recipients of a project: a channel of the person, and one of each contact method.

The channel of a person has the id of the account, that of a method the id of the method. They are
no channels of the project for the API: only on-call uses them.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from ...engine.pools import LockRank, Tx
from ..rules.personal_rules import QuietHours

_IS_MEMBER = """
exists (select from memberships m where m.user_id = u.id and m.org = %(org)s
  and (m.project is null or m.project = %(project)s))
"""
# A removal of the membership waits, and then finds the new reference.
_HOLD_MEMBERS = """
select m.id from memberships m join users u on u.id = m.user_id
where u.uid = any(%(uids)s::uuid[]) and m.org = %(org)s
  and (m.project is null or m.project = %(project)s)
order by m.id for key share of m
"""
_ENSURE = f"""
insert into notification_channels
  (org, uid, project, type, name, config, enabled, created_at, updated_at, person)
select %(org)s, u.uid, %(project)s, 'person', coalesce(nullif(u.display_name, ''), u.email), '{{}}',
  exists (select from contact_methods m
    where m.user_id = u.id and m.verified_at is not null and m.enabled),
  at(%(now)s), at(%(now)s), u.id
from users u where u.uid = any(%(uids)s::uuid[]) and {_IS_MEMBER}
order by u.id
on conflict (org, project, person) where person is not null and contact_method is null
do update set name = excluded.name, enabled = excluded.enabled
returning uid, id
"""
_PEOPLE = f"""
select c.id, u.id, c.name from notification_channels c join users u on u.id = c.person
where c.org = %(org)s and c.project = %(project)s and c.id = any(%(channels)s::int[])
  and c.contact_method is null and {_IS_MEMBER}
order by c.id
"""
_ARE_PEOPLE = """
select id from notification_channels
where org = %(org)s and id = any(%(channels)s::int[]) and person is not null
  and contact_method is null
"""
_USABLE = """
select user_id, id from contact_methods
where user_id = any(%(users)s::int[]) and enabled and verified_at is not null order by user_id, id
"""
_QUIET = """
select user_id, quiet_from, quiet_until, quiet_zone from contact_settings
where user_id = any(%(users)s::int[]) and quiet_from is not null
"""
_ENSURE_METHODS = """
insert into notification_channels
  (org, uid, project, type, name, config, enabled, created_at, updated_at, person, contact_method)
select %(org)s, m.uid, %(project)s, m.kind,
  coalesce(nullif(u.display_name, ''), u.email) || ' (' || m.kind || ': ' || m.label || ')', '{}',
  true, at(%(now)s), at(%(now)s), m.user_id, m.id
from contact_methods m join users u on u.id = m.user_id
where m.id = any(%(methods)s::int[]) and m.enabled and m.verified_at is not null
order by m.id
on conflict do nothing
"""
_OF_METHODS = """
select id, contact_method, person from notification_channels
where org = %(org)s and project = %(project)s and contact_method = any(%(methods)s::int[])
  and enabled
"""
_PEOPLE_OF_METHODS = """
select id, person from notification_channels
where org = %(org)s and id = any(%(channels)s::int[]) and contact_method is not null
"""


class PersonChannel(msgspec.Struct, frozen=True):
    """Channel of a member of the project. `user` is the key of the account."""

    channel: int
    user: int
    name: str


class MethodChannel(msgspec.Struct, frozen=True):
    channel: int
    method: int
    user: int


async def ensure_people(tx: Tx, org: int, project: int, uids: Collection[UUID]) -> dict[UUID, int]:
    """Creates and locks the channels of those people that are members. Returns their keys."""
    if not uids:
        return {}
    tx.lock_rank(LockRank.CHANNEL, "channels of people that are referred to")
    given = {"org": org, "project": project, "uids": sorted(uids)}
    await tx.rows(_HOLD_MEMBERS, **given)
    return dict(await tx.rows(_ENSURE, **given, now=tx.now))


async def select_people(
    tx: Tx, org: int, project: int, channels: Sequence[int]
) -> tuple[set[int], list[PersonChannel]]:
    """Returns which channels are people, and those of them that are still members."""
    every = {row[0] for row in await tx.rows(_ARE_PEOPLE, org=org, channels=list(channels))}
    if not every:
        return every, []
    found = await tx.structs(
        PersonChannel, _PEOPLE, org=org, project=project, channels=sorted(every)
    )
    return every, found


async def select_usable_methods(tx: Tx, users: Sequence[int]) -> dict[int, list[int]]:
    """Returns the verified and enabled methods of each person."""
    found: dict[int, list[int]] = {user: [] for user in users}
    for user, method in await tx.rows(_USABLE, users=list(users)):
        found[user].append(method)
    return found


async def select_quiet_hours(tx: Tx, users: Sequence[int]) -> dict[int, QuietHours]:
    rows = await tx.rows(_QUIET, users=list(users))
    return {user: QuietHours(since, until, zone) for user, since, until, zone in rows}


async def ensure_method_channels(
    tx: Tx, org: int, project: int, methods: Collection[int]
) -> list[MethodChannel]:
    """Returns the channels of usable methods; creates missing ones."""
    given = {"org": org, "project": project, "methods": sorted(methods)}
    await tx.execute(_ENSURE_METHODS, **given, now=tx.now)
    return await tx.structs(MethodChannel, _OF_METHODS, **given)


async def select_people_of_methods(tx: Tx, org: int, channels: Sequence[int]) -> dict[int, int]:
    """Returns the person of each channel that is a contact method."""
    return dict(await tx.rows(_PEOPLE_OF_METHODS, org=org, channels=list(channels)))
