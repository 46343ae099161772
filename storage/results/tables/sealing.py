"""Sealing: the fence of a shard and the verdicts of windows without a result.

The fence moves in a separate transaction, FOR UPDATE against the recorders' FOR KEY SHARE.
Invariant: every result stored under the old fence is committed before the sealer reads, and every
later one sees the new fence. The fence only moves forward.
"""

from collections.abc import Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import key_arrays
from ...engine.pools import LockRank, Tx
from ...engine.transaction import json_of

_LOCK_FENCE = """
select sealed_through, reserved_through from shards where id = %(shard)s for update
"""
_MOVE_FENCE = """
update shards set sealed_through = at(%(to)s) where id = %(shard)s and sealed_through < at(%(to)s)
"""
_FINISH = """
update shards set settled_through = greatest(settled_through, at(%(to)s)) where id = %(shard)s
"""

# Windows of a deleted monitor get no row.
_OPEN_RUNS = """
select s.id, s.kind, w.org, w.monitor, w.due, w.seal,
  case when not s.published then 'never_published' when not s.claimed then 'never_claimed'
    else 'never_finished' end as reason
from run_batches s cross join unnest(s.orgs, s.monitors, s.due_ats, s.seal_ats)
    as w(org, monitor, due, seal)
  join monitors m on m.org = w.org and m.id = w.monitor
where s.id = any(%(ids)s) and s.kind <> 'push' and w.seal <= at(%(fence)s)
  and not exists (select from verdict_of(w.org, w.monitor, w.due))
order by w.org, w.monitor, w.due
"""
# A state that another transaction has locked is left out: the wait for it would hold the others,
# and with them the recorders.
_HOLD_FREE_STATES = """
select s.org, s.monitor
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitor_states s on s.org = k.org and s.monitor = k.monitor
order by s.org, s.monitor
for share of s skip locked
"""
# A statement after the lock. A trigger skips a window if the row of its result has the verdict.
_SEAL_RUNS = """
insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)
select i.org, i.monitor, at(i.due), at(%(now)s), 'missed', i.reason
from json_to_recordset(%(items)s::json) as i(org int, monitor int, due bigint, reason text)
  join monitors m on m.org = i.org and m.id = i.monitor
order by i.org, i.monitor, i.due
on conflict do nothing
returning reason
"""

_DUE_BATCHES = """
select id, kind, last_seal from run_batches
where shard = %(shard)s and first_seal <= at(%(fence)s) and id > %(after)s
order by id limit %(most)s
"""

# Windows of push batches that have ended and have no row yet.
_OPEN_WINDOWS = """
select w.org, w.monitor, w.due
from run_batches s cross join unnest(s.orgs, s.monitors, s.due_ats, s.seal_ats)
    as w(org, monitor, due, seal)
  join monitors m on m.org = w.org and m.id = w.monitor
where s.id = any(%(ids)s) and s.kind = %(kind)s and w.seal <= at(%(fence)s)
  and not exists (select from verdict_of(w.org, w.monitor, w.due))
order by w.org, w.monitor, w.due
"""

# Newest heartbeat up to a window's end, without `push_missed` failures.
_LAST_HEARTBEATS = """
select w.monitor, at(w.due), coalesce((
  select h.ts from heartbeats h
  where h.org = w.org and h.monitor = w.monitor and h.ts <= at(w.until)
    and h.msg is distinct from 'push_missed' and h.ts >= (select packed_through from packing)
  order by h.ts desc limit 1), (
  select r.ts from restored_heartbeats r
  where r.org = w.org and r.monitor = w.monitor
    and r.piece_from <= at(w.until) and r.piece_from < (select packed_through from packing)
    and r.ts <= at(w.until) and r.msg is distinct from 'push_missed'
    and exists (select from unnest(r.piece_messages) m where m is distinct from 'push_missed')
  order by r.piece_from desc, r.ts desc limit 1))
from json_to_recordset(%(items)s::json) as w(org int, monitor int, due bigint, until bigint)
"""

_WRITE_VERDICTS = """
insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)
select i.org, i.monitor, at(i.due), at(%(now)s), i.verdict::verdict, i.reason
from json_to_recordset(%(items)s::json)
  as i(org int, monitor int, due bigint, verdict text, reason text)
order by i.org, i.monitor, i.due
on conflict do nothing
"""

_DELETE_BATCHES = "delete from run_batches where id = any(%(ids)s)"

# A term ends when the monitor's next term begins.
_END = """
coalesce((select min(n.from_at) from monitor_terms n
  where n.org = t.org and n.monitor = t.monitor and n.from_at > t.from_at), 'infinity')
"""
_LATE = "make_interval(secs => t.timeout_seconds + 120)"
_LONGEST_TIMEOUT = f"""
select coalesce(max(t.timeout_seconds), 0) from monitor_terms t
where t.shard = %(shard)s and {_END} >= at(%(fence)s) - {_LATE}
"""
_LEAST_MARK_ELSEWHERE = f"""
select min(greatest(t.from_at, s.settled_through - {_LATE}))
from monitors m
  join monitor_terms t on t.org = m.org and t.monitor = m.id and t.shard <> m.shard
  join shards s on s.id = t.shard
where m.shard = %(shard)s and {_END} >= s.settled_through - {_LATE}
"""
# The same for all children of a shard's composites, each from when it is a child.
_LEAST_MARK_BENEATH = f"""
with recursive beneath(org, monitor, since) as (
  select c.org, child, c.from_at
  from shards s join monitors m on m.shard = s.id and m.type = 'composite'
    join composite_terms c on c.org = m.org and c.monitor = m.id
      and c.until_at > s.rolled_up_through
    cross join unnest(c.children) as child
  where s.id = %(shard)s
  union
  select c.org, child, greatest(b.since, c.from_at)
  from beneath b join composite_terms c on c.org = b.org and c.monitor = b.monitor
      and c.until_at > b.since
    cross join unnest(c.children) as child)
select min(greatest(t.from_at, b.since, s.settled_through - {_LATE}))
from beneath b join known_terms t on t.org = b.org and t.monitor = b.monitor
  join shards s on s.id = t.shard and s.id <> %(shard)s
where {_END.replace("monitor_terms", "known_terms")} >= s.settled_through - {_LATE}
"""


