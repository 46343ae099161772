"""Heartbeats, ledger rows and monitor states.

One statement stores steady results; a transaction of several statements stores the others. The
steady statement stores a result only if the state row still has the version that was folded from.
A failure that comes late is not steady: it can extend a run of failures, which readers see by the
version. Every writer of results locks that row until the commit: a steady one FOR NO KEY UPDATE,
which lets decisions about outages through, and one that can change the state FOR UPDATE.

With `shares_row`, the row of a steady result contains the verdict of its window. No index refuses a
second verdict of such a window. Its writers read both tables after they have locked the state, with
a new snapshot. A trigger of `expected_runs` skips the window for all other writers.

Lockers of `monitor_states`, in the order of the keys, and the ones for which each waits:

- steady results: FOR NO KEY UPDATE; for steady results, sealers and changes
- changes (results that fold, edits, composites, packed days, deletion): FOR UPDATE; for all
- sealers: FOR SHARE, locked states are left out; for none
- the trigger of `expected_runs`: FOR SHARE; for steady results and changes
- decisions about outages, warnings and flapping: FOR KEY SHARE after an advisory lock, locked ones
  are skipped; for none. A deletion ends an outage in this way too, and waits for all
- steady results of an earlier version: FOR KEY SHARE, for changes; then as the trigger
- decisions of an earlier version: FOR NO KEY UPDATE, locked ones are skipped; for none. This
  version does the same while one is present, and the first four wait for it.

A wait is short: the others hold at most a batch of the recorder, 20 batches of windows, an edit or
the decisions about 500 monitors, and wait for no network. After 5 s it ends with LockTimeout.

A row that can belong to a packed day is written by `transactions/result_placer.py` instead.

Invariants: two writers never both treat their result as the newest. A window has one verdict.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import LockRank, Tx
from ...engine.transaction import json_of
from ...monitors.rules.monitor_state import StatusChange
from ..rules.incoming_result import IncomingResult
from ..rules.packed_days import LATE_US

_ITEM = """
  select * from json_to_recordset(%(items)s::json) as i(
    org int, monitor int, shard int, version bigint, ts bigint, reach_us bigint, up boolean,
    latency_ms int, code int, dns_us int, connect_us int, tls_us int, first_byte_us int,
    msg text, dues bigint[], windowed boolean, late boolean, shares_row boolean, condition text,
    measured text)
"""

# The row of a condition is kept until no result can refer to it, also if its monitor is edited. The
# value is stored only with its condition. A null condition costs no lookup.
_FAILED_CONDITION = """(select c.id from monitor_conditions c
    where c.org = {0}.org and c.monitor = {0}.monitor and c.text = {0}.condition),
    (select {0}.measured from monitor_conditions c
    where c.org = {0}.org and c.monitor = {0}.monitor and c.text = {0}.condition)"""

_STEADY = f"""
with item as materialized ({_ITEM}),
-- Locked until the commit: a sealer that moves the fence waits, and then reads these rows.
fence as materialized (
  select id, sealed_through from shards where id = any(%(shards)s) order by id for key share),
held as materialized (
  select i.* from monitor_states s
    join item i on i.org = s.org and i.monitor = s.monitor and i.version = s.version
    join fence f on f.id = i.shard
  where at(i.ts) >= f.sealed_through - i.reach_us * interval '1 microsecond'
    -- The first window is the oldest. An older row than this can belong to a packed day.
    and at(least(i.ts, i.dues[1])) >= f.sealed_through - {LATE_US} * interval '1 microsecond'
  order by s.org, s.monitor
  for no key update of s),
free as materialized (
  select h.* from held h
  where (not h.windowed or not is_settled(h.org, h.monitor, at(h.dues[1])))
    and (h.up or not is_late(h.org, h.monitor, at(h.ts)))),
-- A plain INSERT writes a fifth less WAL for a result than one with ON CONFLICT. If an instant is
-- taken, or a sealer settles a window at this moment, the whole statement fails.
ran as (
  insert into expected_runs (org, monitor, due_at, settled_at, verdict)
  select h.org, h.monitor, at(h.dues[1]), at(%(now)s),
    (case when h.late then 'covered_late' else 'covered' end)::verdict
  from free h where h.windowed and not h.shares_row
  order by h.org, h.monitor, h.dues[1]),
-- The window of a push is often covered already.
pushed as (
  insert into expected_runs (org, monitor, due_at, settled_at, verdict)
  select h.org, h.monitor, at(d.due), at(%(now)s),
    (case when h.late then 'covered_late' else 'covered' end)::verdict
  from free h, unnest(h.dues) as d(due) where not h.windowed
  order by h.org, h.monitor, d.due
  on conflict do nothing),
