"""Reservation during edits: every window is reserved once, under the terms that were committed."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.janitor import EDITS_KEPT_US
from leadline.daemon.loops.schedule_ticker import AHEAD_US, Ticker
from leadline.storage.accounts.queries.projects import select_project
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.core.time_span import TimeSpan, merged
from leadline.storage.engine.pools import Conflicted, Tx
from leadline.storage.maintenance.tables import maintenances
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, announce, end
from leadline.storage.monitors.queries.monitors import select_monitor
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor import MonitorDraft, MonitorType, manner_of
from leadline.storage.monitors.tables.monitors import lock_monitors_of, select_monitors_by_key
from leadline.storage.monitors.transactions.create_monitor import create_held
from leadline.storage.monitors.transactions.edit_monitor import edit_held, edit_monitor
from leadline.storage.monitors.transactions.write_batch import MonitorWriteBatch
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.scheduling.rules.maintenance_window import withholds
from leadline.storage.scheduling.rules.run_schedule import RunWindow, windows
from leadline.storage.scheduling.rules.schedule_plan import SchedulePlan
from leadline.storage.scheduling.tables import schedule_edits, work_queues
from leadline.storage.scheduling.tables import shards as schedules
from leadline.storage.scheduling.transactions.reserve_windows import (
    EDITED_UNDER_LOCK_MOST,
    apply_edits_early,
    load_plan,
    reserve_windows,
    select_newest_edit,
)
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import REGIONS, START, World

Work = Callable[[], Awaitable[object]]
# The key of the maintenance of the whole project.
ALL = 0


async def edit(world: World, row: MonitorRow, **given: Any) -> None:
    async def work(tx: Tx) -> None:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)

    await world.pool.transact("edit", work)


async def remove(world: World, row: MonitorRow) -> None:
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, row.uid)


async def shard_of(world: World, region: str = "core") -> int:
    async with world.pool.transaction("shard", read_only=True) as tx:
        found = await schedules.select_shard_id(tx, 0, region)
    assert found is not None
    return found


async def plan_of(world: World, shard: int) -> SchedulePlan:
    async with world.pool.transaction("newest") as tx:
        newest = await select_newest_edit(tx, shard)
    async with world.pool.transaction("load", read_only=True) as tx:
        plan = await load_plan(tx, shard, newest)
    assert plan is not None
    return plan


async def reserved_through(world: World) -> Instant:
    ((through,),) = await world.rows("select reserved_through from shards")
    return Instant(through)


async def reserved(world: World) -> Counter[tuple[int, int, Instant]]:
    """Counts the reserved windows that are to be run, by (shard, monitor, due)."""
    rows = await world.rows(
        "select shard, monitor, due from run_batches, unnest(monitors, due_ats) as w(monitor, due)"
    )
    return Counter(tuple(row) for row in rows)


async def expected(world: World, row: MonitorRow) -> list[RunWindow]:
    """The windows that the terms of a monitor make due, up to the reserved instant of each
    shard."""
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = (await schedules.select_terms_of(tx, [row.key]))[row.key]
    through = dict(await world.rows("select id, reserved_through from shards"))
    found = windows(terms, terms[0].from_, max(through.values()))
    return [window for window in found if window.due <= through[window.term.shard]]


class Crowd:
    """Edits of every kind by several concurrent editors, while two schedulers reserve windows."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.rows: list[MonitorRow] = []
        self.deleted: set[int] = set()
        self.maintenance: dict[int, list[TimeSpan]] = {}
        self.bundles = self.conflicts = 0

    async def run(self, tickers: list[Ticker], rounds: int) -> None:
        for _ in range(4):
            await self._create()
        await self._create(type="push", region="eu")
        async with trio.open_nursery() as reserving:
            for ticker in tickers:
                reserving.start_soon(self._reserve, ticker)
            async with trio.open_nursery() as editing:
                for _ in range(3):
                    editing.start_soon(self._edit, rounds)
                editing.start_soon(self._apply_bundles, rounds // 4)
                editing.start_soon(self._move_clock, rounds)
            reserving.cancel_scope.cancel()
        self.world.now = Instant(self.world.now + MINUTE)
        await tickers[0].pass_once()

    async def _create(self, **given: Any) -> None:
        self.rows.append(await self.world.monitor(interval_seconds=5, timeout_seconds=5, **given))

    async def _reserve(self, ticker: Ticker) -> None:
        while True:
            await ticker.pass_once()
            await trio.sleep(0.003)

    async def _move_clock(self, rounds: int) -> None:
        for _ in range(rounds):
            self.world.now = Instant(self.world.now + self.chance.randrange(1_500_000))
            await trio.sleep(0.01)

    async def _edit(self, rounds: int) -> None:
        for _ in range(rounds):
            row = self.chance.choice(self.rows)
            kind = self.chance.random()
            try:
                if kind < 0.1:
                    await self._create()
                elif kind < 0.15 and len(self.rows) > 4:
                    self.deleted.add(row.id)
                    await remove(self.world, row)
                elif kind < 0.2:
                    await self._announce(row)
                else:
                    await edit(self.world, row, **self._change())
            except Refused:
                # Another editor has just deleted it.
                if row.id not in self.deleted:
                    raise

    def _change(self) -> dict[str, Any]:
        return self.chance.choice(
            [
                {"region": "core"},
                {"region": "eu"},
                {"enabled": True},
                {"enabled": False},
                {"name": "another"},
                {"interval_seconds": 5},
                {"interval_seconds": 7},
                {"interval_seconds": 15},
            ]
        )

    async def _announce(self, row: MonitorRow) -> None:
        """Announces a maintenance of a monitor or of the whole project, later than any reserved
        window."""
        starts = Instant(self.world.now + MINUTE)
        of_project = self.chance.random() < 0.3
        monitor = None if of_project else row.uid
        plan = Plan(starts_at=starts, ends_at=Instant(starts + 10 * SECOND), monitor=monitor)
        try:
            async with self.world.pool.transaction("announce") as tx:
                await announce(tx, self.world.editor, self.world.project_uid, plan, None, 30)
        except Refused:
            assert row.id in self.deleted
        else:
            key = ALL if of_project else row.id
            self.maintenance.setdefault(key, []).append(TimeSpan(starts, plan.ends_at))

    def maintenance_of(self, row: MonitorRow) -> list[TimeSpan]:
        return merged([*self.maintenance.get(ALL, ()), *self.maintenance.get(row.id, ())])

    async def _apply_bundles(self, rounds: int) -> None:
        for _ in range(rounds):
            there = [row for row in self.rows if row.id not in self.deleted]
            chosen = self.chance.sample(there, min(3, len(there)))
            change = {row.id: self._change() for row in chosen}
            try:
                await self.world.pool.transact("bundle", partial(self._bundle, change), attempts=20)
                self.bundles += 1
            except Conflicted:
                self.conflicts += 1
            await trio.sleep(0.01)

    async def _bundle(self, change: dict[int, dict[str, Any]], tx: Tx) -> None:
        world = self.world
        for region in sorted(REGIONS):
            await schedules.ensure_shard(tx, 0, region, tx.now)
        await lock_monitors_of(tx, world.org, change)
        rows = await select_monitors_by_key(tx, [row.key for row in self.rows if row.id in change])
        tx.holds_all()
        together = MonitorWriteBatch(world.editor)
        for row in rows.values():
            await edit_held(tx, together, row, change[row.id], world.keyring, REGIONS)
        await together.write_ahead(tx)
        await trio.sleep(self.chance.random() * 0.02)
        await together.publish(tx)


@pytest.mark.parametrize("seed", range(3))
async def test_each_window_is_reserved_once_during_edits_of_every_kind(
    world: World, seed: int
) -> None:
    crowd = Crowd(world, seed)
    await crowd.run([Ticker(world.pool, lambda: world.now) for _ in range(2)], rounds=80)
    assert crowd.bundles > crowd.conflicts
    to_run = await reserved(world)
    assert not [window for window, count in to_run.items() if count > 1]
    for row in crowd.rows:
        if row.id in crowd.deleted:
            continue
        due = await expected(world, row)
        ledger = await world.ledger(row)
        withheld = {at for at, verdict, _ in ledger if verdict == "withheld"}
        ours = sorted((at, shard) for shard, monitor, at in to_run if monitor == row.id)
        assert ours == sorted((w.due, w.term.shard) for w in due if w.due not in withheld)
        assert withheld <= {window.due for window in due}
        manner = manner_of(MonitorType(row.type))
        for window in due:
            if row.type != "push":
                spared = not window.term.enabled or withholds(
                    window, manner, crowd.maintenance_of(row)
                )
                assert (window.due in withheld) == spared, (row.id, window)


async def test_reservation_waits_for_an_edit_and_reserves_by_its_terms(world: World) -> None:
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()
    world.now = Instant(START + MINUTE)
    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("edit") as tx:
            await edit_monitor(
                tx, world.editor, row.uid, {"enabled": False}, world.keyring, REGIONS
            )
            nursery.start_soon(ticker.pass_once)
            await until_blocked(world.pool)
    due = [window.due for window in await expected(world, row)]
    assert len(due) >= 12
    first = await reserved(world)
    assert all(at <= START + MINUTE for _, _, at in first), "a window after the edit is reserved"


async def test_an_edit_waits_for_reservation_and_begins_where_it_ends(world: World) -> None:
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    shard = await shard_of(world)
    plan = await plan_of(world, shard)
    world.now = Instant(START + MINUTE)
    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("reserve") as tx:
            step = await reserve_windows(tx, plan, Instant(world.now), None)
            assert step is not None
            nursery.start_soon(lambda: edit(world, row, interval_seconds=60))
            await until_blocked(world.pool)
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = (await schedules.select_terms_of(tx, [row.key]))[row.key]
    assert terms[-1].from_ == step.through == START + MINUTE


async def test_an_edit_that_commits_after_a_later_one_is_applied(world: World) -> None:
    first = await world.monitor(interval_seconds=5, timeout_seconds=5)
    second = await world.monitor(interval_seconds=5, timeout_seconds=5)
    shard = await shard_of(world)
    plan = await plan_of(world, shard)
    async with world.pool.transaction("edit") as tx:
        given = {"interval_seconds": 60}
        await edit_monitor(tx, world.editor, first.uid, given, world.keyring, REGIONS)
        await edit_in_another_task(world, second)
        await in_another_task(lambda: apply_early(world, plan))
    assert len(plan.applied_early) == 1
    assert plan.monitors[first.id].terms[-1].interval_us == 5 * SECOND
    async with world.pool.transaction("reserve") as tx:
        await reserve_windows(tx, plan, Instant(START + AHEAD_US), None)
    assert plan.monitors[first.id].terms[-1].interval_us == MINUTE
    assert plan.monitors[second.id].terms[-1].interval_us == MINUTE
    assert not plan.applied_early


async def edit_in_another_task(world: World, row: MonitorRow) -> None:
    await in_another_task(lambda: edit(world, row, interval_seconds=60))


async def in_another_task(work: Work) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)


