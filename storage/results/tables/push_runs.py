"""Runs of push monitors: start, end, judgement."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.push_run import (
    CLOCK_SKEW_US,
    LATE_START_US,
    OPEN_RUNS_MOST,
    REPEAT_LONGEST_US,
    RUN_LONGEST_US,
    RUNS_KEPT,
    RunJudgement,
    RunOutcome,
)

# First key of the advisory locks. The second key is the monitor.
LOCK_CLASS: Final = 1_279_610_186

_LOCK = f"select pg_advisory_xact_lock({LOCK_CLASS}, %(monitor)s::int)"
# A run whose deadline has not passed needs no judgement after its end.
_ENDED = """
ended_at = greatest(started_at, at(%(at)s)), judged = case when judged is null
    and (deadline_at is null or deadline_at >= at(%(at)s)) then 'ended' else judged end
"""
_REPLACE = f"""
update push_runs set outcome = 'replaced', {_ENDED}
where org = %(org)s and monitor = %(monitor)s and run = %(run)s and ended_at is null
  and started_at < at(%(at)s)
"""
# A start can be handled after the result of its run. Then it is stored as ended.
_START = """
insert into push_runs (org, monitor, run, started_at, deadline_at, ended_at, outcome, code, judged)
select m.org, m.id, %(run)s, at(%(at)s), at(%(deadline)s), e.ended_at, e.outcome, e.code,
  case when e.ended_at <= coalesce(at(%(deadline)s), 'infinity') then 'ended' end
-- The cached token may outlive its monitor briefly.
from monitors m left join lateral (
  select ended_at, outcome, code from (
    select ended_at, outcome, code from push_run_ends
    where org = m.org and monitor = m.id and run = %(run)s
    union all
    select ended_at, outcome, code from push_runs
    where org = m.org and monitor = m.id and run = %(run)s) f
  where ended_at > at(%(at)s) order by ended_at limit 1) e on true
where m.org = %(org)s and m.id = %(monitor)s and (
  select count(*) from push_runs r where r.org = m.org and r.monitor = m.id and r.ended_at is null
    and r.started_at > at(%(oldest)s)) < %(most)s
on conflict do nothing
"""
_IS_STORED = """
select count(*) from push_runs
where org = %(org)s and monitor = %(monitor)s and run = %(run)s and started_at = at(%(at)s)
"""
# An undecided run stays until it is judged.
_TRIM = """
delete from push_runs r where r.org = %(org)s and r.monitor = %(monitor)s
  and (r.ended_at is not null or r.started_at <= at(%(oldest)s))
  and (r.deadline_at is null or r.judged is not null)
  and r.started_at < (select started_at from push_runs
    where org = %(org)s and monitor = %(monitor)s
    order by started_at desc offset %(kept)s limit 1)
"""
_END = f"""
update push_runs set outcome = %(outcome)s, code = %(code)s, {_ENDED}
where org = %(org)s and monitor = %(monitor)s and run = %(run)s and ended_at is null
  and started_at between at(%(oldest)s) and at(%(soonest)s)
  -- A result that is handled after the start of the next run does not end that one.
  and (started_at <= at(%(at)s) or not exists (select from push_runs p
    where p.org = %(org)s and p.monitor = %(monitor)s and p.run = %(run)s
      and p.started_at <= at(%(at)s) and p.ended_at > at(%(at)s)))
returning started_at, ended_at
"""
_KEEP_END = """
insert into push_run_ends (org, monitor, run, ended_at, outcome, code)
select m.org, m.id, %(run)s, at(%(at)s), %(outcome)s, %(code)s
from monitors m where m.org = %(org)s and m.id = %(monitor)s
on conflict (org, monitor, run) do update set ended_at = excluded.ended_at,
  outcome = excluded.outcome, code = excluded.code
where push_run_ends.ended_at < excluded.ended_at
"""
_TRIM_ENDS = """
delete from push_run_ends
where org = %(org)s and monitor = %(monitor)s and ended_at < at(%(before)s)
"""
# A sender without an answer repeats its request.
_ENDED_BEFORE = """
select started_at, ended_at from push_runs
where org = %(org)s and monitor = %(monitor)s and run = %(run)s and run <> ''
  and outcome <> 'replaced' and started_at >= at(%(oldest)s)
  and ended_at >= at(%(repeated)s)
