"""Ticker, sealer and repairer on a real database and a clock that is set: no window vanishes."""

import random
from collections import Counter
from typing import Any

import pytest

from leadline.daemon.loops import schedule_ticker
from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.rules.schedule_plan import SchedulePlan
from leadline.storage.scheduling.tables import shards as schedules
from leadline.storage.scheduling.transactions.reserve_windows import (
    ReservedStep,
    reserve_windows,
)
from tests.support.worlds.world import REGIONS, START, World


async def edit(world: World, row: MonitorRow, **given: Any) -> None:
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def run_until(world: World, until: Instant, step_us: int = 30 * SECOND) -> dict[str, int]:
    """Returns how many windows were called missed, by reason."""
    ticker = Ticker(world.pool, lambda: world.now)
    sealer = MonitorSealer(world.pool, lambda: world.now)
    while world.now < until:
        world.now = min(Instant(world.now + step_us), until)
        await ticker.pass_once()
        await sealer.pass_once()
    return sealer.missed


async def due_windows(world: World, row: MonitorRow, through: Instant) -> list[Instant]:
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = await schedules.select_terms_of(tx, [row.key])
    history = terms[row.key]
    return [window.due for window in windows(history, history[0].from_, through)]


async def test_every_window_without_a_result_is_missed_with_a_reason(world: World) -> None:
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    await run_until(world, Instant(START + 10 * MINUTE))
    sealed_before = Instant(world.now - 130 * SECOND)
    expected = [due for due in await due_windows(world, row, world.now) if due <= sealed_before]
    ledger = await world.ledger(row)
    assert [due for due, _, _ in ledger] == expected
    assert {(verdict, reason) for _, verdict, reason in ledger} == {("missed", "never_claimed")}


async def test_a_scheduler_away_for_an_hour_finds_each_window_under_its_own_terms(
    world: World,
) -> None:
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    await run_until(world, Instant(START + 2 * MINUTE))
    # Windows are handed out a moment ahead.
    ((published_through,),) = await world.rows("select reserved_through from shards")
    world.now = Instant(START + 20 * MINUTE)
    await edit(world, row, interval_seconds=300)
    world.now = Instant(START + 40 * MINUTE)
    await edit(world, row, enabled=False)
    world.now = Instant(START + 62 * MINUTE)
    await run_until(world, Instant(START + 65 * MINUTE))
    ledger = {due: (verdict, reason) for due, verdict, reason in await world.ledger(row)}
    sealed_before = Instant(world.now - 130 * SECOND)
    for due in await due_windows(world, row, sealed_before):
        after_pause = due > START + 40 * MINUTE
        assert ledger[due] == (
            ("withheld", "paused")
            if after_pause
            else ("missed", "never_published" if due > published_through else "never_claimed")
        )
    gaps = [due for due in ledger if START + 20 * MINUTE < due <= START + 40 * MINUTE]
    assert len(gaps) == 4, "one every five minutes, by the terms then in force"


async def test_a_covered_window_stays_covered_and_its_slice_goes(world: World) -> None:
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    await run_until(world, Instant(START + MINUTE))
    (due,) = await due_windows(world, row, world.now)
    result = world.result(row, due, True, dues=(due,), windowed=True)
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [result])
    await run_until(world, Instant(START + 10 * MINUTE))
    assert (await world.ledger(row))[0] == (due, "covered", None)
    open_slices = await world.rows("select first_due from run_batches")
    assert all(first > world.now - 200 * SECOND for (first,) in open_slices)


