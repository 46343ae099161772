"""Sealer and recorder at every step of each other: a result is in its sealed figure or restated
into it, never lost and never counted twice; a window has one verdict."""

import itertools
import random
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.lowlevel

from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.sli import Sample, split
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor_state import freshness_us
from leadline.storage.monitors.tables.monitors import touch_states
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import IncomingResult, StoreOutcome
from leadline.storage.results.tables import sealing as seals
from leadline.storage.results.transactions import seal_windows as seal_module
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.results.transactions.record_steady import copy_steady
from leadline.storage.results.transactions.seal_windows import seal_windows
from leadline.storage.scheduling.rules import run_batch
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.tables import shards as schedules
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import START, World

Step = Callable[[], Awaitable[None]]


async def reserved_window(world: World, row: MonitorRow) -> Instant:
    world.now = Instant(START + 2 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = (await schedules.select_terms_of(tx, [row.key]))[row.key]
    return windows(terms, START, Instant(START + MINUTE))[0].due


def orders() -> list[str]:
    """Every order of the sealer's three steps with the recorder's one."""
    return sorted({"".join(p) for p in itertools.permutations("FSER") if _in_order(p)})


def _in_order(steps: tuple[str, ...]) -> bool:
    return [step for step in steps if step != "R"] == ["F", "S", "E"]


@pytest.mark.parametrize("order", orders())
async def test_every_order_gives_one_verdict_and_one_stored_result(
    world: World, order: str
) -> None:
    """F moves the fence, S settles the windows, E finishes; R records the result."""
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    due = await reserved_window(world, row)
    world.now = Instant(due + 10 * SECOND + 121 * SECOND)
    await Ticker(world.pool, lambda: world.now).pass_once()
    fates: list[StoreOutcome] = []

    async def fence() -> None:
        async with world.pool.transaction("fence") as tx:
            await seals.advance_fence(tx, row.shard, world.now)

    async def settle() -> None:
        async with world.pool.transaction("settle") as tx:
            await seal_windows(tx, row.shard, world.now, 0)

    async def finish() -> None:
        async with world.pool.transaction("finish") as tx:
            await seals.finish(tx, row.shard, world.now)

    async def result() -> None:
        arrival = world.result(row, due, True, dues=(due,), windowed=True)
        async with world.pool.transaction("record") as tx:
            answers, _ = await record_results(tx, [arrival])
        fates.append(answers[0].fate)

    steps: dict[str, Step] = {"F": fence, "S": settle, "E": finish, "R": result}
    for step in order:
        await steps[step]()
    ledger = {at: verdict for at, verdict, _ in await world.ledger(row)}
    after_fence = order.index("R") > order.index("F")
    assert fates == [StoreOutcome.HISTORY if after_fence else StoreOutcome.LIVE]
    assert ledger[due] in ({"covered_late"} if after_fence else {"covered", "covered_late"})
    assert len(await world.beats(row)) == 1
    restated = await world.rows("select from_at from repairs")
    assert restated == ([(due,)] if after_fence else [])
    assert (await world.state(row))[0] == ("pending" if after_fence else "up")


@pytest.mark.parametrize("record", [record_results, copy_steady])
async def test_an_open_recorder_transaction_blocks_the_fence(
    world: World, record: Callable[..., Awaitable[object]]
) -> None:
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    due = await reserved_window(world, row)
    world.now = Instant(due + 200 * SECOND)
    await Ticker(world.pool, lambda: world.now).pass_once()
    moved = trio.Event()

    async def move() -> None:
        async with world.pool.transaction("fence") as tx:
            await seals.advance_fence(tx, row.shard, world.now)
        moved.set()

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("record") as tx:
            await record(tx, [world.result(row, due, True, dues=(due,), windowed=True, version=1)])
            nursery.start_soon(move)
            await until_blocked(world.pool)
            assert not moved.is_set(), "the fence moved past a result that was not committed"
        with trio.fail_after(30):
            await moved.wait()


_REFUSE = """
create function refuse() returns trigger language plpgsql as $$
begin raise check_violation using message = 'refused by the test'; end $$
"""
_REFUSES = """
create trigger refuse before insert on expected_runs_all for each row
when (new.monitor = {}) execute function refuse()
"""


async def test_a_shard_that_cannot_be_sealed_stops_no_other(world: World) -> None:
    rows = [await world.monitor(region=region) for region in ("core", "eu")]
    world.now = Instant(START + 2 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    world.now = Instant(START + HOUR)
    await Ticker(world.pool, lambda: world.now).pass_once()
    sealer = MonitorSealer(world.pool, lambda: world.now)
    for refused, other in (rows, rows[::-1]):
        async with world.pool.transaction("refuse") as tx:
            await tx.execute("drop function if exists refuse cascade")
            await tx.execute(_REFUSE)
            await tx.execute(_REFUSES.format(refused.id))
        before = len(await world.ledger(refused)), len(await world.ledger(other))
        world.now = Instant(world.now + 10 * MINUTE)
        await Ticker(world.pool, lambda: world.now).pass_once()
        await sealer.pass_once()
        assert len(await world.ledger(refused)) == before[0]
        assert len(await world.ledger(other)) > before[1]


@pytest.mark.parametrize("seed", range(4))
async def test_however_late_results_come_the_figures_are_those_of_all_results(
    world: World, seed: int
) -> None:
    chance = random.Random(seed)
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    results = [
        world.result(
            row, Instant(START + n * MINUTE + chance.randrange(SECOND)), chance.random() < 0.8
        )
        for n in range(90)
        if chance.random() < 0.7
    ]
    waiting = sorted(results, key=lambda r: r.ts + chance.choice([0, 0, 0, 5, 30, 100]) * MINUTE)
    sealer, repairer = MonitorSealer(world.pool, lambda: world.now), Repairer(world.pool)
    ticker = Ticker(world.pool, lambda: world.now)
    while world.now < START + 4 * HOUR:
        world.now = Instant(world.now + chance.randint(1, 15) * MINUTE)
        await ticker.pass_once()
        ready = [r for r in waiting if r.ts <= world.now][: chance.randint(1, 40)]
        waiting = [r for r in waiting if r not in ready]
        if ready:
            async with world.pool.transaction("record") as tx:
                await record_results(tx, ready)
        if chance.random() < 0.7:
            await sealer.pass_once()
        if chance.random() < 0.5:
            await repairer.pass_once()
    assert not waiting
    await sealer.pass_once()
    await repairer.pass_once()
    await _expect_hours_of(world, row, results)


async def _expect_hours_of(world: World, row: MonitorRow, results: list[IncomingResult]) -> None:
    held = freshness_us(60 * SECOND)
    samples = [
        Sample(r.ts, r.up, Instant(r.ts + held)) for r in sorted(results, key=lambda r: r.ts)
    ]
    stored = await world.rows(
        "select hour, good_us, bad_us, unknown_us, up, total from monitor_hours order by hour"
    )
    assert len(stored) >= 3
    for hour, good, bad, unknown, up, total in stored:
        expected = split(samples, TimeSpan(hour, Instant(hour + HOUR)))
        inside = [r for r in results if hour <= r.ts < hour + HOUR]
        assert (good, bad, unknown) == (
            expected.good_us,
            expected.bad_us,
            expected.unknown_us,
        )
        assert (up, total) == (sum(r.up for r in inside), len(inside))


async def test_one_refused_result_of_500_does_not_affect_the_others(
    world: World,
) -> None:
    row = await world.monitor(type="push")
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    good = [world.result(row, Instant(START + n), True) for n in range(500)]
    # No partition contains this instant, so the database refuses the whole statement.
    bad = world.result(row, Instant(START + 900 * 24 * HOUR), True)
    fates: dict[Instant, StoreOutcome] = {}

    async def bring(arrival: IncomingResult) -> None:
        fates[arrival.ts] = (await recorder.record(arrival)).fate

    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        async with trio.open_nursery() as bringing:
            for n, arrival in enumerate([*good[:250], bad, *good[250:]]):
                bringing.start_soon(bring, arrival)
                if n % 50 == 0:
                    await trio.lowlevel.checkpoint()
        recorder.close()
    assert fates.pop(bad.ts) is StoreOutcome.REFUSED
    assert set(fates.values()) == {StoreOutcome.LIVE}
    assert len(await world.beats(row)) == 500


async def test_two_first_pushes_of_the_same_moment_are_both_kept(world: World) -> None:
    row = await world.monitor(type="push")
    recorders = [Recorder(world.pool, Bus(), lambda: world.now) for _ in range(2)]
    async with trio.open_nursery() as nursery:
        for recorder in recorders:
            await nursery.start(recorder.run)
        async with trio.open_nursery() as bringing:
            for recorder in recorders:
                bringing.start_soon(recorder.record, world.result(row, START, True))
        for recorder in recorders:
            recorder.close()
    assert len(await world.beats(row)) == 2


_ENDED_WINDOWS = """
select w.seal from run_batches s cross join unnest(s.monitors, s.seal_ats) as w(monitor, seal)
where w.monitor = %(monitor)s and w.seal <= at(%(fence)s)
"""


async def test_a_locked_state_delays_neither_other_windows_nor_recorders(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_module, "BATCHES_AT_ONCE", 1)
    monkeypatch.setattr(run_batch, "MOST_WINDOWS", 2)
    rows = [await world.monitor(interval_seconds=60, timeout_seconds=10) for _ in range(3)]
    for minutes in (2, 6):
        world.now = Instant(START + minutes * MINUTE)
        await Ticker(world.pool, lambda: world.now).pass_once()
    sealer = MonitorSealer(world.pool, lambda: world.now)

    async def settled_through() -> Instant:
        ((at,),) = await world.rows(
            "select settled_through from shards where id = %(id)s", id=rows[0].shard
        )
        return Instant(at)

    async def is_settled(row: MonitorRow) -> bool:
        return bool(await world.ledger(row))

    wanted = [
        len(await world.rows(_ENDED_WINDOWS, monitor=row.id, fence=world.now)) for row in rows
    ]
    before = await settled_through()
    async with world.pool.transaction("edit") as tx:
        await touch_states(tx, [rows[2].key])
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sealer.pass_once)
    assert [await is_settled(row) for row in rows] == [True, True, False]
    locked = await world.rows(_ENDED_WINDOWS, monitor=rows[2].id, fence=world.now)
    assert before <= await settled_through() < min(seal for (seal,) in locked)
    await sealer.pass_once()
    assert [await is_settled(row) for row in rows] == [True, True, True]
    assert await settled_through() > before
    assert [len(await world.ledger(row)) for row in rows] == wanted
    ((open_,),) = await world.rows(
        "select count(*) from run_batches where last_seal <= at(%(t)s)", t=await settled_through()
    )
    assert open_ == 0


async def test_states_that_are_locked_in_turn_do_not_stop_the_figures_of_others(
    world: World,
) -> None:
    """Monitors of other organizations are in the same shard."""
    busy = [await world.monitor(interval_seconds=10, timeout_seconds=5) for _ in range(2)]
    other = await world.monitor(interval_seconds=60, timeout_seconds=10)
    sealer = MonitorSealer(world.pool, lambda: world.now)
    for half_minutes in range(4, 150):
        world.now = Instant(START + half_minutes * 30 * SECOND)
        await Ticker(world.pool, lambda: world.now).pass_once()
        async with world.pool.transaction("edit") as tx:
            await touch_states(tx, [busy[half_minutes % 2].key])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sealer.pass_once)
    ((sealed, settled),) = await world.rows(
        "select sealed_through, settled_through from shards where id = %(id)s", id=other.shard
    )
    assert sealed - settled <= 2 * MINUTE
    assert await world.rows("select from monitor_hours where monitor = %(id)s", id=other.id)