order by started_at desc limit 1
"""
_LOCK_UNDECIDED = """
select r.org, r.monitor, m.uid, m.shard, r.run, r.started_at, r.deadline_at
from push_runs r join monitors m on m.org = r.org and m.id = r.monitor
where r.judged is null and r.deadline_at <= at(%(now)s) and r.org = %(org)s
order by r.deadline_at, r.monitor, r.run limit %(most)s for update of r skip locked
"""
_UNDECIDED_ORGS = """
select org, min(deadline_at) from push_runs
where judged is null and deadline_at is not null
group by org order by 2 limit %(most)s
"""
_JUDGE = """
update push_runs r set judged = j.judged
from unnest(%(monitors)s::int[], %(runs)s::text[], %(starts)s::bigint[], %(judged)s::text[])
  as j(monitor, run, started, judged)
where r.org = %(org)s and r.monitor = j.monitor and r.run = j.run
  and r.started_at = at(j.started) and r.judged is null
"""
# An undecided run stays until it is judged.
_DROP = """
delete from push_runs where started_at < at(%(before)s)
  and (deadline_at is null or judged is not null)
"""
_DROP_ENDS = "delete from push_run_ends where ended_at < at(%(before)s)"


class UndecidedRun(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    uid: UUID
    shard: int
    run: str
    started_at: Instant
    deadline_at: Instant


async def start_run(
    tx: Tx, org: int, monitor: int, run: str, at: Instant, deadline: Instant | None
) -> bool:
    """Starts a run, which replaces an open one with the same id. Returns whether it is tracked.

    The run is stored as ended if its result was handled before it. False if OPEN_RUNS_MOST are
    open or the monitor is deleted. Idempotent.
    """
    key = {"org": org, "monitor": monitor}
    oldest = Instant(at - RUN_LONGEST_US)
    await tx.rows(_LOCK, monitor=monitor)
    await tx.execute(_REPLACE, **key, run=run, at=at)
    started = await tx.execute(
        _START, **key, run=run, at=at, deadline=deadline, oldest=oldest, most=OPEN_RUNS_MOST
    )
    # A try whose connection broke may have been committed.
    started = started or await tx.value(_IS_STORED, **key, run=run, at=at)
    await tx.execute(_TRIM, **key, oldest=oldest, kept=RUNS_KEPT - 1)
    return bool(started)


async def end_run(
    tx: Tx, org: int, monitor: int, run: str, at: Instant, outcome: RunOutcome, code: int | None
) -> tuple[Instant, Instant] | None:
    """Ends the open run with this id, and returns its start and end. None without a run.

    A result that ends no run is kept for a start that is handled later.
    """
    await tx.rows(_LOCK, monitor=monitor)
    key = {"org": org, "monitor": monitor, "run": run, "oldest": Instant(at - RUN_LONGEST_US)}
    told = {"at": at, "outcome": outcome, "code": code}
    soonest = Instant(at + CLOCK_SKEW_US)
    rows = await tx.rows(_END, **key, **told, soonest=soonest)
    if not rows:
        place = {"org": org, "monitor": monitor}
        await tx.execute(_TRIM_ENDS, **place, before=Instant(at - LATE_START_US))
        await tx.execute(_KEEP_END, **place, run=run, **told)
        repeated = Instant(at - REPEAT_LONGEST_US)
        rows = await tx.rows(_ENDED_BEFORE, **key, repeated=repeated)
    return (rows[0][0], rows[0][1]) if rows and rows[0][1] is not None else None


async def select_undecided_orgs(tx: Tx, most: int) -> list[tuple[int, Instant]]:
    """Returns organizations with runs to judge, each with its earliest deadline, in order."""
    return [(org, deadline) for org, deadline in await tx.rows(_UNDECIDED_ORGS, most=most)]


async def lock_undecided(tx: Tx, org: int, now: Instant, most: int) -> list[UndecidedRun]:
    """Locks and returns runs whose deadline has passed, without those that others judge."""
    return await tx.structs(UndecidedRun, _LOCK_UNDECIDED, org=org, now=now, most=most)


async def write_judgements(
    tx: Tx, org: int, judged: Sequence[tuple[UndecidedRun, RunJudgement]]
) -> None:
    await tx.execute(
        _JUDGE,
        org=org,
        monitors=[run.monitor for run, _ in judged],
        runs=[run.run for run, _ in judged],
        starts=[run.started_at for run, _ in judged],
        judged=[word for _, word in judged],
    )


async def drop_push_runs(tx: Tx, before: Instant) -> int:
    await tx.execute(_DROP_ENDS, before=before)
    return await tx.execute(_DROP, before=before)
