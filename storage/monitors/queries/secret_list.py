"""Secrets of a project as shown: names, ages, and the numbers of referring objects."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rules.secret import REFERENCE_SUFFIX

# Computed from the settings themselves, so that the count is always correct.
_REFERENCES = f"""
from monitors m, jsonb_each(m.config) c
where m.org = %(org)s and m.project = %(project)s
  and right(c.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}'
  and jsonb_typeof(c.value) = 'string'
"""
# An orphan is edited by users.
_REFERRING = f"""
select c.value as name, count(distinct m.id) as monitors,
  count(distinct m.id) filter (where m.managed_by <> '' and m.orphaned_at is null) as managed
{_REFERENCES}
group by c.value
"""
_LIST = f"""
select s.uid, s.name, s.created_at, s.rotated_at, coalesce(r.monitors, 0),
  coalesce(r.managed, 0),
  u.channels, u.managed
from project_secrets s left join ({_REFERRING}) r on r.name = to_jsonb(s.name)
  cross join lateral (
    select count(distinct k.id) as channels,
      count(distinct k.id) filter (where k.managed_by <> '' and k.orphaned_at is null) as managed
    from notification_channels k, jsonb_each_text(k.config) f
    where k.org = s.org and k.project = s.project and f.value = s.name
      and right(f.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}') u
where s.org = %(org)s and s.project = %(project)s
order by s.name
"""
_CHANNELS = f"""
from notification_channels k, jsonb_each_text(k.config) f
where k.org = %(org)s and k.project = %(project)s and f.value = %(name)s
  and right(f.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}'
"""
_IN_USE = f"""
select exists (select from ({_REFERRING}) r where r.name = to_jsonb(%(name)s::text))
  or exists (select {_CHANNELS})
"""
_MANAGED_CHANNEL = f"""
select k.name, k.managed_by {_CHANNELS} and k.managed_by <> '' and k.orphaned_at is null
order by k.id limit 1
"""
_OF_SECRET = f"""
select distinct m.id {_REFERENCES} and c.value = to_jsonb(%(name)s::text)
"""


class ListedSecret(msgspec.Struct, frozen=True):
    uid: UUID
    name: str
    created_at: Instant
    rotated_at: Instant | None
    used_by: int
    used_by_managed: int
    used_by_channels: int = 0
    used_by_channels_managed: int = 0

    @property
    def uses(self) -> int:
        return self.used_by + self.used_by_channels

    @property
    def managed_uses(self) -> int:
        return self.used_by_managed + self.used_by_channels_managed


async def select_secrets(tx: Tx, org: int, project: int) -> list[ListedSecret]:
    return await tx.structs(ListedSecret, _LIST, org=org, project=project)


async def is_referred_to(tx: Tx, org: int, project: int, name: str) -> bool:
    found: bool = await tx.value(_IN_USE, org=org, project=project, name=name)
    return found


async def select_managed_channel(
    tx: Tx, org: int, project: int, name: str
) -> tuple[str, str] | None:
    """Returns name and provider of a channel of a bundle that refers to a secret."""
    found = await tx.row(_MANAGED_CHANNEL, org=org, project=project, name=name)
    return None if found is None else (found[0], found[1])


async def select_referring(tx: Tx, org: int, project: int, name: str) -> list[MonitorKey]:
    """Returns the monitors that refer to a secret."""
    rows = await tx.rows(_OF_SECRET, org=org, project=project, name=name)
    return [MonitorKey((org, monitor)) for (monitor,) in rows]
