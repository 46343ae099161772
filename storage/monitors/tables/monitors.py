"""Monitors and their configuration. Secret settings are already encrypted."""

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

from ....probes.check.condition import CONDITION_LONGEST
from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import MonitorRef, MonitorRow
from ..rules.fields import FIELDS, LISTS

# Fields of MonitorRow without a column of the same name in monitors.
_EXPRESSIONS: Final = {
    "project_uid": "p.uid",
    "region": "s.region",
    "config": "m.config::text",
    "superseded_by_uid": (
        "(select v.uid from services v where v.org = m.org and v.id = m.superseded_by)"
    ),
}
COLUMNS: Final = ", ".join(
    _EXPRESSIONS.get(name, f"m.{name}") for name in MonitorRow.__struct_fields__
)
# The region of a monitor is that of its shard.
WRITTEN: Final = tuple(name for name in FIELDS if name != "region")
_PARAMETERS: Final = {
    name: f"%({name})s::text[]" if name in LISTS else f"%({name})s" for name in WRITTEN
}

FROM = """
from monitors m join projects p on p.org = m.org and p.id = m.project
  join shards s on s.id = m.shard
"""

# An insert of a row that refers to the monitor locks it FOR KEY SHARE, which blocks a deletion but
# not an edit.
_LOCK_BY_UID = "select from monitors where uid = %(uid)s for no key update"
_LOCK_TO_DELETE = "select from monitors where uid = %(uid)s for update"
# A separate statement: the statement that waited for the lock would not find the new region of a
# monitor that has just moved.
_BY_UID = f"select {COLUMNS} {FROM} where m.uid = %(uid)s"
_BY_KEYS = f"""
select {COLUMNS} {FROM}
where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""

# Not a join: before the statistics of new rows exist, its plan compared each pair of rows.
_OF_ORG = f"select {COLUMNS} {FROM} where m.org = %(org)s and m.id = any(%(ids)s::int[])"

_INSERT = f"""
with made as (
insert into monitors (org, uid, project, shard, slug, type, {", ".join(WRITTEN)}, depends_on,
  config, config_ciphertext, escalation_policy, push_token_hash, push_token_ciphertext, created_at,
  updated_at)
values (%(org)s, %(uid)s, %(project)s, %(shard)s, %(slug)s, %(type)s,
  {", ".join(_PARAMETERS.values())}, %(depends_on)s::int[], %(config)s::jsonb,
  %(config_ciphertext)s, %(escalation_policy)s, %(push_token_hash)s, %(push_token_ciphertext)s,
  at(%(now)s), at(%(now)s))
on conflict (org, project, slug) do nothing
returning org, id),
kept as (
  insert into monitor_conditions (org, monitor, text)
  select made.org, made.id, c.text
  from made cross join unnest(%(conditions)s::text[]) with ordinality as c(text, n)
  order by c.n)
select id from made
"""

_INSERT_STATES = """
insert into monitor_states (org, monitor, since)
select k.org, k.monitor, at(%(now)s)
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
"""

# Conditions of earlier definitions are kept, because stored results refer to them.
_UPDATE = f"""
with replaced as (
  update monitor_conditions c
  set replaced_at = case when c.text = any(%(conditions)s::text[]) then null else at(%(now)s) end
  where c.org = %(org)s and c.monitor = %(id)s
    and (c.replaced_at is null) <> (c.text = any(%(conditions)s::text[]))),
kept as (
  insert into monitor_conditions (org, monitor, text)
  select %(org)s, %(id)s, c.text
  from unnest(%(conditions)s::text[]) with ordinality as c(text, n)
  order by c.n
  on conflict (org, monitor, text) do nothing)
update monitors set {", ".join(f"{name} = {value}" for name, value in _PARAMETERS.items())},
  depends_on = %(depends_on)s::int[], config = %(config)s::jsonb,
  config_ciphertext = %(config_ciphertext)s, escalation_policy = %(escalation_policy)s,
  shard = %(shard)s, revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""

# The new version prevents folds that began before the edit.
_TOUCH_STATES = """
update monitor_states s set version = version + 1
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
where s.org = k.org and s.monitor = k.monitor
"""
_LOCK_STATES = """
select s.monitor from monitor_states s
  join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    on k.org = s.org and k.monitor = s.monitor
order by s.org, s.monitor for update of s
"""

_SET_PUSH_TOKEN = """
update monitors set push_token_hash = %(hash)s, push_token_ciphertext = %(sealed)s,
  revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""

_SET_CONFIGS = """
update monitors m set config = k.config::jsonb, config_ciphertext = k.sealed,
  revision = m.revision + 1, updated_at = at(%(now)s)