class DueBatch(msgspec.Struct, frozen=True):
    id: int
    kind: str
    last_seal: Instant


class OpenRun(msgspec.Struct, frozen=True):
    """Window without a verdict in batch `id`, and the stage at which its run ended."""

    id: int
    kind: str
    org: int
    monitor: int
    due: Instant
    seal: Instant
    reason: str


class VerdictWrite(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    due: Instant
    verdict: str
    reason: str | None


async def advance_fence(tx: Tx, shard: int, to: Instant) -> Instant:
    """Moves the fence and returns it. It never passes the reservation and never moves back."""
    tx.lock_rank(LockRank.SHARD, "fence")
    row = await tx.row(_LOCK_FENCE, shard=shard)
    if row is None:
        return to
    standing, reserved = row
    fence = max(standing, min(to, reserved))
    await tx.execute(_MOVE_FENCE, shard=shard, to=fence)
    return Instant(fence)


async def select_due_batches(
    tx: Tx, shard: int, fence: Instant, after: int, most: int
) -> list[DueBatch]:
    """Returns run batches with a window to seal by this fence, by id."""
    return await tx.structs(
        DueBatch, _DUE_BATCHES, shard=shard, fence=fence, after=after, most=most
    )


async def seal_runs(
    tx: Tx, batches: Sequence[int], fence: Instant
) -> tuple[list[str], dict[int, Instant]]:
    """Marks windows without a verdict as missed, and returns the stages at which they ended.

    Also returns the batches with windows that were left out, because another transaction has locked
    the state of their monitor, each with the first seal of such a window.
    """
    found = await tx.structs(OpenRun, _OPEN_RUNS, ids=list(batches), fence=fence)
    if not found:
        return [], {}
    # Windows of composites have rows of their own, and take no lock of a state.
    keys = sorted({(one.org, one.monitor) for one in found if one.kind != "composite"})
    tx.lock_rank(LockRank.STATE, "states of monitors with missed runs")
    rows = await tx.rows(_HOLD_FREE_STATES, **key_arrays(keys, "monitors"))
    held = {(org, monitor) for org, monitor in rows}
    free: list[OpenRun] = []
    left: dict[int, Instant] = {}
    for one in found:
        if one.kind == "composite" or (one.org, one.monitor) in held:
            free.append(one)
        else:
            left[one.id] = min(left.get(one.id, one.seal), one.seal)
    reasons = await tx.rows(_SEAL_RUNS, items=json_of(free), now=tx.now)
    return [reason for (reason,) in reasons], left


async def select_open_windows(
    tx: Tx, batches: Sequence[int], kind: str, fence: Instant
) -> list[tuple[int, int, Instant]]:
    rows = await tx.rows(_OPEN_WINDOWS, ids=list(batches), kind=kind, fence=fence)
    return [(org, monitor, due) for org, monitor, due in rows]


async def select_last_heartbeats(
    tx: Tx, windows: Sequence[tuple[int, int, Instant, Instant]]
) -> dict[tuple[int, Instant], Instant]:
    """Returns the newest heartbeat up to the end of each (org, monitor, due, end).

    The keys are (monitor, due).
    """
    items = [{"org": o, "monitor": m, "due": d, "until": u} for o, m, d, u in windows]
    rows = await tx.rows(_LAST_HEARTBEATS, items=msgspec.json.encode(items).decode())
    return {(monitor, due): ts for monitor, due, ts in rows if ts is not None}


async def write_verdicts(tx: Tx, verdicts: Sequence[VerdictWrite]) -> int:
    if not verdicts:
        return 0
    items = msgspec.json.encode(verdicts).decode()
    return await tx.execute(_WRITE_VERDICTS, items=items, now=tx.now)


async def delete_batches(tx: Tx, batches: Sequence[int]) -> int:
    return await tx.execute(_DELETE_BATCHES, ids=list(batches))


async def finish(tx: Tx, shard: int, to: Instant) -> None:
    """Marks windows with a seal up to `to` as settled. The watermark is computed from it."""
    tx.lock_rank(LockRank.SHARD, "finished")
    await tx.execute(_FINISH, shard=shard, to=to)


async def select_longest_timeout_seconds(tx: Tx, shard: int, fence: Instant) -> int:
    """Returns the longest timeout of any term that may have unsealed windows behind the fence."""
    seconds: int = await tx.value(_LONGEST_TIMEOUT, shard=shard, fence=fence)
    return seconds


async def select_least_mark_elsewhere(tx: Tx, shard: int) -> Instant | None:
    """Returns the instant before which the shard's monitors are sealed in all other shards.

    Children of composites count too. Returns None if no other shard has open windows of them.
    """
    marks = [
        await tx.value(query, shard=shard) for query in (_LEAST_MARK_ELSEWHERE, _LEAST_MARK_BENEATH)
    ]
    return min((mark for mark in marks if mark is not None), default=None)
