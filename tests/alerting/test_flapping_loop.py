"""A flapping monitor sends one alert, one recovery when it settled, and hides no outage."""

import random

import pytest

from leadline.storage.alerting.queries.flapping import select_flapping
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.tables import incidents
from leadline.storage.incidents.transactions.write_incident import IncidentEntry, write_entry
from leadline.storage.monitors.rows import MonitorRow
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.world import World

DOWN, UP, STILL = "monitor.down", "monitor.recovered", "monitor.reminder"


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def flapping(story: Story, threshold: int = 3) -> MonitorRow:
    """A monitor without incidents that has just become flapping, and is down."""
    row = await story.world.monitor(
        name="Shop", flap_threshold=threshold, auto_incident=False, interval_seconds=3_600
    )
    await story.channel("ops", row)
    for number in range(threshold):
        await story.is_now(row, False)
        await story.run_pass()
        if number < threshold - 1:
            await story.is_now(row, True)
            await story.run_pass()
        story.world.now = Instant(story.world.now + MINUTE)
    return row


async def events(story: Story) -> list[str]:
    return [event for _, event in await story.notifications()]


async def jump(story: Story, us: int) -> None:
    story.world.now = Instant(story.world.now + us)
    await story.run_pass()


async def test_it_is_announced_once_and_recovers_when_it_settled(story: Story) -> None:
    row = await flapping(story)
    before = [DOWN, UP, DOWN, UP, DOWN]
    assert await events(story) == before
    for _ in range(4):
        await story.is_now(row, True)
        await story.run_pass()
        await jump(story, 5 * MINUTE)
        await story.is_now(row, False)
        await story.run_pass()
        await jump(story, 5 * MINUTE)
    assert await story.world.state(row) == ("down", 1)
    async with story.world.pool.transaction("look", read_only=True) as tx:
        assert row.key in await select_flapping(tx, [row.key])
    await story.is_now(row, True)
    up_at = story.world.now
    await story.run_pass()
    assert await events(story) == before
    await jump(story, 15 * MINUTE - SECOND)
    assert await events(story) == before
    await jump(story, 2 * SECOND)
    assert await events(story) == [*before, UP]
    ((ended,),) = await story.world.rows(
        "select ended_at from outages order by began_at desc limit 1"
    )
    assert ended == up_at
    async with story.world.pool.transaction("look", read_only=True) as tx:
        assert await select_flapping(tx, [row.key]) == {}
    # The count begins again.
    await story.is_now(row, False)
    await story.run_pass()
    await story.is_now(row, True)
    await story.run_pass()
    assert await events(story) == [*before, UP, DOWN, UP]


async def test_an_outage_that_lasts_is_announced_again_within_the_bound(story: Story) -> None:
    row = await flapping(story)
    before = await events(story)
    await story.is_now(row, True)
    await story.run_pass()
    await story.is_now(row, False)
    await story.run_pass()
    assert await events(story) == before
    await jump(story, 15 * MINUTE + SECOND)
    assert await events(story) == [*before, STILL]
    # It has settled: the recovery is sent at once.
    await story.is_now(row, True)
    await story.run_pass()
    assert await events(story) == [*before, STILL, UP]


async def test_a_resolved_incident_ends_the_alert(story: Story) -> None:
    row = await story.world.monitor(name="Shop", flap_threshold=2, interval_seconds=3_600)
    await story.channel("ops", row)
    for up in (False, True, False, True):
        await story.is_now(row, up)
        await story.run_pass()
    found = [status for _, status, _ in await story.incidents()]
    assert found == ["resolved", "investigating"]
    async with story.world.pool.transaction("resolve") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body="Mended.", public=None, author=None
        )
        await write_entry(tx, incident, entry)
    await story.is_now(row, False)
    await story.run_pass()
    statuses = [status for _, status, _ in await story.incidents()]
    assert statuses == ["resolved", "resolved", "investigating"], "a new outage is announced"