async def apply_early(world: World, plan: SchedulePlan) -> bool:
    async with world.pool.transaction("early", read_only=True) as tx:
        return await apply_edits_early(tx, plan)


async def test_a_scheduler_that_was_away_loads_the_plan_again(world: World) -> None:
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()
    await edit(world, row, enabled=False)
    world.now = Instant(START + EDITS_KEPT_US + MINUTE)
    async with world.pool.transaction("purge") as tx:
        await schedule_edits.delete_edits(tx, Instant(world.now - EDITS_KEPT_US))
    assert await world.rows("select from schedule_edits") == []
    shard = await shard_of(world)
    assert not await apply_early(world, ticker._plans[shard])
    await ticker.pass_once()
    assert all(at <= START + AHEAD_US for _, _, at in await reserved(world))
    async with world.pool.transaction("newest") as tx:
        newest = await select_newest_edit(tx, shard)
    assert newest > 0, "a new plan begins after what was deleted"
    assert ticker._plans[shard].edits_through == newest


async def test_many_edited_monitors_are_read_before_the_lock_is_taken(world: World) -> None:
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    shard = await shard_of(world)
    plan = await plan_of(world, shard)
    async with world.pool.transaction("log") as tx:
        await schedule_edits.lock_edits(tx, [shard])
        await schedule_edits.insert_edits(tx, {shard: [row.key] * (EDITED_UNDER_LOCK_MOST + 1)})
    ahead = Instant(START + AHEAD_US)
    async with world.pool.transaction("reserve") as tx:
        assert await reserve_windows(tx, plan, ahead, None, at_any_cost=False) is None
    assert await apply_early(world, plan)
    async with world.pool.transaction("reserve") as tx:
        step = await reserve_windows(tx, plan, ahead, None, at_any_cost=False)
    assert step is not None
    assert step.through == ahead