stored as (
  insert into heartbeats (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us,
    first_byte_us, up, msg, failed_condition, measured, after_due_us, settled_after_us)
  select k.org, k.monitor, at(k.ts), k.latency_ms, k.code, k.dns_us, k.connect_us, k.tls_us,
    k.first_byte_us, k.up, nullif(k.msg, ''), {_FAILED_CONDITION.format("k")},
    case when k.shares_row then k.ts - k.dues[1] end,
    case when k.shares_row then %(now)s::bigint - k.ts end
  from free k
  order by k.org, k.monitor, k.ts
  returning org, monitor, ts)
select org, monitor, ts from stored
"""

_SHARE_FENCES = """
select id, sealed_through from shards where id = any(%(shards)s) order by id for key share
"""

_LOCK_STATES = """
select 1
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitor_states s on s.org = k.org and s.monitor = k.monitor
order by s.org, s.monitor
for update of s
"""

# A separate statement after the lock. A single statement that waited for an edit would combine the
# new state with the monitor as it was before the edit.
_LOCKED_STATES = """
select s.org, s.monitor, s.version, s.status, s.failures, s.successes, s.since, s.silent_since,
  m.type, m.enabled, m.failure_threshold, m.recovery_threshold, m.interval_seconds,
  m.timeout_seconds, m.grace_seconds, m.confirm_interval_seconds, m.shard, m.project, m.uid,
  p.uid, m.revision, m.updated_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitor_states s on s.org = k.org and s.monitor = k.monitor
  join monitors m on m.org = s.org and m.id = s.monitor
  join projects p on p.org = m.org and p.id = m.project
order by s.org, s.monitor
"""

_NEWEST = """
select k.org, k.monitor, h.ts, h.msg
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
cross join lateral newest_heartbeat(k.org, k.monitor, 'infinity') h
"""

_SAME = """
select exists (
  select from heartbeats_in(%(org)s::int, %(monitor)s::int, at(%(ts)s),
    at(%(ts)s) + interval '1 microsecond')
  where up = %(up)s and latency_ms = %(latency_ms)s and coalesce(msg, '') = %(msg)s)
"""

_FOLLOWING = """
select least(
  (select min(ts) from heartbeats where org = %(org)s and monitor = %(monitor)s and ts > at(%(ts)s)
    and ts >= (select packed_through from packing)),
  (select min(ts) from packed_heartbeats_in(%(org)s::int, %(monitor)s::int,
    at(%(ts)s) + interval '1 microsecond', at(%(until)s))))
"""

# A window is settled once. Only a missed one can still become covered late.
_SETTLE = """
insert into expected_runs as r (org, monitor, due_at, settled_at, verdict, reason)
select i.org, i.monitor, at(i.due), at(%(now)s), i.verdict::verdict, i.reason
from json_to_recordset(%(items)s::json)
  as i(org int, monitor int, due bigint, verdict text, reason text)
order by i.org, i.monitor, i.due
on conflict (org, monitor, due_at) do update
  set verdict = 'covered_late', reason = null, settled_at = excluded.settled_at
  where r.verdict = 'missed' and excluded.verdict <> 'withheld'
returning org, monitor, due_at
"""

_INSERT = f"""
insert into heartbeats (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us,
  first_byte_us, up, msg, failed_condition, measured)
select i.org, i.monitor, at(i.ts), i.latency_ms, i.code, i.dns_us, i.connect_us, i.tls_us,
  i.first_byte_us, i.up, nullif(i.msg, ''), {_FAILED_CONDITION.format("i")}
from ({_ITEM}) i
order by i.org, i.monitor, i.ts
on conflict do nothing
returning org, monitor, ts
"""

_CONDITIONS = """
select i.n - 1, c.id
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(texts)s::text[]) with ordinality
    as i(org, monitor, text, n)
  join monitor_conditions c on c.org = i.org and c.monitor = i.monitor and c.text = i.text
"""

_HOLDS_VERDICTS = """
select exists (select from heartbeats where ts < at(%(before)s) and after_due_us is not null)
"""

_UPDATE_STATES = """
update monitor_states s
set version = s.version + 1, status = i.status, failures = i.failures, successes = i.successes,
  since = at(i.since), silent_since = at(i.silent_since)
from json_to_recordset(%(items)s::json)
  as i(org int, monitor int, status text, failures int, successes int, since bigint,
  silent_since bigint)
where s.org = i.org and s.monitor = i.monitor
"""


_INSERT_STATUS_CHANGES = """
insert into status_changes (org, monitor, at, old_status, new_status, committed_at)
select i.org, i.monitor, at(i.at), i.old_status, i.new_status, at(%(now)s)
from json_to_recordset(%(items)s::json)
  as i(org int, monitor int, at bigint, old_status text, new_status text)
"""


class LockedState(msgspec.Struct, frozen=True):
    """State row locked FOR UPDATE, with the monitor's columns that the fold needs."""

    org: int
    monitor: int
    version: int
    status: str
    failures: int
    successes: int
    since: Instant
    silent_since: Instant | None
    type: str
    enabled: bool
    failure_threshold: int
    recovery_threshold: int
    interval_seconds: int
    timeout_seconds: int
    grace_seconds: int
    confirm_interval_seconds: int
    shard: int
    project: int
    uid: UUID
    project_uid: UUID
    revision: int
    updated_at: Instant


