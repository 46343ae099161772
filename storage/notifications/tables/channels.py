"""Channels of projects and their monitors. Callers encrypt the secrets."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from ...core.key import ChannelKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import ChannelRow

_COLUMNS = """
c.org, c.id, c.uid, c.project, p.uid, c.type, c.name, coalesce(k.config, c.config)::text,
coalesce(k.config_ciphertext, c.config_ciphertext), c.enabled, c.created_at, c.contact_method,
c.takes_tickets, c.takes_warnings,
coalesce((
  select jsonb_object_agg(f.key, jsonb_build_array(s.uid, encode(s.value_ciphertext, 'base64')))
  from jsonb_each_text(c.config) f
    join project_secrets s on s.org = c.org and s.project = c.project and s.name = f.value
  where right(f.key, 4) = '_ref'), '{}')::text,
c.managed_by, c.bundle_uid, c.bundle_path, c.orphaned_at
"""
_FROM = """
from notification_channels c join projects p on p.org = c.org and p.id = c.project
  left join contact_methods k on k.id = c.contact_method
"""
# Channels of people and of their contact methods are no channels of the API.
_BY_UID = f"select {_COLUMNS} {_FROM} where c.uid = %(uid)s and c.person is null"
# The lock prevents lost updates. Events of incidents and new references wait for a deletion only.
_LOCK = f"{_BY_UID} for no key update of c"
_LOCK_TO_DELETE = f"{_BY_UID} for update of c"
_BY_KEY = f"""
select {_COLUMNS} {_FROM}
  join unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id) on c.org = t.org and c.id = t.id
"""
_COUNT = """
select count(*) from notification_channels
where org = %(org)s and project = %(project)s and person is null
"""
_INSERT = """
insert into notification_channels
  (org, uid, project, type, name, config, config_ciphertext, enabled, takes_tickets, takes_warnings,
  created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(type)s, %(name)s, %(config)s::jsonb, %(sealed)s,
  %(enabled)s, %(takes_tickets)s, %(takes_warnings)s, at(%(now)s), at(%(now)s))
"""
_UPDATE = """
update notification_channels set name = %(name)s, config = %(config)s::jsonb,
  config_ciphertext = %(sealed)s, enabled = %(enabled)s, takes_tickets = %(takes_tickets)s,
  takes_warnings = %(takes_warnings)s,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from notification_channels where org = %(org)s and id = %(id)s"
_HOLD = """
select id from notification_channels
where uid = %(uid)s and org = %(org)s and project = %(project)s and person is null for key share
"""
_HOLD_SEVERAL = """
select uid, id from notification_channels
where uid = any(%(uids)s::uuid[]) and org = %(org)s and project = %(project)s and person is null
order by id for key share
"""
# A rename or deletion of a secret waits for transactions that refer to it.
_HOLD_SECRETS = """
select name, uid, value_ciphertext from project_secrets
where org = %(org)s and project = %(project)s and name = any(%(names)s) order by name for key share
"""
_ATTACH = """
insert into monitor_channels (org, monitor, channel)
values (%(org)s, %(monitor)s, %(channel)s) on conflict do nothing
"""
_ARE_MANAGED = """
select channels_managed from monitors where org = %(org)s and id = %(monitor)s
"""
_DETACH = """
delete from monitor_channels m using notification_channels c
where m.org = %(org)s and m.monitor = %(monitor)s and c.org = m.org and c.id = m.channel
  and c.uid = %(uid)s
"""
# Of several monitors: %(items)s are objects of the id of a monitor and those of its channels.
_ATTACHED = """
select m.org, m.id as monitor, c.id as channel
from json_to_recordset(%(items)s::json) as i(monitor uuid, channels uuid[])
  join monitors m on m.uid = i.monitor and m.org = %(org)s and m.project = %(project)s
  left join notification_channels c on c.org = m.org and c.project = m.project
    and c.uid = any(i.channels)
"""
_DETACH_OTHERS = f"""
with wanted as materialized ({_ATTACHED})
delete from monitor_channels a using (select distinct org, monitor from wanted) w
where a.org = w.org and a.monitor = w.monitor
  and not exists (select from wanted k where k.monitor = a.monitor and k.channel = a.channel)
"""
_ATTACH_ALL = f"""
insert into monitor_channels (org, monitor, channel)
select w.org, w.monitor, w.channel from ({_ATTACHED}) w where w.channel is not null
on conflict do nothing
"""