async def test_a_plan_has_the_result_mode_of_each_monitor_type(world: World) -> None:
    given: dict[str, dict[str, Any]] = {
        "http": {},
        "tcp": {"target": "127.0.0.1:1"},
        "push": {},
    }
    for kind, values in given.items():
        await world.monitor(type=kind, **values)
    child = world.made[0]
    config = {"mode": "all", "children": [str(child.uid)]}
    await world.monitor(type="composite", target="", config=config)
    plan = await plan_of(world, await shard_of(world))
    for row in world.made:
        planned = plan.monitors[row.id]
        assert planned.manner is manner_of(MonitorType(row.type))
        assert not planned.is_canary


async def announce_of_project(world: World, length_us: int) -> Any:
    starts = Instant(world.now + 10 * SECOND)
    plan = Plan(starts_at=starts, ends_at=Instant(starts + length_us))
    async with world.pool.transaction("announce") as tx:
        return await announce(tx, world.editor, world.project_uid, plan, None, 30)


async def create_without_lock(world: World) -> MonitorRow:
    home, uid = await home_of(world), uuid7()
    fields: dict[str, Any] = {"interval_seconds": 5, "timeout_seconds": 5}
    draft = MonitorDraft(name="new", type="http", target="http://127.0.0.1/", **fields)
    async with world.pool.transaction("create") as tx:
        shard = await schedules.ensure_shard(tx, 0, "core", tx.now)
        together = MonitorWriteBatch(world.editor)
        await create_held(tx, together, home, draft, world.keyring, uid, shard)
        await together.flush(tx)
        row = await select_monitor(tx, uid)
    assert row is not None
    return row


