"""The alert processor with concurrent writers: transactions do not deadlock, a row that was locked
is read as its writer committed it, and a locked row does not delay others.
"""

from collections.abc import Sequence

import pytest
import trio

from leadline.daemon.loops import alert_processor as watcher_module
from leadline.storage.alerting.transactions.process_outages import OutageCounts, process_outages
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.world import REGIONS, World

from .test_alert_processor_loop import Story


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


@pytest.mark.parametrize("deletes", [False, True])
async def test_an_onset_and_an_edit_of_its_monitor_do_not_deadlock(
    story: Story, deletes: bool
) -> None:
    world = story.world
    row = await world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    is_held, may_go_on = trio.Event(), trio.Event()

    async def edit() -> None:
        async with world.pool.transaction("edit") as tx:
            # The lock order of the edit itself: the monitor first, the state later.
            await tx.rows("select from monitors where id = %(id)s for update", id=row.id)
            is_held.set()
            await may_go_on.wait()
            if deletes:
                await delete_monitor(tx, world.editor, row.uid)
            else:
                await edit_monitor(
                    tx, world.editor, row.uid, {"name": "Shop"}, world.keyring, REGIONS
                )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit)
        await is_held.wait()
        with trio.fail_after(30):
            await story.run_pass()
        may_go_on.set()
    await story.run_pass()
    titles = [title for title, _, _ in await story.incidents()]
    assert titles == ([] if deletes else ["Shop is down"])


async def test_a_locked_monitor_does_not_delay_others(story: Story) -> None:
    world = story.world
    rows = [await world.monitor() for _ in range(5)]
    await story.channel("ops", *rows)
    for row in rows:
        await story.is_now(row, False)
    async with trio.open_nursery() as nursery:
        is_held, may_go_on = trio.Event(), trio.Event()

        async def stand_still() -> None:
            async with world.pool.transaction("stand_still") as tx:
                await tx.rows(
                    "select from monitor_states where monitor = %(id)s for update", id=rows[2].id
                )
                is_held.set()
                await may_go_on.wait()

        nursery.start_soon(stand_still)
        await is_held.wait()
        with trio.fail_after(30):
            await story.run_pass()
        told = [title for title, _, _ in await story.incidents()]
        assert told == [f"{row.name} is down" for row in rows if row is not rows[2]]
        may_go_on.set()
    await story.run_pass()
    assert len(await story.incidents()) == 5


async def test_a_deleted_monitor_leaves_no_status_change(story: Story) -> None:
    row = await story.world.monitor()
    await story.is_now(row, False)
    async with story.world.pool.transaction("gone") as tx:
        await tx.execute("delete from monitors")
    await story.run_pass()
    assert await story.world.rows("select from status_changes") == []


async def test_failing_monitors_do_not_starve_others(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(6)]
    await story.channel("ops", *rows)
    for row in rows:
        await story.is_now(row, False)
    bad = {(row.org, row.id) for row in rows[:4]}

    async def refusing(
        tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool = True
    ) -> OutageCounts:
        if bad & set(keys):
            raise Rejected("no")
        return await process_outages(tx, keys, is_steady=is_steady)

    monkeypatch.setattr(watcher_module, "process_outages", refusing)
    monkeypatch.setattr(watcher_module, "AT_ONCE", 2)
    await story.run_pass()
    assert len(await story.incidents()) == 2


async def test_requesting_rechecks_does_not_wait_for_decisions(story: Story) -> None:
    world = story.world
    cause = await world.monitor()
    rows = [await world.monitor(depends_on=[cause.uid]) for _ in range(2)]
    await story.is_now(cause, False)
    for row in rows:
        await story.is_now(row, False)
    await story.run_pass()
    assert await story.held() == [None, "dependency", "dependency"]
    async with trio.open_nursery() as nursery:
        is_held, may_go_on = trio.Event(), trio.Event()

        async def decide() -> None:
            async with world.pool.transaction("decide") as tx:
                await tx.rows(
                    "select from outages where monitor = %(id)s for update", id=rows[0].id
                )
                is_held.set()
                await may_go_on.wait()

        nursery.start_soon(decide)
        await is_held.wait()
        await story.is_now(cause, True)
        with trio.fail_after(30):
            await story.run_pass()
        may_go_on.set()
    assert await story.held() == ["dependency", "rechecking"]


async def test_escalation_steps_are_taken_during_a_long_pass(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(10)]
    second = await story.channel("second")
    await story.channel("ops", *rows)
    await story.climbs(rows[0], await story.policy((3, second)))
    for row in rows:
        await story.is_now(row, False)

    def a_second_later() -> None:
        story.world.now = Instant(story.world.now + SECOND)

    monkeypatch.setattr(watcher_module, "AT_ONCE", 1)
    monkeypatch.setattr(story.watcher, "_on_told", a_second_later)
    await story.run_pass()
    sent = [name for name, _ in await story.notifications()]
    assert sent.count("ops") == 10
    # Due after three notifications. A round announces one monitor or two: the scan for states
    # without an outage can find another one than the queue of changes.
    assert 4 <= sent.index("second") <= 7


async def test_a_pass_ends_in_time_with_a_long_backlog(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(5)]
    for row in rows:
        await story.is_now(row, False)
    monkeypatch.setattr(watcher_module, "AT_ONCE", 1)
    monkeypatch.setattr(watcher_module, "PASS_SECONDS", 0)
    for passes in range(1, 6):
        await story.run_pass()
        # The scan for monitors without an outage can find another one than the queue of changes.
        assert passes <= len(await story.incidents()) <= min(2 * passes, 5)
