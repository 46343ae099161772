"""Work queues: batches of windows, and jobs without a window.

A process keeps its leases until 15 s after its last presence, then other processes can claim the
work. Leases are not renewed row by row. Presences are written and compared by the product's clock:
a host clock that is set back would keep dead processes alive. An agent has no presence and keeps
its lease until `lease_until`.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import NO_LIMITS, JobLimits, LeasedBatch, LeasedJob, NewJob, OpenBatch

# Delay until a process claims work again that is leased to it but that it is not running.
AGAIN_AFTER_SECONDS = 5
# Time that the lease of an agent lasts beyond the run's timeout.
LEASE_GRACE_SECONDS = 10

# The `lease_until` of a process states when it may claim its own work again, and ends before its
# presence. Therefore one condition serves for both. The array is not read again for each row.
HELD = """
(coalesce({row}.holder = any(array(select p.process from presences p
  where not p.ended and p.through_at > at(%(now)s) - interval '15 seconds')), false)
or coalesce({row}.lease_until > at(%(now)s), false))
"""

_LEASE_BATCHES = f"""
update run_batches set holder = %(process)s, claimed = true,
  lease_until = at(%(now)s) + interval '{AGAIN_AFTER_SECONDS} seconds'
where id = any(array(
  select s.id from run_batches s
  where s.shard = any(%(shards)s) and s.kind = 'run' and s.published
    and s.claim_until > at(%(now)s)
    and case when s.holder = %(process)s
      then coalesce(s.lease_until, s.first_due + interval '{AGAIN_AFTER_SECONDS} seconds')
        <= at(%(now)s)
      else s.holder is null or not {HELD.format(row="s")} end
    and s.id <> all(%(have)s)
  order by s.claimed, s.first_due limit %(most)s
  for update skip locked))
returning id, shard, orgs, monitors, due_ats, claim_untils
"""

# One lookup for each window: a join with `verdict_of` can become a scan of all results of the day.
_SETTLED = """
select w.org, w.monitor, w.due
from run_batches s cross join unnest(s.orgs, s.monitors, s.due_ats) as w(org, monitor, due)
where s.id = any(%(ids)s) and exists (select from verdict_of(w.org, w.monitor, w.due))
"""

_DELETE_BATCHES = "delete from run_batches where id = any(%(ids)s)"

_ADD_JOB = """
insert into jobs (org, uid, shard, monitor, reason, due_at, claim_until)
values (%(org)s, %(uid)s, %(shard)s, %(monitor)s, %(reason)s, at(%(due)s), at(%(claim_until)s))
on conflict (org, monitor, reason) do {conflict}
returning uid
"""
# A newer job replaces the older one under a new uid. A holder that still runs the older job deletes
# only that uid.
_AGAIN = """
update set uid = excluded.uid, shard = excluded.shard, due_at = excluded.due_at,
  claim_until = excluded.claim_until, holder = null, lease_until = null
"""
_ADD_JOB_AGAIN = _ADD_JOB.replace("{conflict}", _AGAIN)
# An expired job does not block a new one.
_ADD_JOB_ONCE = _ADD_JOB.replace("{conflict}", f"{_AGAIN} where jobs.claim_until <= at(%(due)s)")

_ADD_JOBS = f"""
insert into jobs (org, uid, shard, monitor, reason, due_at, claim_until)
select i.org, i.uid, i.shard, i.monitor, i.reason, at(i.due), at(i.claim_until)
from json_to_recordset(%(items)s::json) as i(org int, uid uuid, shard int, monitor int,
  reason text, due bigint, claim_until bigint)
