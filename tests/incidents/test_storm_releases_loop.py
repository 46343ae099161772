"""Alerts of a storm page in time: after their own delay, and while other leaders or mutes wait."""

from leadline.storage.core.instant import MINUTE, SECOND
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