async def lock_channel(tx: Tx, uid: UUID, *, to_delete: bool = False) -> ChannelRow | None:
    tx.lock_rank(LockRank.CHANNEL, "a channel that changes")
    return await tx.one(ChannelRow, _LOCK_TO_DELETE if to_delete else _LOCK, uid=uid)


async def select_channels_by_key(tx: Tx, keys: Sequence[ChannelKey]) -> list[ChannelRow]:
    """Returns existing channels by (organization, id), unordered."""
    if not keys:
        return []
    return await tx.structs(ChannelRow, _BY_KEY, **key_arrays(keys, "ids"))


async def count_channels(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def insert_channel(tx: Tx, values: dict[str, Any]) -> None:
    await tx.execute(_INSERT, **values, now=tx.now)


async def update_channel(
    tx: Tx,
    row: ChannelRow,
    *,
    name: str,
    config: str,
    sealed: bytes | None,
    enabled: bool,
    takes_tickets: bool,
    takes_warnings: bool,
) -> None:
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        config=config,
        sealed=sealed,
        enabled=enabled,
        takes_tickets=takes_tickets,
        takes_warnings=takes_warnings,
        now=tx.now,
    )
    assert count == 1, "the channel is locked and there"


async def delete_channel(tx: Tx, row: ChannelRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


async def lock_shared_channel(tx: Tx, org: int, project: int, uid: UUID) -> int | None:
    """Share-locks a channel of the project. Returns its key, or None."""
    tx.lock_rank(LockRank.CHANNEL, "a channel that is referred to")
    key: int | None = await tx.value(_HOLD, org=org, project=project, uid=uid)
    return key


async def lock_shared_channels(
    tx: Tx, org: int, project: int, uids: Collection[UUID]
) -> dict[UUID, int]:
    """Share-locks channels of the project. Returns their keys."""
    tx.lock_rank(LockRank.CHANNEL, "channels that are referred to")
    return dict(await tx.rows(_HOLD_SEVERAL, org=org, project=project, uids=list(uids)))


async def lock_shared_values(
    tx: Tx, org: int, project: int, names: Collection[str]
) -> dict[str, tuple[UUID, bytes]]:
    """Share-locks project secrets. Returns the ids and encrypted values of those that exist."""
    if not names:
        return {}
    tx.lock_rank(LockRank.SECRET, "secrets that a channel refers to")
    rows = await tx.rows(_HOLD_SECRETS, org=org, project=project, names=sorted(names))
    return {name: (uid, sealed) for name, uid, sealed in rows}


async def attach_channel(tx: Tx, org: int, monitor: int, channel: int) -> bool:
    """Returns False if the channel was already attached."""
    return await tx.execute(_ATTACH, org=org, monitor=monitor, channel=channel) == 1


async def are_channels_managed(tx: Tx, org: int, monitor: int) -> bool:
    """Returns whether the bundle of a managed monitor states its channels."""
    found: bool | None = await tx.value(_ARE_MANAGED, org=org, monitor=monitor)
    return bool(found)


async def put_attached(
    tx: Tx, org: int, project: int, channels: Mapping[UUID, Collection[UUID]]
) -> None:
    """Replaces the channels of monitors of a project. Monitors and channels are locked or new."""
    items = msgspec.json.encode(
        [{"monitor": uid, "channels": list(found)} for uid, found in channels.items()]
    ).decode()
    for query in (_DETACH_OTHERS, _ATTACH_ALL):
        await tx.execute(query, org=org, project=project, items=items)


async def detach_channel(tx: Tx, org: int, monitor: int, uid: UUID) -> bool:
    """Returns False if the channel was not attached."""
    return await tx.execute(_DETACH, org=org, monitor=monitor, uid=uid) == 1