@pytest.fixture
def created_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> list[MonitorRow]:
    """A monitor that is created, and reserved for, after a maintenance has read what it covers.

    The end of a maintenance and the next window of a series do not lock the project, so a creation
    can overlap them. The creation here omits the lock, since an announcement in a test has it.
    """
    found: list[MonitorRow] = []
    ticker = Ticker(world.pool, lambda: world.now)
    select_covered = maintenances.select_covered

    async def covered(tx: Tx, *args: Any) -> Any:
        rows = await select_covered(tx, *args)

        async def create() -> None:
            found.append(await create_without_lock(world))
            await ticker.pass_once()

        await in_another_task(create)
        return rows

    monkeypatch.setattr(maintenances, "select_covered", covered)
    return found


async def test_a_monitor_created_during_a_pass_has_the_maintenance_of_its_project(
    world: World, created_meanwhile: list[MonitorRow]
) -> None:
    ticker = Ticker(world.pool, lambda: world.now)
    await world.monitor(interval_seconds=5, timeout_seconds=5)
    await ticker.pass_once()
    row = await announce_of_project(world, 5 * MINUTE)
    world.now = Instant(row.starts_at + 2 * MINUTE)
    await ticker.pass_once()
    (made,) = created_meanwhile
    to_run = [at for _, monitor, at in await reserved(world) if monitor == made.id]
    assert [at for at in to_run if at > row.starts_at] == []
    withheld = {(verdict, reason) for _, verdict, reason in await world.ledger(made)}
    assert withheld == {("withheld", "maintenance")}


async def test_a_monitor_created_during_a_pass_runs_after_the_end_of_a_maintenance(
    world: World, created_meanwhile: list[MonitorRow]
) -> None:
    ticker = Ticker(world.pool, lambda: world.now)
    await world.monitor(interval_seconds=5, timeout_seconds=5)
    row = await announce_of_project(world, 60 * MINUTE)
    created_meanwhile.clear()
    world.now = Instant(row.starts_at + MINUTE)
    await ticker.pass_once()
    async with world.pool.transaction("end") as tx:
        await end(tx, world.editor, row.uid)
    ended = Instant(world.now + AHEAD_US)
    world.now = Instant(ended + 5 * MINUTE)
    await ticker.pass_once()
    made = created_meanwhile[0]
    late = [at for at, verdict, _ in await world.ledger(made) if verdict == "withheld"]
    assert [at for at in late if at > ended] == []


