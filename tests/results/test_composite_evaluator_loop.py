"""The composite scheduler with the ticker and the sealer: every window of a composite gets a
verdict, a failing composite does not delay the others, and results are published to the event bus.
"""

import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest

from leadline.daemon.loops import composite_evaluator as evaluator_module
from leadline.daemon.loops.composite_evaluator import CompositeEvaluator, CompositeScheduler
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus, StatusEvent
from leadline.storage.results.queries.composites import DueCompositeWindow
from leadline.storage.results.transactions.evaluate_composites import evaluate_composites
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.tables import shards as schedules
from tests.support.worlds.local_failures import FlakyPool
from tests.support.worlds.world import START, World


async def composite(world: World, *children: MonitorRow, **given: Any) -> MonitorRow:
    config = {"children": [str(row.uid) for row in children]}
    return await world.monitor(type="composite", target="", config=config, **given)


async def is_now(world: World, row: MonitorRow, up: bool) -> None:
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [world.result(row, world.now, up)])


async def test_every_window_of_a_random_hour_ends_in_a_verdict(world: World) -> None:
    chance = random.Random(7)
    leaves = [await world.monitor(interval_seconds=60) for _ in range(3)]
    rows = [
        await composite(world, *leaves, interval_seconds=20),
        await composite(world, leaves[0], interval_seconds=60),
    ]
    rows.append(await composite(world, *rows, interval_seconds=300))
    ticker = Ticker(world.pool, lambda: world.now)
    sealer = MonitorSealer(world.pool, lambda: world.now)
    composer = CompositeScheduler(CompositeEvaluator(world.pool, Bus()), lambda: world.now)
    while world.now < START + 60 * MINUTE:
        # At random, the loops do not run for some minutes.
        away = chance.random() < 0.03
        world.now = Instant(world.now + (chance.randint(2, 6) * MINUTE if away else 7 * SECOND))
        await ticker.pass_once()
        await composer.pass_once()
        for leaf in leaves:
            if chance.random() < 0.15:
                await is_now(world, leaf, chance.random() < 0.7)
        await sealer.pass_once()
    seen = set()
    for row in rows:
        async with world.pool.transaction("terms", read_only=True) as tx:
            terms = (await schedules.select_terms_of(tx, [row.key]))[row.key]
        until = Instant(world.now - 120 * SECOND)
        ledger = {due: (verdict, reason) for due, verdict, reason in await world.ledger(row)}
        expected = [window.due for window in windows(terms, terms[0].from_, until)]
        assert [due for due in sorted(ledger) if due <= until] == expected
        beats = [ts for ts, _, _ in await world.beats(row)]
        for due, (verdict, reason) in ledger.items():
            seen.add((verdict, reason))
            answered = any(due <= ts < due + 120 * SECOND for ts in beats)
            assert answered or verdict != "covered"
    assert ("covered", None) in seen
    assert ("withheld", "children_unknown") in seen
    assert ("missed", "never_published") in seen


async def test_a_composite_that_the_database_refuses_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = await world.monitor()
    rows = [await composite(world, leaf) for _ in range(5)]
    await is_now(world, leaf, True)
    tries = 0

    async def refusing(
        tx: Tx, due: Sequence[DueCompositeWindow], called: Iterable[MonitorKey]
    ) -> Any:
        nonlocal tries
        if MonitorKey((rows[2].org, rows[2].id)) in called:
            tries += 1
            raise Rejected("out of range", "22003")
        return await evaluate_composites(tx, due, called)

    monkeypatch.setattr(evaluator_module, "evaluate_composites", refusing)
    composer = CompositeScheduler(CompositeEvaluator(world.pool, Bus()), lambda: world.now)
    await composer.pass_once()
    up = ["up", "up", "pending", "up", "up"]
    assert [(await world.state(row))[0] for row in rows] == up
    # It is left alone for a while, and then it is tried again.
    before = tries
    await composer.pass_once()
    assert tries == before
    monkeypatch.undo()
    world.now = Instant(world.now + 31 * SECOND)
    await composer.pass_once()
    assert (await world.state(rows[2]))[0] == "up"


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
class FlakyTransacts(FlakyPool):
    """Fails in `transact` as well, which repeats a transaction after a conflict."""

    async def transact(self, name: str, work: Callable[[Tx], Awaitable[Any]]) -> Any:
        async with self.transaction(name) as tx:
            return await work(tx)


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
async def test_a_failed_evaluation_is_repeated_and_stored_once(world: World, when: str) -> None:
    leaf = await world.monitor()
    row = await composite(world, leaf)
    await is_now(world, leaf, True)
    flaky: Any = FlakyTransacts(world.pool)
    composer = CompositeScheduler(CompositeEvaluator(flaky, Bus()), lambda: world.now)
    getattr(flaky, when).add("evaluate_composites")
    with pytest.raises(Unavailable):
        await composer.pass_once()
    getattr(flaky, when).clear()
    await composer.pass_once()
    assert [up for _, up, _ in await world.beats(row)] == [True]


async def test_the_event_bus_reports_each_result_of_a_composite(world: World) -> None:
    leaf = await world.monitor()
    row = await composite(world, leaf)
    bus = Bus()
    listener = bus.listen()
    composer = CompositeScheduler(CompositeEvaluator(world.pool, bus), lambda: world.now)
    for n, up in enumerate([True, False]):
        world.now = Instant(START + n * SECOND)
        await is_now(world, leaf, up)
        await composer.pass_once()
        event = await listener.next()
        assert isinstance(event, StatusEvent)
        assert (event.monitor_uid, event.status, event.up) == (row.uid, "up" if up else "down", up)
        assert (event.project_uid, event.ts, event.changed) == (row.project_uid, world.now, True)
    bus.hang_up(listener)