from unnest(%(ids)s::int[], %(configs)s::text[], %(sealed)s::bytea[]) as k(id, config, sealed)
where m.org = %(org)s and m.id = k.id
"""

_SET_SUPERSEDED = """
update monitors set superseded_by = %(service)s, revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_RETIRE = """
update monitors set enabled = false, retired_at = at(%(now)s), revision = revision + 1,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_REACTIVATE = "update monitors set retired_at = null where org = %(org)s and id = %(id)s"
# A process of a version before migration 0007 writes monitors without these rows.
_RECORD_CONDITIONS = """
with missing as materialized (
  select m.org, m.id, c.text
  from monitors m cross join unnest(m.conditions) as c(text)
  where length(c.text) <= %(longest)s and not exists (select from monitor_conditions k
    where k.org = m.org and k.monitor = m.id and k.text = c.text)
  order by m.org, m.id
  for key share of m)
insert into monitor_conditions (org, monitor, text) select org, id, text from missing
on conflict (org, monitor, text) do nothing
"""
_FORGET_CONDITIONS = """
delete from monitor_conditions c
where c.replaced_at < at(%(before)s) and not exists (select from monitors m
  where m.org = c.org and m.id = c.monitor and c.text = any(m.conditions))
"""
_DELETE = "delete from monitors where org = %(org)s and id = %(id)s"

_LOCK_KEYS = """
select id from monitors where org = %(org)s and id = any(%(ids)s::int[]) order by id
for no key update
"""
_LOCK_KEYS_TO_DELETE = """
select id from monitors where org = %(org)s and id = any(%(ids)s::int[]) order by id for update
"""
_HOLD_KEYS = """
select id from monitors where org = %(org)s and id = any(%(ids)s::int[]) order by id for key share
"""
_NAMES = """
select id, uid, slug, type, shard, managed_by, bundle_uid, bundle_path, orphaned_at
from monitors where org = %(org)s and project = %(project)s order by id
"""

# Looks up the ids first, regardless of statistics: the project may have been filled in this
# transaction.
_IDS = """
with named as materialized (
  select uid, id, org, project from monitors where uid = any(%(uids)s::uuid[]))
select uid, id from named where org = %(org)s and project = %(project)s
"""
_HOLD = """
select uid, id from monitors where org = %(org)s and project = %(project)s
  and uid = any(%(uids)s::uuid[])
order by id for key share
"""
_COUNT = "select count(*) from monitors where org = %(org)s and project = %(project)s"
_SLUGS = "select slug from monitors where org = %(org)s and project = %(project)s"
_DEPENDENCIES = """
select id, depends_on from monitors where org = %(org)s and project = %(project)s
"""


async def select_monitors_by_key(
    tx: Tx, keys: Collection[MonitorKey]
) -> dict[MonitorKey, MonitorRow]:
    """Returns the monitors that still exist."""
    rows = await tx.structs(MonitorRow, _BY_KEYS, **key_arrays(keys, "monitors"))
    return {row.key: row for row in rows}


async def select_monitors_of(tx: Tx, org: int, ids: Collection[int]) -> dict[int, MonitorRow]:
    """Returns the existing monitors of an organization by id."""
    rows = await tx.structs(MonitorRow, _OF_ORG, org=org, ids=sorted(ids))
    return {row.id: row for row in rows}


async def lock_monitor(tx: Tx, uid: UUID, *, to_delete: bool = False) -> MonitorRow | None:
    """Locks a monitor for writing. The caller locks its schedule last."""
    tx.lock_rank(LockRank.MONITOR, "monitor")
    await tx.rows(_LOCK_TO_DELETE if to_delete else _LOCK_BY_UID, uid=uid)
    return await tx.one(MonitorRow, _BY_UID, uid=uid)


async def lock_monitors_to_delete(tx: Tx, org: int, keys: Collection[int]) -> None:
    tx.lock_rank(LockRank.MONITOR, "monitors that go together")
    await tx.rows(_LOCK_KEYS_TO_DELETE, org=org, ids=sorted(keys))


async def lock_monitors_of(tx: Tx, org: int, keys: Collection[int]) -> None:
    """Locks monitors for writing."""
    tx.lock_rank(LockRank.MONITOR, "monitors that are written")
    await tx.rows(_LOCK_KEYS, org=org, ids=sorted(keys))


async def lock_shared_monitors_of(tx: Tx, org: int, keys: Collection[int]) -> None:
    """Locks monitors against deletion."""
    tx.lock_rank(LockRank.MONITOR, "monitors that a bundle counts on")
    await tx.rows(_HOLD_KEYS, org=org, ids=sorted(keys))


async def lock_states(tx: Tx, keys: Sequence[MonitorKey]) -> None:
    tx.lock_rank(LockRank.STATE, "states of monitors that change")
    await tx.rows(_LOCK_STATES, **key_arrays(keys, "monitors"))


async def select_names(tx: Tx, org: int, project: int) -> list[MonitorRef]:
    """Returns all monitors of a project."""
    return await tx.structs(MonitorRef, _NAMES, org=org, project=project)


async def insert_monitor(tx: Tx, values: dict[str, Any]) -> int | None:
    """Returns the new monitor's key, None if the slug is taken. The caller inserts the state."""
    monitor: int | None = await tx.value(_INSERT, **values)
    return monitor


