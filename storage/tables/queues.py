"""Work that waits: slices of windows, and jobs without one. A lease is held by a presence.

What a process holds is its own until 15 s after its last presence; then anyone takes it. No lease
is renewed row by row. Presences are written by the product's clock, and so they are judged by it:
a host clock that is set back would keep the dead alive.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ..pools import Tx
from ..rules.instant import Instant

# What stands under a process's own name without being in its hands is taken up again after this.
AGAIN_AFTER_SECONDS = 5

_HELD = """
exists (select from presences p where p.process = {row}.holder and not p.ended
  and p.through_at > at(%(now)s) - interval '15 seconds')
"""

_LEASE_SLICES = f"""
update slices set holder = %(process)s, claimed = true,
  lease_until = at(%(now)s) + interval '{AGAIN_AFTER_SECONDS} seconds'
where id = any(array(
  select s.id from slices s
  where s.shard = any(%(shards)s) and s.kind = 'run' and s.published
    and s.claim_until > at(%(now)s)
    and case when s.holder = %(process)s
      then coalesce(s.lease_until, s.first_due + interval '{AGAIN_AFTER_SECONDS} seconds')
        <= at(%(now)s)
      else s.holder is null or not {_HELD.format(row="s")} end
    and s.id <> all(%(have)s)
  order by s.first_due limit %(most)s
  for update skip locked))
returning id, shard, orgs, monitors, dues, claim_untils
"""

_SETTLED = """
select w.org, w.monitor, w.due
from slices s cross join unnest(s.orgs, s.monitors, s.dues) as w(org, monitor, due)
  join expected_runs r on r.org = w.org and r.monitor = w.monitor and r.due_at = w.due
where s.id = any(%(ids)s)
"""

_DELETE_SLICES = "delete from slices where id = any(%(ids)s)"

_ADD_JOB = """
insert into jobs (org, uid, shard, monitor, reason, due_at, claim_until)
values (%(org)s, %(uid)s, %(shard)s, %(monitor)s, %(reason)s, at(%(due)s), at(%(claim_until)s))
on conflict (org, monitor, reason) do {conflict}
returning uid
"""
# A newer one replaces the one before under a name of its own: whoever still runs the one before
# ends that, and not this.
_AGAIN = """
update set uid = excluded.uid, shard = excluded.shard, due_at = excluded.due_at,
  claim_until = excluded.claim_until, holder = null
"""
_ADD_JOB_AGAIN = _ADD_JOB.replace("{conflict}", _AGAIN)
# One whose time has run out without anybody taking it up is in nobody's way.
_ADD_JOB_ONCE = _ADD_JOB.replace("{conflict}", f"{_AGAIN} where jobs.claim_until <= at(%(due)s)")

_LEASE_JOBS = f"""
update jobs set holder = %(process)s
where (org, id) in (
  select j.org, j.id from jobs j
  where j.shard = any(%(shards)s) and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {_HELD.format(row="j")})
  order by j.due_at limit %(most)s
  for update skip locked)
returning org, id, uid, shard, monitor, reason, due_at
"""

_DELETE_JOBS = """
delete from jobs where (org, id, uid) in (
  select * from unnest(%(orgs)s::int[], %(ids)s::bigint[], %(uids)s::uuid[]))
"""
_DROP_STALE_JOBS = "delete from jobs where claim_until < at(%(before)s)"
_DROP_JOBS_OF = "delete from jobs where org = %(org)s and monitor = %(monitor)s"


class LeasedSlice(msgspec.Struct, frozen=True):
    id: int
    shard: int
    orgs: list[int]
    monitors: list[int]
    dues: list[Instant]
    claim_untils: list[Instant]


class LeasedJob(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    shard: int
    monitor: int
    reason: str
    due_at: Instant


async def lease_slices(
    tx: Tx, process: UUID, shards: Sequence[int], have: Sequence[int], most: int
) -> list[LeasedSlice]:
    """Takes slices that nobody holds, oldest first; never waits for another's lock."""
    return await tx.structs(
        LeasedSlice,
        _LEASE_SLICES,
        process=process,
        shards=list(shards),
        have=list(have),
        most=most,
        now=tx.now,
    )


async def select_settled(tx: Tx, slices: Sequence[int]) -> set[tuple[int, int, Instant]]:
    """The windows of these slices that have their row in the ledger already."""
    return {(o, m, d) for o, m, d in await tx.rows(_SETTLED, ids=list(slices))}


async def delete_slices(tx: Tx, slices: Sequence[int]) -> int:
    return await tx.execute(_DELETE_SLICES, ids=list(slices))


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
    """False where such a job waits already and is not to be replaced."""
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


async def lease_jobs(tx: Tx, process: UUID, shards: Sequence[int], most: int) -> list[LeasedJob]:
    return await tx.structs(
        LeasedJob, _LEASE_JOBS, process=process, shards=list(shards), most=most, now=tx.now
    )


async def delete_jobs(tx: Tx, jobs: Sequence[LeasedJob]) -> int:
    """Ends those that were leased; what has replaced one of them since stays."""
    return await tx.execute(
        _DELETE_JOBS,
        orgs=[job.org for job in jobs],
        ids=[job.id for job in jobs],
        uids=[job.uid for job in jobs],
    )


async def drop_jobs_of(tx: Tx, org: int, monitor: int) -> int:
    return await tx.execute(_DROP_JOBS_OF, org=org, monitor=monitor)


async def drop_stale_jobs(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP_STALE_JOBS, before=before)