async def test_two_tickers_reserve_no_window_twice(world: World) -> None:
    rows = [await world.monitor(interval_seconds=10, timeout_seconds=5) for _ in range(7)]
    tickers = [Ticker(world.pool, lambda: world.now) for _ in range(2)]
    chance = random.Random(1)
    for _ in range(40):
        world.now = Instant(world.now + chance.randint(1, 9) * SECOND)
        await chance.choice(tickers).pass_once()
    reserved = await world.rows(
        "select w.monitor, w.due"
        " from run_batches s, unnest(s.monitors, s.due_ats) as w(monitor, due)"
    )
    assert len(reserved) == len(set(reserved))
    ((through,),) = await world.rows("select reserved_through from shards")
    assert through >= world.now
    for row in rows:
        mine = sorted(due for monitor, due in reserved if monitor == row.id)
        assert mine == await due_windows(world, row, through)


async def test_a_shard_that_fails_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await world.monitor(interval_seconds=10, timeout_seconds=5, region="eu")
    other = await world.monitor(interval_seconds=10, timeout_seconds=5)
    ticker = Ticker(world.pool, lambda: world.now)

    async def fail(tx: Tx, plan: SchedulePlan, *given: Any, **named: Any) -> ReservedStep | None:
        if plan.shard == broken.shard:
            raise AssertionError("no due instant")
        return await reserve_windows(tx, plan, *given, **named)

    async def reserved(row: MonitorRow) -> list[Instant]:
        query = "select w.monitor, w.due from run_batches s, unnest(s.monitors, s.due_ats)"
        rows = await world.rows(f"{query} as w(monitor, due)")
        return sorted(due for monitor, due in rows if monitor == row.id)

    monkeypatch.setattr(schedule_ticker, "reserve_windows", fail)
    for _ in range(6):
        world.now = Instant(world.now + 10 * SECOND)
        await ticker.pass_once()
    assert await reserved(other)
    assert not await reserved(broken)
    assert ticker.failed == 6
    assert ticker.lag_us() >= MINUTE, "the lag shows the shard that is behind"
    # Its windows wait.
    monkeypatch.undo()
    await ticker.pass_once()
    query = "select reserved_through from shards where id = %(shard)s"
    ((through,),) = await world.rows(query, shard=broken.shard)
    assert await reserved(broken) == await due_windows(world, broken, through)


async def test_hours_are_rolled_up_and_restated_when_something_was_learnt_late(
    world: World,
) -> None:
    row = await world.monitor(interval_seconds=60, timeout_seconds=10)
    async with world.pool.transaction("record") as tx:
        await record_results(
            tx, [world.result(row, Instant(START + n * MINUTE), True) for n in range(30)]
        )
    await run_until(world, Instant(START + 2 * HOUR), step_us=5 * MINUTE)
    query = "select hour, good_us, bad_us, unknown_us, up, total from monitor_hours order by hour"
    good = 32 * MINUTE
    assert await world.rows(query) == [(START, good, 0, HOUR - good, 30, 30)]
    late = Instant(START + 40 * MINUTE)
    async with world.pool.transaction("late") as tx:
        await record_results(tx, [world.result(row, late, False)])
    assert await Repairer(world.pool).pass_once() == 1
    bad = 3 * MINUTE
    assert await world.rows(query) == [(START, good, bad, HOUR - good - bad, 30, 31)]
    assert await world.rows("select 1 from repairs") == []


async def test_silence_is_called_missed_only_where_we_listened(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=10)
    world.now = Instant(START + 5 * SECOND)
    async with world.pool.transaction("beat") as tx:
        await record_results(tx, [world.result(row, world.now, True)])
    await world.listen(START, Instant(START + 4 * MINUTE))
    missed = await run_until(world, Instant(START + 20 * MINUTE))
    ledger = await world.ledger(row)
    assert missed == Counter(reason for _, verdict, reason in ledger if verdict == "missed")
    for due, verdict, reason in ledger:
        end = due + 70 * SECOND
        if due <= START + 5 * SECOND:
            assert verdict == "covered"
        else:
            listened = end <= START + 4 * MINUTE
            assert (verdict, reason) == (
                "missed",
                "no_heartbeat" if listened else "not_listening",
            )
    assert {reason for _, _, reason in ledger} >= {"no_heartbeat", "not_listening"}