async def test_a_bundle_moves_no_term_of_another_bundle(world: World) -> None:
    """Both write terms at one cursor, and reservation passes them before the second commits."""
    row = await world.monitor(interval_seconds=60)
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()

    async def bundle(given: dict[str, Any], meanwhile: Work | None) -> None:
        async with world.pool.transaction("bundle") as tx:
            await lock_monitors_of(tx, world.org, [row.id])
            found = await select_monitors_by_key(tx, [row.key])
            tx.holds_all()
            together = MonitorWriteBatch(world.editor)
            await edit_held(tx, together, found[row.key], given, world.keyring, REGIONS)
            await together.write_ahead(tx)
            if meanwhile is not None:
                await in_another_task(meanwhile)
            await together.publish(tx)

    async def pass_time() -> None:
        for _ in range(40):
            world.now = Instant(world.now + SECOND)
            await ticker.pass_once()

    await bundle({"interval_seconds": 5, "timeout_seconds": 5}, None)
    await bundle({"interval_seconds": 30, "timeout_seconds": 5}, pass_time)
    await pass_time()
    ours = sorted(at for _, monitor, at in await reserved(world) if monitor == row.id)
    assert ours == [window.due for window in await expected(world, row)]


async def test_an_edit_that_waits_for_an_extra_run_does_not_delay_reservation(
    world: World,
) -> None:
    row = await world.monitor(interval_seconds=60)
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()
    world.now = Instant(world.now + MINUTE)
    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("resume_after_maintenance") as tx:
            until = Instant(tx.now + MINUTE)
            await work_queues.add_extra_runs(tx, row.org, [row.id], tx.now, until)
            given = {"interval_seconds": 30, "target": "http://127.0.0.1/x"}
            nursery.start_soon(lambda: edit(world, row, **given))
            await until_blocked(world.pool)
            await in_another_task(ticker.pass_once)
    assert await reserved_through(world) == world.now + AHEAD_US


@pytest.mark.parametrize("through_us", [0, 500_000, 20 * SECOND])
async def test_terms_of_a_bundle_begin_after_what_is_reserved(
    world: World, through_us: int
) -> None:
    """Reservation continues between the writing of the terms and their publication."""
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    await Ticker(world.pool, lambda: world.now).pass_once()
    home = await home_of(world)
    async with world.pool.transaction("bundle") as tx:
        shard = await schedules.ensure_shard(tx, 0, "core", tx.now)
        together = MonitorWriteBatch(world.editor)
        draft = MonitorDraft(name="new", type="http", target="http://127.0.0.1/")
        tx.holds_all()
        await create_held(tx, together, home, draft, world.keyring, uid := uuid7(), shard)
        await together.write_ahead(tx)
        world.now = Instant(world.now + through_us)
        await in_another_task(Ticker(world.pool, lambda: world.now).pass_once)
        await together.publish(tx)
    async with world.pool.transaction("look", read_only=True) as tx:
        new = await select_monitor(tx, uid)
        assert new is not None
        terms = await schedules.select_terms_of(tx, [new.key, row.key])
    through = await reserved_through(world)
    assert terms[new.key][0].from_ > through
    assert terms[new.key][0].from_ <= through + 2 * SECOND