order by i.org, i.monitor
on conflict (org, monitor, reason) do {_AGAIN}
"""

# Inserts one job per monitor. The shard is that of the monitor at the time of the statement.
_ADD_EXTRA_RUNS = f"""
insert into jobs (org, uid, shard, monitor, reason, due_at, claim_until)
select m.org, gen_random_uuid(), m.shard, m.id, 'extra', at(%(due)s), at(%(claim_until)s)
from monitors m where m.org = %(org)s and m.id = any(%(monitors)s::int[]) and m.enabled
order by m.id
on conflict (org, monitor, reason) do {_AGAIN}
"""

# Organizations take turns: an outage of one with thousands of monitors delays no other. So do the
# costly monitors of an organization and its other ones. Canaries
# are excluded: they are claimed by `claim_canary_runs`. Only the conditions beside the lock are
# evaluated again if another process has just changed the row.
_LEASE_JOBS = f"""
with waiting as materialized (
  select j.org, j.id, j.due_at, l.is_costly,
    row_number() over (partition by j.org, l.is_costly order by j.due_at) as turn
  from jobs j
    left join unnest(%(orgs)s::int[], %(monitors)s::int[]) as e(org, monitor)
      on e.org = j.org and e.monitor = j.monitor
    cross join lateral (
      select (j.org = any(%(costly)s::int[])) <> (e.org is not null) as is_costly) l
  where j.shard = any(%(shards)s) and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {HELD.format(row="j")})
    and not exists (select from monitors m where m.org = j.org and m.id = j.monitor
      and m.type = 'async_canary'))
update jobs set holder = %(process)s
where (org, id) in (
  select j.org, j.id from waiting w join jobs j on j.org = w.org and j.id = w.id
    left join unnest(%(full)s::int[], %(lanes)s::boolean[], %(rooms)s::int[])
      as f(org, is_costly, room) on f.org = w.org and f.is_costly = w.is_costly
  where w.turn <= coalesce(f.room, %(most)s)
    and j.shard = any(%(shards)s) and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {HELD.format(row="j")})
  order by w.turn, w.due_at limit %(most)s
  for update of j skip locked)
returning org, id, uid, shard, monitor, reason, due_at
"""
_LOCK_CANARY_JOBS = """
select j.org, j.id, j.uid, j.shard, j.monitor, j.reason, j.due_at
from jobs j join monitors m on m.org = j.org and m.id = j.monitor and m.type = 'async_canary'
where j.shard = any(%(shards)s) and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
  and m.enabled
order by j.due_at limit %(most)s
for update of j skip locked
"""

# Leases jobs without a window to an agent that can run them.
_LEASE_JOBS_OUT = f"""
update jobs set holder = %(holder)s, revision = m.revision,
  lease_until = at(%(now)s) + make_interval(secs => m.timeout_seconds + %(grace)s)
from monitors m
where m.org = jobs.org and m.id = jobs.monitor and (jobs.org, jobs.id) in (
  select j.org, j.id from jobs j join monitors n on n.org = j.org and n.id = j.monitor
  where j.shard = any(%(shards)s) and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {HELD.format(row="j")})
    and n.enabled and n.type <> all(%(refused)s) and (%(scheduled)s or n.schedule = '')
    and not (n.type = any(%(optional)s::text[]) and exists (select from jsonb_each_text(n.config) c
      where c.key = any(%(unknown)s::text[]) and c.value <> ''))
    and (not %(plain)s or n.config_ciphertext is null and n.config::text not like '%%_ref"%%')
  order by j.due_at limit %(most)s
  for update of j skip locked)
returning jobs.org, jobs.id, jobs.uid, jobs.shard, jobs.monitor, jobs.reason, jobs.due_at
"""
# Run batches with windows that an agent can claim, oldest first.
_LOCK_OPEN_BATCHES = f"""
select s.id, s.shard, s.orgs, s.monitors, s.due_ats, s.seal_ats, s.claim_untils
from run_batches s
where s.shard = any(%(shards)s) and s.kind = %(kind)s and s.published
  and s.claim_until > at(%(now)s) and s.id > %(after)s
  and (s.holder is null or not {HELD.format(row="s")})
order by s.id limit %(most)s
for update skip locked
"""
_PUT_BATCH = """
insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils, published,
  first_due, claim_until, first_seal, last_seal, holder, lease_until, claimed)
select shard, kind, %(orgs)s, %(monitors)s,
  array(select at(x) from unnest(%(due_ats)s::bigint[]) x),
  array(select at(x) from unnest(%(seal_ats)s::bigint[]) x),
  array(select at(x) from unnest(%(claim_untils)s::bigint[]) x), published, at(%(first_due)s),
  at(%(claim_until)s), at(%(first_seal)s), at(%(last_seal)s), %(holder)s, at(%(lease_until)s), true
