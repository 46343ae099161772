"""Alerts of a storm page in time: after their own delay, and while other leaders or mutes wait."""

import pytest
import trio

from leadline.daemon.loops import alert_processor
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.incidents.rules.alert_storm import GATHER_US
from leadline.storage.incidents.rules.answer_link import AnswerAction
from tests.incidents.test_alert_storms_loop import Storm, storm

__all__ = ["storm"]
DELAY = 10 * MINUTE


async def delayed(storm: Storm) -> None:
    """Adds service 2, whose first step is after ten minutes."""
    storm.key = await storm.policy((600, await storm.channel("late")))
    storm.services.append(await storm.service("delayed"))


async def test_an_alert_that_is_not_due_keeps_its_delay(storm: Storm) -> None:
    await delayed(storm)
    (first,) = await storm.alerts(1, 2, after_us=DELAY)
    await storm.later(30 * SECOND)
    await storm.alerts(1, 2, after_us=DELAY)
    await storm.later(DELAY - 30 * SECOND)
    assert await storm.pages() == [("a1", "And 1 more alert of the service.")]
    await storm.answers(first, AnswerAction.RESOLVE)
    await storm.later(29 * SECOND)
    assert len(await storm.pages()) == 1
    await storm.later(SECOND)
    assert [title for title, _ in await storm.pages()] == ["a1", "a2"]


async def test_a_release_does_not_restart_the_delay(storm: Storm) -> None:
    await delayed(storm)
    (first,) = await storm.alerts(1, 2, after_us=DELAY)
    await storm.later(30 * SECOND)
    await storm.alerts(2, 2, after_us=DELAY)
    await storm.later(DELAY - 30 * SECOND)
    await storm.later(30 * SECOND)
    assert await storm.open_and_unpaged() == [("a2", "a1"), ("a3", "a1")]
    await storm.later(MINUTE)
    await storm.answers(first, AnswerAction.RESOLVE)
    await storm.later(GATHER_US)
    assert (await storm.pages())[1:] == [("a2", "And 1 more alert of the service.")]
    assert await storm.open_and_unpaged() == [("a3", "a2")]


async def test_a_mute_of_the_previous_version_starts(storm: Storm) -> None:
    """Its insert names no awaits_start."""
    await storm.alerts(1, team="x")
    await storm.run_pass()
    await storm.mutes(60, "x", after_us=3 * MINUTE)
    async with storm.world.pool.transaction("previous") as tx:
        await tx.execute("update mutes set awaits_start = default")
    await storm.later(MINUTE)
    await storm.alerts(2, team="y")
    await storm.later(2 * MINUTE)
    await storm.later(GATHER_US + 2 * SECOND)
    assert (await storm.pages())[1:] == [("a2", "And 1 more alert of the service.")]


async def test_a_locked_leader_delays_no_page(storm: Storm) -> None:
    (first, *_) = await storm.alerts(2, team="x")
    await storm.run_pass()
    await storm.mutes(60, "x", after_us=MINUTE)
    storm.world.now = Instant(storm.world.now + 2 * MINUTE)
    await storm.alerts(1, service=1)

    async def hold(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with storm.world.pool.transaction("holds") as tx:
            await tx.execute("select from incidents where uid = %(uid)s for update", uid=first)
            task_status.started()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        await nursery.start(hold)
        with trio.fail_after(10):
            await storm.run_pass()
        assert [title for title, _ in await storm.pages()] == ["a1", "a3"]
        assert await storm.world.rows("select awaits_start from mutes") == [(True,)]
        nursery.cancel_scope.cancel()
    await storm.later(2 * SECOND)
    assert await storm.world.rows("select awaits_start from mutes") == [(False,)]


async def test_mutes_that_cannot_be_started_end_no_pass(
    storm: Storm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> int:
        raise ValueError("broken")

    await storm.mutes(60, "x", after_us=MINUTE)
    await storm.later(2 * MINUTE)
    monkeypatch.setattr(alert_processor, "start_due_mutes", fail)
    await storm.mutes(60, "x", after_us=MINUTE)
    storm.world.now = Instant(storm.world.now + 2 * MINUTE)
    await storm.alerts(1)
    await storm.run_pass()
    assert [title for title, _ in await storm.pages()] == ["a1"]
    monkeypatch.undo()
    await storm.later(MINUTE)
    rows = await storm.world.rows("select awaits_start from mutes")
    assert rows == [(False,), (False,)]
