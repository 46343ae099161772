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
  u.channels, u.managed, h.webhooks, h.managed
from project_secrets s left join ({_REFERRING}) r on r.name = to_jsonb(s.name)
  cross join lateral (
    select count(distinct k.id) as channels,
      count(distinct k.id) filter (where k.managed_by <> '' and k.orphaned_at is null) as managed
    from notification_channels k, jsonb_each_text(k.config) f
    where k.org = s.org and k.project = s.project and f.value = s.name
      and right(f.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}') u
  cross join lateral (
    select count(*) as webhooks, count(b.id) as managed
    from webhooks w left join bundle_objects b on b.org = w.org and b.project = w.project
      and b.kind = 'webhook' and b.uid = w.uid and b.managed_by <> ''
    where w.org = s.org and w.secret = s.id) h
where s.org = %(org)s and s.project = %(project)s
order by s.name
"""
_CHANNELS = f"""
from notification_channels k, jsonb_each_text(k.config) f
where k.org = %(org)s and k.project = %(project)s and f.value = %(name)s
  and right(f.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}'
"""
_WEBHOOKS = """
from project_secrets s join webhooks w on w.org = s.org and w.secret = s.id
where s.org = %(org)s and s.project = %(project)s and s.name = %(name)s
"""
_IN_USE = f"""
select exists (select from ({_REFERRING}) r where r.name = to_jsonb(%(name)s::text))
  or exists (select {_CHANNELS}) or exists (select {_WEBHOOKS})
"""
_MANAGED_DESTINATION = f"""
(select 'channel ' || k.name, k.managed_by {_CHANNELS}
  and k.managed_by <> '' and k.orphaned_at is null order by k.id limit 1)
union all
(select 'webhook ' || b.bundle_uid, b.managed_by from bundle_objects b
  where b.org = %(org)s and b.project = %(project)s and b.kind = 'webhook' and b.managed_by <> ''
    and b.uid in (select w.uid {_WEBHOOKS}) order by b.id limit 1)
limit 1
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
    used_by_webhooks: int = 0
    used_by_webhooks_managed: int = 0

    @property
    def uses(self) -> int:
        return self.used_by + self.used_by_channels + self.used_by_webhooks

    @property
    def managed_uses(self) -> int:
        managed = self.used_by_channels_managed + self.used_by_webhooks_managed
        return self.used_by_managed + managed


async def select_secrets(tx: Tx, org: int, project: int) -> list[ListedSecret]:
    return await tx.structs(ListedSecret, _LIST, org=org, project=project)


async def is_referred_to(tx: Tx, org: int, project: int, name: str) -> bool:
    found: bool = await tx.value(_IN_USE, org=org, project=project, name=name)
    return found


async def select_managed_destination(
    tx: Tx, org: int, project: int, name: str
) -> tuple[str, str] | None:
    """Returns a channel or webhook of a bundle that refers to a secret, and its provider."""
    found = await tx.row(_MANAGED_DESTINATION, org=org, project=project, name=name)
    return None if found is None else (found[0], found[1])


async def select_referring(tx: Tx, org: int, project: int, name: str) -> list[MonitorKey]:
    """Returns the monitors that refer to a secret."""
    rows = await tx.rows(_OF_SECRET, org=org, project=project, name=name)
    return [MonitorKey((org, monitor)) for (monitor,) in rows]