from run_batches where id = %(id)s
returning id
"""
_KEEP_OF_BATCH = """
update run_batches set orgs = %(orgs)s, monitors = %(monitors)s,
  due_ats = array(select at(x) from unnest(%(due_ats)s::bigint[]) x),
  seal_ats = array(select at(x) from unnest(%(seal_ats)s::bigint[]) x),
  claim_untils = array(select at(x) from unnest(%(claim_untils)s::bigint[]) x),
  first_due = at(%(first_due)s), claim_until = at(%(claim_until)s),
  first_seal = at(%(first_seal)s), last_seal = at(%(last_seal)s), holder = null, lease_until = null
where id = %(id)s
"""
_TAKE_JOB = """
delete from jobs where uid = %(uid)s and org = %(org)s and monitor = %(monitor)s
returning revision
"""

_DELETE_JOBS = """
delete from jobs where (org, id, uid) in (
  select * from unnest(%(orgs)s::int[], %(ids)s::bigint[], %(uids)s::uuid[]))
"""
_DROP_STALE_JOBS = "delete from jobs where claim_until < at(%(before)s)"
# Rows that another transaction locks are left to expire. A canary that has begun is not restarted.
_END_LEASES = """
with freed as (
  update run_batches set lease_until = at(%(now)s) where id = any(array(
    select id from run_batches where holder = any(%(holders)s) and kind = 'run'
      and lease_until > at(%(now)s) order by id for update skip locked)))
update jobs set lease_until = at(%(now)s) where (org, id) in (
  select org, id from jobs where holder = any(%(holders)s) and lease_until > at(%(now)s)
  order by org, id for update skip locked)
"""
_DROP_JOBS_OF = """
delete from jobs where (org, monitor) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


async def lease_batches(
    tx: Tx, process: UUID, shards: Sequence[int], have: Sequence[int], most: int
) -> list[LeasedBatch]:
    """Leases batches without a live holder. Skips locked rows.

    Batches that no process has claimed come first, then the oldest. A process claims a batch again
    while windows of it are left; those of a tenant that overloads it must not delay new batches.
    """
    return await tx.structs(
        LeasedBatch,
        _LEASE_BATCHES,
        process=process,
        shards=list(shards),
        have=list(have),
        most=most,
        now=tx.now,
    )


async def select_settled(tx: Tx, batches: Sequence[int]) -> set[tuple[int, int, Instant]]:
    """Returns the windows of these batches that have a row in the ledger."""
    return {(o, m, d) for o, m, d in await tx.rows(_SETTLED, ids=list(batches))}


async def delete_batches(tx: Tx, batches: Sequence[int]) -> int:
    return await tx.execute(_DELETE_BATCHES, ids=list(batches))


async def add_job(
    tx: Tx,
    uid: UUID,
    org: int,
    monitor: int,
    shard: int,
    reason: str,
    due: Instant,
    claim_until: Instant,
    *,
    replace: bool = True,
) -> bool:
    """Inserts a job. Returns False if such a job exists and must not be replaced."""
    added = await tx.value(
        _ADD_JOB_AGAIN if replace else _ADD_JOB_ONCE,
        uid=uid,
        org=org,
        monitor=monitor,
        shard=shard,
        reason=reason,
        due=due,
        claim_until=claim_until,
    )
    return added is not None


async def add_jobs(tx: Tx, jobs: Sequence[NewJob]) -> None:
    """Inserts jobs, at most one per monitor and reason. Each replaces a waiting one."""
    if jobs:
        await tx.execute(_ADD_JOBS, items=msgspec.json.encode(jobs).decode())


async def add_extra_runs(
    tx: Tx, org: int, monitors: Sequence[int], due: Instant, claim_until: Instant
) -> int:
    """Inserts extra runs of the enabled monitors. Returns their number."""
    return await tx.execute(
        _ADD_EXTRA_RUNS, org=org, monitors=list(monitors), due=due, claim_until=claim_until
    )


