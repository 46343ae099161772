"""Evaluation of composites: the status from the children, the verdict of a window, and the calls
that a status change inserts.
"""

import random
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import trio

from leadline.daemon.loops.composite_evaluator import CompositeEvaluator, CompositeScheduler
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor_state import NOTHING_YET, fold
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.run_now import run_now
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.world import REGIONS, START, World


class Watch:
    """A world with a ticker, a composite scheduler and a sealer, and the actions of the tests."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.evaluator = CompositeEvaluator(world.pool, Bus())
        self.ticker = Ticker(world.pool, lambda: world.now)
        self.composer = CompositeScheduler(self.evaluator, lambda: world.now)
        self.sealer = MonitorSealer(world.pool, lambda: world.now)

    async def composite(self, children: Sequence[MonitorRow], **given: Any) -> MonitorRow:
        config = {"children": [str(row.uid) for row in children], **given.pop("config", {})}
        values = {"type": "composite", "target": "", "interval_seconds": 60, **given}
        row = await self.world.monitor(config=config, **values)
        # Due on the minute, and not wherever its id would have it.
        async with self.world.pool.transaction("anchor") as tx:
            await tx.execute(
                "update monitor_terms set anchor = at(%(at)s) where monitor = %(monitor)s",
                at=START,
                monitor=row.id,
            )
        return row

    async def is_now(self, row: MonitorRow, up: bool, at: int | None = None) -> None:
        instant = self.world.now if at is None else Instant(at)
        async with self.world.pool.transaction("record") as tx:
            await record_results(tx, [self.world.result(row, instant, up)])

    async def maintain(self, row: MonitorRow, from_: int, until: int) -> None:
        async with self.world.pool.transaction("maintain") as tx:
            await tx.execute(
                "insert into maintenances (org, uid, project, monitor, starts_at, ends_at,"
                " created_at) values (%(org)s, gen_random_uuid(), %(project)s, %(monitor)s,"
                " at(%(from_)s), at(%(until)s), at(%(from_)s))",
                org=self.world.org,
                project=self.world.project,
                monitor=row.id,
                from_=from_,
                until=until,
            )

    async def edit(self, row: MonitorRow, **given: Any) -> None:
        async with self.world.pool.transaction("edit") as tx:
            await edit_monitor(tx, self.world.editor, row.uid, given, self.world.keyring, REGIONS)

    async def go(self, until: int, step_us: int = SECOND) -> None:
        while self.world.now < until:
            self.world.now = Instant(min(self.world.now + step_us, until))
            await self.ticker.pass_once()
            await self.composer.pass_once()

    async def up_and_messages(self, row: MonitorRow) -> list[tuple[bool, str | None]]:
        return [(up, msg) for _, up, msg in await self.world.beats(row)]

    async def calls(self) -> list[tuple[Any, ...]]:
        return await self.world.rows(
            "select monitor, due_at from composite_wakeups order by monitor"
        )


@pytest.fixture
def watch(world: World) -> Watch:
    return Watch(world)


DOWN = (False, "condition_failed")
UP = (True, None)


@pytest.mark.parametrize(
    ("config", "states", "expected"),
    [
        ({}, [True, True, True], UP),
        ({"mode": "all"}, [True, False, None], DOWN),
        ({"mode": "any"}, [True, False, None], UP),
        ({"mode": "any"}, [False, False, False], DOWN),
        ({"mode": "quorum", "quorum": 2}, [True, True, None], UP),
        ({"mode": "quorum", "quorum": 2}, [False, False, True], DOWN),
        ({"mode": "quorum", "quorum": 2}, [True, False, None], None),
        ({"mode": "all"}, [True, True, None], None),
        ({"mode": "any"}, [False, None, None], None),
    ],
)
async def test_the_status_of_a_composite_follows_from_its_children(
    watch: Watch,
    config: dict[str, Any],
    states: list[bool | None],
    expected: tuple[bool, str] | None,
) -> None:
    members = [await watch.world.monitor() for _ in states]
    row = await watch.composite(members, config=config)
    for member, up in zip(members, states, strict=True):
        if up is not None:
            await watch.is_now(member, up)
    await watch.composer.pass_once()
    assert await watch.up_and_messages(row) == ([expected] if expected else [])
    status = "pending" if expected is None else ("up" if expected[0] else "down")
    assert (await watch.world.state(row))[0] == status


async def test_a_due_window_is_answered_by_a_result_at_its_instant(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.is_now(member, True)
    await watch.go(START + 60 * SECOND)
    ((due, verdict, reason),) = await watch.world.ledger(row)
    assert (verdict, reason) == ("covered", None)
    assert due == START + 60 * SECOND
    assert [ts for ts, _, _ in await watch.world.beats(row)] == [START + SECOND, due]
    # The run batch is deleted with its last window, so no work remains.
    assert await watch.world.rows("select 1 from run_batches where kind = 'composite'") == []


async def test_a_window_with_unknown_children_is_withheld_without_a_result(
    watch: Watch,
) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.go(START + 60 * SECOND)
    assert [r[1:] for r in await watch.world.ledger(row)] == [("withheld", "children_unknown")]
    assert await watch.up_and_messages(row) == []


async def test_members_in_maintenance_leave_and_when_all_have_left_it_is_withheld(
    watch: Watch,
) -> None:
    well, sick = await watch.world.monitor(), await watch.world.monitor()
    row = await watch.composite([well, sick])
    await watch.is_now(well, True)
    await watch.is_now(sick, False)
    await watch.maintain(sick, START, START + HOUR)
    await watch.composer.pass_once()
    assert await watch.up_and_messages(row) == [UP]
    await watch.maintain(well, START, START + HOUR)
    await watch.go(START + 60 * SECOND)
    assert [r[1:] for r in await watch.world.ledger(row)] == [("withheld", "maintenance")]
    assert await watch.up_and_messages(row) == [UP]


async def test_a_result_from_before_a_maintenance_is_unknown_after_it(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.is_now(member, True)
    await watch.maintain(member, START + 5 * SECOND, START + 10 * SECOND)
    await watch.go(START + 60 * SECOND)
    assert [r[1:] for r in await watch.world.ledger(row)] == [("withheld", "children_unknown")]


@pytest.mark.parametrize("why", ["stale", "paused"])
async def test_a_stale_or_paused_child_is_unknown(watch: Watch, why: str) -> None:
    member = await watch.world.monitor(interval_seconds=5, timeout_seconds=1)
    row = await watch.composite([member])
    await watch.is_now(member, True)
    if why == "paused":
        await watch.edit(member, enabled=False)
    else:
        watch.world.now = Instant(START + 91 * SECOND)
    await watch.composer.pass_once()
    assert await watch.up_and_messages(row) == []


async def test_a_status_change_of_a_child_evaluates_the_composite_without_a_window(
    watch: Watch,
) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member], interval_seconds=3600, timeout_seconds=10)
    await watch.is_now(member, True)
    await watch.composer.pass_once()
    watch.world.now = Instant(START + 3 * SECOND)
    await watch.is_now(member, False)
    assert await watch.calls() == [(row.id, watch.world.now)]
    await watch.composer.pass_once()
    assert await watch.world.state(row) == ("down", 1)
    assert [ts for ts, _, _ in await watch.world.beats(row)][-1] == watch.world.now
    assert await watch.world.ledger(row) == []
    assert await watch.calls() == []
    # A further failure is not a status change and inserts no call.
    await watch.is_now(member, False, START + 4 * SECOND)
    assert await watch.calls() == []


async def test_a_change_travels_up_through_composites_in_one_pass(watch: Watch) -> None:
    member = await watch.world.monitor()
    rows = [member]
    for _ in range(4):
        rows.append(await watch.composite(rows[-1:]))
    await watch.is_now(member, True)
    await watch.composer.pass_once()
    watch.world.now = Instant(START + 3 * SECOND)
    await watch.is_now(member, False)
    await watch.composer.pass_once()
    assert [(await watch.world.state(row))[0] for row in rows] == ["down"] * 5


async def test_composites_that_are_due_together_are_evaluated_from_below(watch: Watch) -> None:
    """Made in an order that is not that of their numbers."""
    member = await watch.world.monitor()
    top = await watch.composite([member])
    below = await watch.composite([member])
    await watch.edit(top, config={"children": [str(below.uid)]})
    await watch.is_now(member, False)
    await watch.composer.evaluator.evaluate_due(watch.world.now)
    assert (await watch.world.state(below))[0] == "down"
    assert (await watch.world.state(top))[0] == "down"


async def test_its_own_threshold_folds_its_own_results_and_asks_again_soon(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member], failure_threshold=2, confirm_interval_seconds=10)
    await watch.is_now(member, True)
    await watch.composer.pass_once()
    watch.world.now = Instant(START + 2 * SECOND)
    await watch.is_now(member, False)
    await watch.composer.pass_once()
    assert await watch.world.state(row) == ("up", 1)
    assert await watch.calls() == [(row.id, START + 12 * SECOND)]
    await watch.go(START + 12 * SECOND)
    assert await watch.world.state(row) == ("down", 2)
    assert await watch.world.rows("select 1 from jobs where monitor = %(m)s", m=row.id) == []


async def test_a_paused_composite_is_not_evaluated_until_it_is_resumed(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.edit(row, enabled=False)
    await watch.is_now(member, True)
    await watch.go(START + 20 * SECOND)
    assert await watch.up_and_messages(row) == []
    await watch.edit(row, enabled=True)
    await watch.go(START + 23 * SECOND)
    assert await watch.up_and_messages(row) == [UP]


async def test_two_composers_store_one_answer(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.is_now(member, True)
    others = [CompositeEvaluator(watch.world.pool, Bus()) for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for other in others:
            nursery.start_soon(other.evaluate_due, watch.world.now)
    assert await watch.up_and_messages(row) == [UP]
    watch.world.now = Instant(START + 60 * SECOND)
    await watch.ticker.pass_once()
    async with trio.open_nursery() as nursery:
        for other in others:
            nursery.start_soon(other.evaluate_due, watch.world.now)
    assert await watch.up_and_messages(row) == [UP, UP]
    assert [r[1] for r in await watch.world.ledger(row)] == ["covered"]


async def test_the_sealer_settles_unclaimed_windows_after_two_minutes(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member], interval_seconds=300)
    while watch.world.now < START + 10 * MINUTE:
        watch.world.now = Instant(watch.world.now + 10 * SECOND)
        await watch.ticker.pass_once()
        await watch.sealer.pass_once()
    rows = await watch.world.rows(
        "select verdict::text, reason, settled_at, due_at from ledger where monitor = %(m)s",
        m=row.id,
    )
    assert {r[:2] for r in rows} == {("missed", "never_claimed")}
    for _, _, settled, due in rows:
        assert 120 * SECOND <= settled - due < 130 * SECOND


async def test_windows_of_an_outage_are_missed_and_only_the_newest_is_answered(
    watch: Watch,
) -> None:
    member = await watch.world.monitor(interval_seconds=3600)
    row = await watch.composite([member], interval_seconds=60)
    await watch.is_now(member, True)
    watch.world.now = Instant(START + 30 * MINUTE)
    for _ in range(4):
        await watch.ticker.pass_once()
        await watch.composer.pass_once()
        await watch.sealer.pass_once()
        watch.world.now = Instant(watch.world.now + MINUTE)
    sealed = [r for r in await watch.world.ledger(row) if r[0] <= START + 30 * MINUTE]
    assert [r[1:] for r in sealed[:-1]] == [("missed", "never_published")] * 29
    assert sealed[-1][1:] == ("covered", None)
    assert all(b[0] - a[0] == MINUTE for a, b in pairwise(sealed)), "a window has no verdict"


async def test_a_child_cannot_be_deleted_before_its_composite(
    watch: Watch,
) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member], name="Whole")
    with pytest.raises(Refused) as caught:
        async with watch.world.pool.transaction("delete") as tx:
            await delete_monitor(tx, watch.world.editor, member.uid)
    assert caught.value.code == "in_use"
    assert "whole" in caught.value.message
    for one in (row, member):
        async with watch.world.pool.transaction("delete") as tx:
            await delete_monitor(tx, watch.world.editor, one.uid)
    assert await watch.calls() == []
    await watch.go(START + 60 * SECOND)


async def test_asking_for_a_run_calls_for_it(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    await watch.composer.pass_once()
    await watch.is_now(member, True)
    await watch.composer.pass_once()
    for _ in range(2):
        async with watch.world.pool.transaction("run_now") as tx:
            asked = await run_now(tx, watch.world.editor, row.uid)
        assert asked.key == (row.org, row.id)
    assert await watch.calls() == [(row.id, watch.world.now)]


async def refused(watch: Watch, **config: Any) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        await watch.world.monitor(type="composite", target="", config=config)
    return caught.value.code, caught.value.field


async def test_children_are_monitors_of_the_project_and_never_itself(watch: Watch) -> None:
    one, two = await watch.world.monitor(), await watch.world.monitor()
    stranger = "01a2000c-bd9e-7434-a37d-ed5e6a7d2c6d"
    assert await refused(watch, children=[stranger]) == ("invalid", "config.children")
    assert await refused(watch) == ("invalid", "config.children")
    assert await refused(watch, children=[]) == ("invalid", "config.children")
    assert await refused(watch, children=[str(one.uid)] * 2) == ("invalid", "config.children")
    ids = [str(one.uid), str(two.uid)]
    assert await refused(watch, children=ids, mode="most") == ("invalid", "config.mode")
    assert await refused(watch, children=ids, mode="quorum") == ("invalid", "config.quorum")
    for quorum in (0, 3, -1):
        assert (await refused(watch, children=ids, mode="quorum", quorum=quorum))[1] == (
            "config.quorum"
        )
    assert await refused(watch, children=ids, quorum=1) == ("invalid", "config.quorum")
    row = await watch.composite([one])
    for chain in range(2):
        inner = row if not chain else await watch.composite([row])
        with pytest.raises(Refused, match=r"config\.children: must not lead back"):
            await watch.edit(row, config={"children": [str(one.uid), str(inner.uid)]})


async def test_composites_are_at_most_ten_levels_deep_whichever_end_is_added(
    watch: Watch,
) -> None:
    rows = [await watch.world.monitor()]
    for _ in range(10):
        rows.append(await watch.composite(rows[-1:]))
    with pytest.raises(Refused, match=r"config\.children: must not be more than 10 levels"):
        await watch.composite(rows[-1:])
    below = await watch.composite(rows[:1])
    with pytest.raises(Refused, match=r"config\.children: must not be more than 10 levels"):
        await watch.edit(rows[1], config={"children": [str(below.uid)]})


async def test_children_given_as_text_are_stored_as_a_list(watch: Watch) -> None:
    one, two = await watch.world.monitor(), await watch.world.monitor()
    row = await watch.world.monitor(
        type="composite", target="", config={"children": f" {one.uid}, {str(two.uid).upper()}"}
    )
    ((config,),) = await watch.world.rows("select config from monitors where id = %(m)s", m=row.id)
    assert config == {"children": [str(one.uid), str(two.uid)], "mode": "all"}
    made = await watch.world.rows("select mode, children from composite_terms")
    assert made == [("all", [one.id, two.id])]


async def test_an_edit_of_anything_else_begins_no_new_composition(watch: Watch) -> None:
    member = await watch.world.monitor()
    row = await watch.composite([member])
    watch.world.now = Instant(START + MINUTE)
    await watch.edit(row, name="Other", config={"children": [str(member.uid)], "mode": "all"})
    assert await watch.world.rows("select from_at from composite_terms") == [(START,)]


async def test_concurrent_edits_do_not_create_a_cycle(watch: Watch) -> None:
    """The composites are in two regions, so the lock of a shard does not serialize the edits."""
    member = await watch.world.monitor()
    one = await watch.composite([member])
    two = await watch.composite([member], region="eu")
    refusals = []

    async def edit(row: MonitorRow, child: MonitorRow) -> None:
        try:
            await watch.edit(row, config={"children": [str(child.uid)]})
        except Refused as refusal:
            refusals.append(refusal.field)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit, one, two)
        nursery.start_soon(edit, two, one)
    assert refusals == ["config.children"]


async def test_concurrent_edits_evaluations_and_results_leave_consistent_states(
    watch: Watch,
) -> None:
    """Two evaluators, two recorders and an editor take locks in one order or repeat the
    transaction.
    """
    chance, world = random.Random(5), watch.world
    leaves = [await world.monitor(interval_seconds=5, timeout_seconds=2) for _ in range(4)]
    rows: list[MonitorRow] = []
    for n in range(8):
        given = {"failure_threshold": 3, "confirm_interval_seconds": 5, "interval_seconds": 5}
        config = {"mode": "any" if n % 2 else "all"}
        below = chance.sample([*leaves, *rows[:4]], 3)
        rows.append(await watch.composite(below, **given, timeout_seconds=5, config=config))
    busy = 3

    async def edited(row: MonitorRow, given: dict[str, Any], tx: Tx) -> MonitorRow:
        return await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)

    async def edit() -> None:
        nonlocal busy
        for _ in range(100):
            place = chance.randrange(len(rows))
            below = chance.sample([*leaves, *rows[: min(place, 4)]], 2)
            given = {"config": {"children": [str(row.uid) for row in below]}}
            await world.pool.transact("edit", partial(edited, rows[place], given))
        busy -= 1

    async def record() -> None:
        nonlocal busy
        for _ in range(100):
            world.now = Instant(world.now + SECOND // 5)
            results = [
                world.result(leaf, world.now, chance.random() < 0.5)
                for leaf in chance.sample(leaves, 2)
            ]
            await world.pool.transact("record", partial(record_results, arrivals=results))
        busy -= 1

    async def evaluate() -> None:
        evaluator = CompositeEvaluator(world.pool, Bus())
        while busy:
            await watch.ticker.pass_once()
            await evaluator.evaluate_due(world.now)

    async with trio.open_nursery() as nursery:
        for work in (edit, record, record, evaluate, evaluate):
            nursery.start_soon(work)
    folded = 0
    for row in rows:
        state = NOTHING_YET
        for ts, up, _ in await world.beats(row):
            state = fold(state, up, ts, 3)
            folded += 1
        assert await world.state(row) == (state.status, state.failures)
    assert folded > 0, "no composite was evaluated"