async def check_shards_exist(tx: Tx) -> None:
    """Checks the shards of inserted and moved monitors now instead of at the commit."""
    await tx.execute("set constraints monitors_shard_fkey immediate")


async def insert_states(tx: Tx, keys: Sequence[MonitorKey]) -> None:
    """Inserts pending states of new monitors."""
    if keys:
        await tx.execute(_INSERT_STATES, **key_arrays(keys, "monitors"), now=tx.now)


async def update_monitor(tx: Tx, values: dict[str, Any]) -> None:
    """Writes a locked monitor. The caller must call `touch_states`."""
    count = await tx.execute(_UPDATE, **values)
    assert count == 1, "the monitor is locked and there"


async def touch_states(tx: Tx, keys: Sequence[MonitorKey]) -> None:
    """Increments the versions of states, so that earlier folds start again."""
    if keys:
        await lock_states(tx, keys)
        await tx.execute(_TOUCH_STATES, **key_arrays(keys, "monitors"))


async def set_push_token(
    tx: Tx, org: int, monitor: int, digest: bytes, sealed: bytes, now: Instant
) -> None:
    count = await tx.execute(
        _SET_PUSH_TOKEN, org=org, id=monitor, hash=digest, sealed=sealed, now=now
    )
    assert count == 1, "the monitor is locked and there"


async def set_configs(
    tx: Tx, org: int, monitors: Sequence[int], configs: Sequence[tuple[str, bytes | None]]
) -> None:
    """Writes configs, as JSON text and encrypted secrets, of locked monitors."""
    await tx.execute(
        _SET_CONFIGS,
        org=org,
        ids=list(monitors),
        configs=[plain for plain, _ in configs],
        sealed=[sealed for _, sealed in configs],
        now=tx.now,
    )


async def set_superseded(tx: Tx, org: int, monitor: int, service: int | None) -> None:
    """Sets the superseding service of a locked monitor."""
    await tx.execute(_SET_SUPERSEDED, org=org, id=monitor, service=service, now=tx.now)


async def retire_monitor(tx: Tx, org: int, monitor: int) -> None:
    """Retires and pauses a locked monitor."""
    await tx.execute(_RETIRE, org=org, id=monitor, now=tx.now)


async def reactivate_monitor(tx: Tx, org: int, monitor: int) -> None:
    """Ends the retirement of a locked monitor, which stays paused."""
    await tx.execute(_REACTIVATE, org=org, id=monitor)


async def record_conditions(tx: Tx) -> int:
    """Records conditions of monitors that are not recorded. Returns their number."""
    tx.lock_rank(LockRank.MONITOR, "monitors with an unrecorded condition")
    return await tx.execute(_RECORD_CONDITIONS, longest=CONDITION_LONGEST)


async def forget_conditions(tx: Tx, before: Instant) -> int:
    """Deletes the conditions that monitors have not had since `before`.

    Precondition: no result from before `before` is stored.
    """
    return await tx.execute(_FORGET_CONDITIONS, before=before)


async def delete_monitor(tx: Tx, org: int, monitor: int) -> None:
    await tx.execute(_DELETE, org=org, id=monitor)


async def select_ids(tx: Tx, org: int, project: int, uids: list[UUID]) -> dict[UUID, int]:
    """Returns the keys of the monitors that belong to the project."""
    return dict(await tx.rows(_IDS, org=org, project=project, uids=uids))


async def lock_shared_monitors(
    tx: Tx, org: int, project: int, uids: Sequence[UUID]
) -> dict[UUID, int]:
    """Returns the keys of the project's monitors and locks them against deletion."""
    tx.lock_rank(LockRank.MONITOR, "monitors that are counted on")
    return dict(await tx.rows(_HOLD, org=org, project=project, uids=list(uids)))


async def count_monitors(tx: Tx, org: int, project: int) -> int:
    """Returns the number of monitors of a project, including paused and retired ones."""
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def select_slugs(tx: Tx, org: int, project: int) -> set[str]:
    return {slug for (slug,) in await tx.rows(_SLUGS, org=org, project=project)}


async def select_dependencies(tx: Tx, org: int, project: int) -> dict[int, list[int]]:
    return dict(await tx.rows(_DEPENDENCIES, org=org, project=project))