async def test_the_first_flapping_outage_is_announced_again_if_it_lasts(story: Story) -> None:
    await flapping(story)
    before = await events(story)
    await jump(story, 13 * MINUTE)
    assert await events(story) == before
    await jump(story, 2 * MINUTE)
    assert await events(story) == [*before, STILL]
    await jump(story, 20 * MINUTE)
    assert await events(story) == [*before, STILL]


async def test_a_lasting_outage_is_escalated_again_although_acknowledged(story: Story) -> None:
    row = await story.world.monitor(name="Shop", flap_threshold=2, interval_seconds=3_600)
    ops = await story.channel("ops")
    await story.climbs(row, await story.policy((0, ops), (300, ops)))
    for up in (False, True, False):
        await story.is_now(row, up)
        await story.run_pass()
    async with story.world.pool.transaction("acknowledge") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        await incidents.acknowledge_incident(tx, incident, None, "Mara")
    acknowledged_at = story.world.now
    for up in (True, False):
        await jump(story, MINUTE)
        await story.is_now(row, up)
        await story.run_pass()
    before = await events(story)
    await jump(story, 15 * MINUTE)
    assert (await events(story))[len(before) :] == ["incident.escalated"]
    await jump(story, 5 * MINUTE)
    assert (await events(story))[len(before) :] == ["incident.escalated"] * 2
    async with story.world.pool.transaction("look") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
    assert incident is not None
    assert not incident.is_acknowledged
    assert (incident.acknowledged_at, incident.acknowledged_label) == (acknowledged_at, "Mara")


async def set_threshold(story: Story, threshold: int) -> None:
    async with story.world.pool.transaction("threshold") as tx:
        await tx.execute("update monitors set flap_threshold = %(most)s", most=threshold)


async def test_a_threshold_that_was_off_for_a_time_counts_from_the_beginning(story: Story) -> None:
    row = await flapping(story)
    await set_threshold(story, 0)
    await story.is_now(row, True)
    await story.run_pass()
    await jump(story, 100 * HOUR)
    await set_threshold(story, 3)
    before = await events(story)
    await story.is_now(row, False)
    await story.run_pass()
    async with story.world.pool.transaction("look", read_only=True) as tx:
        assert await select_flapping(tx, [row.key]) == {}
    await jump(story, MINUTE)
    await story.is_now(row, True)
    await story.run_pass()
    assert (await events(story))[len(before) :] == [DOWN, UP]


async def test_a_lost_change_without_a_threshold_ends_the_alert(story: Story) -> None:
    row = await flapping(story)
    await set_threshold(story, 0)
    before = await events(story)
    await story.is_now(row, True)
    async with story.world.pool.transaction("lost") as tx:
        await tx.execute("delete from status_changes")
    await jump(story, HOUR)
    await jump(story, HOUR)
    assert (await events(story))[len(before) :] == [UP]


@pytest.mark.parametrize("seed", range(2))
async def test_random_changes_leave_no_silent_outage(story: Story, seed: int) -> None:
    chance = random.Random(seed)
    row = await story.world.monitor(
        name="Shop", flap_threshold=2, auto_incident=False, interval_seconds=3_600
    )
    await story.channel("ops", row)
    is_up, changed_at = True, story.world.now
    await story.is_now(row, True)
    for _ in range(60):
        await jump(story, chance.choice([1, 2, 4, 20]) * MINUTE)
        if chance.random() < 0.6:
            is_up = not is_up
            await story.is_now(row, is_up)
            changed_at = story.world.now
            await story.run_pass()
        sent = await events(story)
        opens = [event for event in sent if event != STILL]
        # An alert is open whenever it is down, and each alert has one recovery.
        assert opens == [DOWN, UP] * (len(opens) // 2) + [DOWN] * (len(opens) % 2)
        if not is_up:
            assert opens[-1] == DOWN
        elif story.world.now - changed_at > 15 * MINUTE and opens:
            assert opens[-1] == UP