class StateWrite(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    status: str
    failures: int
    successes: int
    since: Instant
    silent_since: Instant | None


def encode_items(arrivals: Iterable[IncomingResult]) -> str:
    return json_of(list(arrivals))


async def insert_steady(tx: Tx, arrivals: Sequence[IncomingResult], shards: list[int]) -> set[Any]:
    """Stores results that leave their states unchanged. Returns the stored (org, monitor, ts).

    A run covers one window, and is not stored if that is settled, a failure if a newer result is
    stored. Raises Rejected (a unique
    violation), without a write, if an instant is taken.
    """
    rows = await tx.rows(_STEADY, items=encode_items(arrivals), shards=shards, now=tx.now)
    return set(rows)


async def lock_shared_fences(tx: Tx, shards: list[int]) -> dict[int, Instant]:
    """Returns fences by shard, locked FOR KEY SHARE: none moves before the commit."""
    tx.lock_rank(LockRank.SHARD, "fences")
    return dict(await tx.rows(_SHARE_FENCES, shards=shards))


async def lock_states(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, LockedState]:
    """Locks state rows FOR UPDATE in key order. Deleted monitors are absent from the result."""
    tx.lock_rank(LockRank.STATE, "states")
    those = key_arrays(keys, "monitors")
    await tx.rows(_LOCK_STATES, **those)
    rows = await tx.structs(LockedState, _LOCKED_STATES, **those)
    return {MonitorKey((row.org, row.monitor)): row for row in rows}


async def select_newest(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, tuple[Instant, str | None]]:
    """Returns the newest stored result of each monitor.

    Call it after the lock, as a separate statement, so that its snapshot includes the commit of the
    previous lock owner.
    """
    rows = await tx.rows(_NEWEST, **key_arrays(keys, "monitors"))
    return {MonitorKey((org, monitor)): (ts, msg) for org, monitor, ts, msg in rows}


async def select_following(tx: Tx, key: MonitorKey, ts: Instant, until: Instant) -> Instant | None:
    """Returns the next result after an instant, if it is before `until`."""
    found: Instant | None = await tx.value(
        _FOLLOWING, org=key[0], monitor=key[1], ts=ts, until=until
    )
    return found if found is None or found < until else None


async def settle_windows(
    tx: Tx, windows: Iterable[tuple[int, int, Instant, str, str | None]]
) -> set[tuple[int, int, Instant]]:
    """Settles (org, monitor, due, verdict, reason) windows and returns the written ones.

    A settled window is skipped, except that a missed one can become covered late.
    """
    names = ("org", "monitor", "due", "verdict", "reason")
    items = [dict(zip(names, window, strict=True)) for window in windows]
    if not items:
        return set()
    rows = await tx.rows(_SETTLE, items=msgspec.json.encode(items).decode(), now=tx.now)
    return {(org, monitor, due) for org, monitor, due in rows}


async def insert_heartbeats(
    tx: Tx, arrivals: Sequence[IncomingResult]
) -> set[tuple[int, int, Instant]]:
    """Returns the (org, monitor, ts) that were stored. The others found their instant taken."""
    if not arrivals:
        return set()
    rows = await tx.rows(_INSERT, items=encode_items(arrivals))
    return {(org, monitor, ts) for org, monitor, ts in rows}


async def select_condition_ids(tx: Tx, arrivals: Sequence[IncomingResult]) -> dict[int, int]:
    """Returns the id of the failed condition by the place of the result, without those of none."""
    return dict(
        await tx.rows(
            _CONDITIONS,
            **key_arrays([a.key for a in arrivals], "monitors"),
            texts=[a.condition for a in arrivals],
        )
    )


async def is_stored(tx: Tx, arrival: IncomingResult) -> bool:
    """Returns whether this result is already stored by a write of unknown outcome."""
    found: bool = await tx.value(
        _SAME,
        org=arrival.org,
        monitor=arrival.monitor,
        ts=arrival.ts,
        up=arrival.up,
        latency_ms=arrival.latency_ms,
        msg=arrival.msg,
    )
    return found


async def holds_verdicts(tx: Tx, before: Instant) -> bool:
    """Returns whether the row of a result before an instant contains a verdict."""
    found: bool = await tx.value(_HOLDS_VERDICTS, before=before)
    return found


async def insert_status_changes(tx: Tx, flips: Sequence[StatusChange]) -> None:
    if flips:
        await tx.execute(
            _INSERT_STATUS_CHANGES, items=msgspec.json.encode(flips).decode(), now=tx.now
        )


async def update_states(tx: Tx, states: Sequence[StateWrite]) -> None:
    if states:
        count = await tx.execute(_UPDATE_STATES, items=msgspec.json.encode(states).decode())
        assert count == len(states), "every state that is written is locked and there"
