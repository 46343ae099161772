"""Definitions of checks for the probers, with encrypted secrets."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from ....probes.jobs.agent_protocol import OPTIONAL_TYPES, OPTIONS
from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx

# The first condition is evaluated once per monitor, and excludes most: few refer to a secret.
_SELECT = """
select m.org, m.id, m.uid, m.shard, m.type, m.target, m.method, m.interval_seconds,
  m.timeout_seconds, m.retries, m.conditions, m.show_values, m.config::text, m.config_ciphertext,
  m.enabled, m.revision, m.updated_at, coalesce(r.names, '{}'), coalesce(r.uids, '{}'),
  coalesce(r.sealed, '{}'), m.schedule, m.timezone
from monitors m
  left join lateral (
    select array_agg(s.name) as names, array_agg(s.uid) as uids,
      array_agg(s.value_ciphertext) as sealed
    from jsonb_each_text(m.config) c
      join project_secrets s on s.org = m.org and s.project = m.project and s.name = c.value
    where m.config::text like '%%_ref"%%' and right(c.key, 4) = '_ref'
  ) r on true
"""
_OF_KEYS = f"""{_SELECT}
where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""
# The index finds the timestamps. They also find the writes after a failover or a restore, whose
# xids begin earlier.
_IS_RECENT = "{0}.updated_at >= at(%(since)s)"
# A row was written by a transaction that the previous read did not see, which can have begun long
# before it. This reads all rows. The age of a row that is older than 2^31 transactions is negative.
_IS_NEW = f"""({_IS_RECENT} or (age({{0}}.xmin) <= (select age(%(unseen)s::text::xid))
  and age({{0}}.xmin) >= 0))"""
_CHANGED = f"{_SELECT} where m.shard = any(%(shards)s) and "
# Starts from the secrets, which seldom change.
_REFERRING = """
select distinct m.org, m.id
from project_secrets s join monitors m on m.org = s.org and m.project = s.project
where m.shard = any(%(shards)s) and exists (
  select from jsonb_each_text(m.config) c where right(c.key, 4) = '_ref' and c.value = s.name) and
"""
_UNSEEN = "select pg_snapshot_xmin(pg_current_snapshot())::xid::text"

_CARRIED = """
select org, id, type, config_ciphertext is not null or config::text like '%%_ref"%%',
  schedule <> '', case when type = any(%(optional)s::text[]) then
    array(select c.key from jsonb_each_text(config) c
      where c.key = any(%(options)s::text[]) and c.value <> '') else '{}' end
from monitors
where (org, id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


class Definition(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    shard: int
    type: str
    target: str
    method: str
    interval_seconds: int
    timeout_seconds: int
    retries: int
    conditions: list[str]
    show_values: bool
    config: str
    config_ciphertext: bytes | None
    enabled: bool
    revision: int
    updated_at: Instant
    # Secrets that the config refers to: names, ids and encrypted values, in the same order.
    secret_names: list[str]
    secret_uids: list[UUID]
    secret_values: list[bytes]
    # Cron expression and time zone, "" for an interval.
    schedule: str
    timezone: str


async def select_definitions(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, Definition]:
    """Returns the definitions of the monitors that still exist."""
    if not keys:
        return {}
    rows = await tx.structs(Definition, _OF_KEYS, **key_arrays(keys, "monitors"))
    return {MonitorKey((row.org, row.id)): row for row in rows}


class ChangedDefinitions(NamedTuple):
    """Changed definitions. `unseen` is the first transaction that this read did not see."""

    definitions: list[Definition]
    unseen: str


async def select_changed_definitions(
    tx: Tx, shards: Sequence[int], since: Instant, unseen: str | None, unseen_secrets: str
) -> ChangedDefinitions:
    """Returns the definitions that were edited or refer to an edited secret.

    These are the edits from `since` on, and those of transactions that the read which returned
    `unseen` or `unseen_secrets` did not see. "0" selects all, and None no further ones.
    """
    # First: a transaction that commits between two statements is not lost, and is read twice.
    now_unseen = await tx.value(_UNSEEN)
    given: dict[str, Any] = {"shards": list(shards), "since": since}
    if unseen is None:
        changed = await tx.structs(Definition, _CHANGED + _IS_RECENT.format("m"), **given)
    else:
        query = _CHANGED + _IS_NEW.format("m")
        changed = await tx.structs(Definition, query, **given, unseen=unseen)
    query = _REFERRING + _IS_NEW.format("s")
    referring = await tx.rows(query, **given, unseen=unseen_secrets)
    known = {(row.org, row.id) for row in changed}
    others = (MonitorKey((org, monitor)) for org, monitor in referring)
    more = await select_definitions(tx, [key for key in others if key not in known])
    return ChangedDefinitions([*changed, *more.values()], now_unseen)


class Carried(msgspec.Struct, frozen=True):
    """Properties of a monitor that decide which agents can run it."""

    org: int
    id: int
    type: str
    has_secrets: bool
    has_schedule: bool
    # Settings for which an agent needs a capability.
    options: list[str]


async def select_carried(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, Carried]:
    """Returns the rows of the monitors that still exist."""
    known = {"optional": list(OPTIONAL_TYPES), "options": list(OPTIONS)}
    rows = await tx.structs(Carried, _CARRIED, **key_arrays(keys, "monitors"), **known)
    return {MonitorKey((row.org, row.id)): row for row in rows}
