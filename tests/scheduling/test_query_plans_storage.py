"""Statements of each pass of the loops read no table as a whole, and no set for each of its rows.

The plans are those of tables without statistics, as in the first minutes of an installation.
"""

from contextlib import suppress
from typing import Any, Final
from uuid import UUID, uuid4

from leadline.storage.alerting.queries import self_monitoring
from leadline.storage.monitors.queries import check_definitions as definitions
from leadline.storage.scheduling.queries import due_work
from leadline.storage.scheduling.rules.work import Work
from leadline.storage.scheduling.tables import work_queues
from tests.support.worlds.world import World

_BATCHES: Final = """
insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils, published,
  first_due, claim_until, first_seal, last_seal, holder)
select (select min(id) from shards), 'run', array[1], array[n], array[d], array[d], array[d], true,
  d, d + interval '1 hour', d, d, gen_random_uuid()
from generate_series(1, 500) n, lateral (select at(%(now)s) as d) x
"""
_RESULTS: Final = """
insert into heartbeats (org, monitor, ts, latency_ms, up, after_due_us)
select 1, n, at(%(now)s) - s * interval '1 second', 1, true, 0
from generate_series(1, 200) n, generate_series(1, 100) s
"""


class _Undone(Exception):
    pass


async def plan(world: World, query: str, *before: str, **given: Any) -> str:
    """Returns the plan after some statements, which are rolled back."""
    rows = []
    with suppress(_Undone):
        async with world.pool.transaction("plan") as tx:
            for statement in before:
                await tx.execute(statement)
            rows = await tx.rows(f"explain {query}", **given)
            raise _Undone
    return "\n".join(line for (line,) in rows)


async def test_settled_windows_are_looked_up_one_by_one(world: World) -> None:
    """A join with their verdicts read all results of the day, by several processes at once."""
    await world.monitor()
    async with world.pool.transaction("fill") as tx:
        await tx.execute(_BATCHES, now=world.now)
        await tx.execute(_RESULTS, now=world.now)
    join = "cross join lateral verdict_of(w.org, w.monitor, w.due) where"
    joined = work_queues._SETTLED.replace("where", join).partition(" and exists")[0]
    ids = list(range(1, 21))
    assert "Seq Scan on heartbeats" in await plan(world, joined, ids=ids)
    found = await plan(world, work_queues._SETTLED, ids=ids)
    assert "SubPlan" in found
    assert "Seq Scan on heartbeats" not in found


async def test_the_living_processes_are_read_once(world: World) -> None:
    given = {"regions": ["core"], "now": world.now}
    found = await plan(world, f"select {due_work._DUE[Work.JOBS]}", **given)
    assert "on presences" in found
    assert "SubPlan" not in found


async def test_indexes_find_edited_monitors_and_canaries(world: World) -> None:
    no_scan = "set local enable_seqscan = off"
    given = {"shards": [1], "since": world.now}
    recent = definitions._CHANGED + definitions._IS_RECENT.format("m")
    # Of few monitors all are as easy to find.
    without = "drop index monitors_shard"
    assert "monitors_edited" in await plan(world, recent, no_scan, without, **given)
    canaries = f"select {due_work._DUE[Work.CANARIES]}"
    assert "monitors_canary" in await plan(world, canaries, no_scan)


async def test_monitors_without_a_prober_are_found_by_their_shards(world: World) -> None:
    """Usually each region has one; then no monitor is read."""
    no_scan = "set local enable_seqscan = off"
    found = await plan(world, self_monitoring._UNWATCHED, no_scan, live=["core"])
    assert "Index Cond: (shard = ANY" in found


async def test_a_process_is_alive_until_15_s_after_its_presence(world: World) -> None:
    """HELD agrees with one lookup for each row, also for rows without a holder."""
    ages: dict[UUID | None, bool] = {}
    held = {}
    async with world.pool.transaction("fill") as tx:
        for seconds, ended in ((0, False), (14, False), (15, False), (60, False), (0, True)):
            one = uuid4()
            await tx.execute(
                "insert into presences (process, from_at, through_at, host, roles, regions,"
                " version, accepts_pushes, ended) values (%(process)s, at(%(through)s),"
                " at(%(through)s), 'host', '{all}', '{core}', '1', true, %(ended)s)",
                process=one,
                through=world.now - seconds * 1_000_000,
                ended=ended,
            )
            ages[one] = seconds < 15 and not ended
        for process in [*ages, None, uuid4()]:
            query = work_queues.HELD.format(row="x")
            held[process] = await tx.value(
                f"select {query} from (select %(p)s::uuid as holder,"
                " null::timestamptz as lease_until) x",
                p=process,
                now=world.now,
            )
    assert held == {process: ages.get(process, False) for process in held}