async def test_a_bundle_that_reservation_overtakes_is_refused_under_the_lock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last check is made under the lock, so a term never begins in reserved time."""
    row = await world.monitor(interval_seconds=5, timeout_seconds=5)
    await Ticker(world.pool, lambda: world.now).pass_once()

    async def not_moved(_batch: MonitorWriteBatch, _tx: Tx) -> None:
        world.now = Instant(world.now + MINUTE)
        await in_another_task(Ticker(world.pool, lambda: world.now).pass_once)

    monkeypatch.setattr(MonitorWriteBatch, "_keep_ahead", not_moved)

    async def bundle(tx: Tx) -> None:
        together = MonitorWriteBatch(world.editor)
        tx.holds_all()
        await edit_held(tx, together, row, {"interval_seconds": 10}, world.keyring, REGIONS)
        await together.write_ahead(tx)
        await together.publish(tx)

    with pytest.raises(Conflicted, match="passed the terms"):
        await world.pool.transact("bundle", bundle, attempts=1)


async def home_of(world: World) -> Any:
    async with world.pool.transaction("home", read_only=True) as tx:
        home = await select_project(tx, world.project_uid)
    assert home is not None
    return home


async def test_one_pass_reaches_the_end_while_editors_never_stop(world: World) -> None:
    await world.monitor(interval_seconds=5, timeout_seconds=5)
    rows = [await world.monitor(interval_seconds=60) for _ in range(3)]
    ticker = Ticker(world.pool, lambda: world.now)
    world.now = Instant(START + 10 * MINUTE)
    at_work = [trio.Event() for _ in rows]

    async def edit_without_pause(row: MonitorRow, begun: trio.Event) -> None:
        while True:
            for seconds in (30, 60):
                await edit(world, row, interval_seconds=seconds)
                begun.set()

    async with trio.open_nursery() as nursery:
        for row, begun in zip(rows, at_work, strict=True):
            nursery.start_soon(edit_without_pause, row, begun)
        for begun in at_work:
            await begun.wait()
        await ticker.pass_once()
        assert await reserved_through(world) == world.now + AHEAD_US
        nursery.cancel_scope.cancel()


async def test_lag_grows_while_reservation_is_blocked(world: World) -> None:
    await world.monitor()
    ticker = Ticker(world.pool, lambda: world.now)
    world.now = Instant(world.now + 7 * SECOND)
    assert ticker.lag_us() == 7 * SECOND, "no pass has ended yet"
    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("blocking") as tx:
            await schedule_edits.lock_edits(tx, [await in_task(shard_of, world)])
            nursery.start_soon(ticker.pass_once)
            await until_blocked(world.pool)
            behind = ticker.lag_us()
            world.now = Instant(world.now + 3 * SECOND)
            assert ticker.lag_us() == behind + 3 * SECOND
    await ticker.pass_once()
    assert ticker.lag_us() == 0


async def in_task(work: Callable[[World], Awaitable[int]], world: World) -> int:
    """The result of another task, because a task that has a connection must not request a second
    one."""
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await work(world))

    await in_another_task(ask)
    return answers[0]


async def test_concurrent_monitors_of_one_name_get_different_slugs(world: World) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(lambda: world.monitor(name="The same"))
    slugs = {row.slug for row in world.made}
    assert slugs == {"the-same", *(f"the-same-{n}" for n in range(2, 7))}


async def test_two_concurrent_edits_do_not_create_a_cycle(world: World) -> None:
    one, other = await world.monitor(), await world.monitor()
    refused: list[str] = []

    async def depend(row: MonitorRow, on: MonitorRow) -> None:
        try:
            await edit(world, row, depends_on=[on.uid])
        except Refused as error:
            refused.append(str(error.field))

    for _ in range(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(depend, one, other)
            nursery.start_soon(depend, other, one)
        assert refused == ["depends_on"]
        refused.clear()
        await edit(world, one, depends_on=[])
        await edit(world, other, depends_on=[])


async def test_a_monitor_that_becomes_a_dependency_is_not_deleted(world: World) -> None:
    wanted = await world.monitor()
    codes: list[str] = []

    async def delete() -> None:
        try:
            await remove(world, wanted)
        except Refused as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("create") as tx:
            draft = MonitorDraft(
                name="new", type="http", target="http://127.0.0.1/", depends_on=[wanted.uid]
            )
            home = await home_in_task(world)
            shard = await schedules.ensure_shard(tx, 0, "core", tx.now)
            together = MonitorWriteBatch(world.editor)
            await create_held(tx, together, home, draft, world.keyring, uuid7(), shard)
            nursery.start_soon(delete)
            await until_blocked(world.pool)
            await together.flush(tx)
    assert codes == ["in_use"]


async def home_in_task(world: World) -> Any:
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await home_of(world))

    await in_another_task(ask)
    return answers[0]