async def lease_jobs(
    tx: Tx,
    process: UUID,
    shards: Sequence[int],
    most: int,
    limits: JobLimits = NO_LIMITS,
) -> list[LeasedJob]:
    """Leases due jobs, the oldest of each organization first."""
    return await tx.structs(
        LeasedJob,
        _LEASE_JOBS,
        process=process,
        shards=list(shards),
        most=most,
        full=[org for org, _ in limits.rooms],
        lanes=[is_costly for _, is_costly in limits.rooms],
        rooms=list(limits.rooms.values()),
        costly=list(limits.costly_orgs),
        **key_arrays(limits.exceptions, "monitors"),
        now=tx.now,
    )


async def lease_jobs_out(
    tx: Tx,
    holder: UUID,
    shards: Sequence[int],
    refused: Sequence[str],
    most: int,
    *,
    plain: bool,
    scheduled: bool,
    optional: Sequence[str],
    unknown: Sequence[str],
) -> list[LeasedJob]:
    """Leases jobs to an agent, without the types that it refused.

    With `plain`, monitors with secrets are excluded too, and without `scheduled` those with a cron
    expression. Monitors of an `optional` type with one of the `unknown` settings are excluded.
    """
    return await tx.structs(
        LeasedJob,
        _LEASE_JOBS_OUT,
        holder=holder,
        shards=list(shards),
        refused=list(refused),
        plain=plain,
        scheduled=scheduled,
        optional=list(optional),
        unknown=list(unknown),
        most=most,
        grace=LEASE_GRACE_SECONDS,
        now=tx.now,
    )


async def pop_job(tx: Tx, uid: UUID, org: int, monitor: int) -> int | None:
    """Deletes a job that an agent has done.

    Returns its revision, None if the job does not exist.
    """
    revision: int | None = await tx.value(_TAKE_JOB, uid=uid, org=org, monitor=monitor)
    return revision


async def lock_open_batches(
    tx: Tx, shards: Sequence[int], after: int, most: int, kind: str = "run"
) -> list[OpenBatch]:
    """Locks claimable run batches without a live holder, after an id. Skips locked rows."""
    return await tx.structs(
        OpenBatch,
        _LOCK_OPEN_BATCHES,
        shards=list(shards),
        after=after,
        most=most,
        kind=kind,
        now=tx.now,
    )


async def lock_canary_jobs(tx: Tx, shards: Sequence[int], most: int) -> list[LeasedJob]:
    """Locks waiting canary jobs without a window. The caller deletes those that get a slot."""
    return await tx.structs(
        LeasedJob, _LOCK_CANARY_JOBS, shards=list(shards), most=most, now=tx.now
    )


async def split_batch(
    tx: Tx, taken: OpenBatch, left: OpenBatch | None, holder: UUID, lease_until: Instant
) -> None:
    """Inserts the taken windows as a new claimed batch. The old batch keeps the others."""
    await tx.value(_PUT_BATCH, **_windows(taken), holder=holder, lease_until=lease_until)
    if left is None:
        await delete_batches(tx, [taken.id])
    else:
        await tx.execute(_KEEP_OF_BATCH, **_windows(left))


def _windows(item: OpenBatch) -> dict[str, object]:
    return {
        "id": item.id,
        "orgs": item.orgs,
        "monitors": item.monitors,
        "due_ats": item.due_ats,
        "seal_ats": item.seal_ats,
        "claim_untils": item.claim_untils,
        "first_due": min(item.due_ats),
        "claim_until": max(item.claim_untils),
        "first_seal": min(item.seal_ats),
        "last_seal": max(item.seal_ats),
    }


async def delete_jobs(tx: Tx, jobs: Sequence[LeasedJob]) -> int:
    """Deletes leased jobs. Jobs that have replaced one of them remain."""
    return await tx.execute(
        _DELETE_JOBS,
        orgs=[job.org for job in jobs],
        ids=[job.id for job in jobs],
        uids=[job.uid for job in jobs],
    )


async def end_leases(tx: Tx, holders: Sequence[UUID]) -> None:
    """Ends the leases of these agents, so that other holders can claim the work."""
    await tx.execute(_END_LEASES, holders=list(holders), now=tx.now)


async def delete_jobs_of(tx: Tx, monitors: Sequence[MonitorKey]) -> None:
    if monitors:
        await tx.execute(_DROP_JOBS_OF, **key_arrays(monitors, "monitors"))


async def purge_stale_jobs(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP_STALE_JOBS, before=before)
