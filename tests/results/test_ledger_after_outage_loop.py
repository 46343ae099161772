"""After an outage of the database or the scheduler, the ledger has every window that fell due in
it.
"""

from typing import Any, cast

import pytest

from leadline.daemon.loops.janitor import Janitor
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Pool
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.tables import push_events
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.tables import shards as schedules
from leadline.storage.scheduling.transactions import reserve_windows
from leadline.storage.services.tables.services import advance_seals, set_materialization_start
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from tests.support.worlds.local_failures import FlakyPool
from tests.support.worlds.world import START, World


async def due_windows(world: World, row: MonitorRow, through: Instant) -> list[Instant]:
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = await schedules.select_terms_of(tx, [row.key])
    history = terms[row.key]
    return [window.due for window in windows(history, history[0].from_, through)]


async def reserved(world: World) -> list[Instant]:
    rows = await world.rows("select unnest(due_ats) from run_batches order by 1")
    return [due for (due,) in rows]


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
async def test_a_reservation_that_failed_leaves_no_gap(world: World, when: str) -> None:
    row = await world.monitor(interval_seconds=10, timeout_seconds=5)
    flaky = FlakyPool(world.pool)
    ticker = Ticker(cast("Pool", flaky), lambda: world.now)
    world.now = Instant(START + MINUTE)
    await ticker.pass_once()
    world.now = Instant(START + 2 * MINUTE)
    getattr(flaky, when).add("reserve_windows")
    with pytest.raises(Unavailable):
        await ticker.pass_once()
    getattr(flaky, when).clear()
    world.now = Instant(START + 3 * MINUTE)
    await ticker.pass_once()
    (through,) = (await world.rows("select reserved_through from shards"))[0]
    assert await reserved(world) == await due_windows(world, row, through)


class Away:
    """A janitor with the partitions it makes itself, and a daemon that is off for days."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.janitor = Janitor(
            world.pool, lambda: world.now, heartbeat_days=4, ledger_days=4, gate_days=90
        )

    async def begin(self) -> None:
        for parent in ("heartbeats", "expected_runs"):
            async with self.world.pool.transaction("real partitions") as tx:
                await tx.execute(f"drop table {parent}_all")
        await self.janitor.make_room()

    async def come_back(self, now: Instant) -> None:
        self.world.now = now
        await self.janitor.make_room()
        await self.janitor.pass_once()


@pytest.mark.parametrize("days", [3, 12, 40])
@pytest.mark.parametrize("paused", [False, True])
async def test_a_daemon_that_was_off_for_days_settles_every_window_since(
    world: World, days: int, paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserve_windows, "STEP_US", 6 * HOUR)
    given: dict[str, Any] = {"interval_seconds": 86_400, "timeout_seconds": 10}
    row = await world.monitor(**given, enabled=not paused)
    away = Away(world)
    await away.begin()
    ticker = Ticker(world.pool, lambda: world.now)
    sealer = MonitorSealer(world.pool, lambda: world.now)
    await ticker.pass_once()
    await away.come_back(Instant(START + days * DAY))
    while await _catch_up(world, ticker):
        pass
    await sealer.pass_once()
    expected = await due_windows(world, row, Instant(world.now - 130 * SECOND))
    settled = {due for due, _, _ in await world.ledger(row)}
    assert set(expected) <= settled
    assert len(expected) >= days - 1


async def _catch_up(world: World, ticker: Ticker) -> bool:
    await ticker.pass_once()
    (through,) = (await world.rows("select reserved_through from shards"))[0]
    return bool(through < world.now)


async def test_children_of_a_composite_are_kept_until_its_hours_are_rolled_up(
    world: World,
) -> None:
    leaves = [await world.monitor() for _ in range(2)]
    configs = [{"children": [str(leaf.uid)]} for leaf in leaves]
    row = await world.monitor(type="composite", target="", config=configs[0])
    world.now = Instant(START + HOUR)
    async with world.pool.transaction("edit") as tx:
        given = {"config": configs[1]}
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, frozenset({"core"}))
    kept = "select children from composite_terms order by from_at"
    both = [([leaf.id],) for leaf in leaves]
    # By age alone, the retention would delete the first term.
    world.now = Instant(START + 40 * DAY)
    await Away(world).janitor.pass_once()
    assert await world.rows(kept) == both
    async with world.pool.transaction("rolled up") as tx:
        await tx.execute(
            "update shards set rolled_up_through = at(%(at)s), settled_through = at(%(at)s)",
            at=world.now,
        )
    await Away(world).janitor.pass_once()
    assert await world.rows(kept) == both[1:]


async def test_composite_terms_are_kept_until_the_history_is_reconstructed(world: World) -> None:
    leaves = [await world.monitor() for _ in range(2)]
    configs = [{"children": [str(leaf.uid)]} for leaf in leaves]
    row = await world.monitor(type="composite", target="", config=configs[0])
    world.now = Instant(START + HOUR)
    async with world.pool.transaction("edit") as tx:
        given = {"config": configs[1]}
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, frozenset({"core"}))
    async with world.pool.transaction("declare") as tx:
        draft = ServiceDraft(name="checkout")
        service = await create_service(tx, world.editor, world.project_uid, draft)
        declared = DeclarationDraft(
            expected_revision=0, monitors=[row.uid], sli=[row.uid], backfill_from=START
        )
        await declare(tx, world.editor, world.project_uid, service.uid, declared, 30)
    world.now = Instant(START + 40 * DAY)
    async with world.pool.transaction("told since") as tx:
        await tx.execute(
            "update shards set rolled_up_through = at(%(at)s), settled_through = at(%(at)s)",
            at=world.now,
        )
        await advance_seals(tx, {service.key: world.now})
    kept = "select count(*) from composite_terms"
    await Away(world).janitor.pass_once()
    assert await world.rows(kept) == [(2,)]
    async with world.pool.transaction("told") as tx:
        await set_materialization_start(tx, service.key, START)
    await Away(world).janitor.pass_once()
    assert await world.rows(kept) == [(1,)]


async def test_push_events_are_kept_as_long_as_heartbeats_and_need_a_monitor(
    world: World,
) -> None:
    row = await world.monitor(type="push")
    for minutes in (0, 3):
        world.now = Instant(START + minutes * MINUTE)
        async with world.pool.transaction("mark") as tx:
            mark = ("start", "", world.now)
            assert await push_events.insert_push_event(tx, row.org, row.id, *mark)
            assert not await push_events.insert_push_event(tx, row.org, row.id + 1, *mark)
            # A second try after a lost answer.
            assert not await push_events.insert_push_event(tx, row.org, row.id, *mark)
    world.now = Instant(START + 4 * DAY + MINUTE)
    await Away(world).janitor.pass_once()
    assert await world.rows("select at from push_events") == [(START + 3 * MINUTE,)]
