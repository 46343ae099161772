"""The retirement of a monitor that is down ends its notifications: their recipients get one
resolution."""

import random
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import UUID

import pytest
import trio

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.retirement.transactions.convert_composite import convert_composite
from leadline.storage.retirement.transactions.set_successor import reactivate, retire, set_successor
from tests.support.worlds.world import REGIONS

from ..support.worlds.paging_world import PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def retired(story: PagingWorld, row: MonitorRow) -> None:
    async with story.world.pool.transaction("retire") as tx:
        await retire(tx, story.world.editor, row.uid)


async def reactivated(story: PagingWorld, row: MonitorRow) -> None:
    world = story.world
    async with world.pool.transaction("reactivate") as tx:
        await reactivate(tx, world.editor, row.uid, world.keyring, REGIONS)


async def superseded(story: PagingWorld, row: MonitorRow) -> UUID:
    service = await story.service(name=f"Instead of {row.slug}", owns_paging=False)
    async with story.world.pool.transaction("supersede") as tx:
        await set_successor(tx, story.world.editor, row.uid, service.uid)
    return service.uid


async def test_recipients_of_an_outage_get_its_end_and_no_more(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(renotify_seconds=60)
    await story.channel("ops", row)
    await superseded(story, row)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    await retired(story, row)
    await story.steps(5 * MINUTE)
    assert await story.notifications() == [("ops", "incident.opened"), ("ops", "incident.resolved")]
    assert [status for _, status, _ in await story.incidents()] == ["resolved"]


async def test_a_reactivated_monitor_sends_notifications_again(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await superseded(story, row)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    await retired(story, row)
    await story.steps(MINUTE)
    await reactivated(story, row)
    await story.steps(3 * MINUTE)
    assert len(await story.notifications()) == 2, (
        "a result from before the retirement was announced"
    )
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    assert (await story.notifications())[2:] == [("ops", "incident.opened")]


async def test_the_channels_of_a_monitor_without_incidents_get_its_retirement(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(auto_incident=False)
    await story.channel("ops", row)
    await superseded(story, row)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    await retired(story, row)
    await story.steps(MINUTE)
    assert await story.notifications() == [("ops", "monitor.down"), ("ops", "monitor.recovered")]


async def test_a_result_of_a_running_check_does_not_change_a_retired_monitor(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await superseded(story, row)
    await retired(story, row)
    await story.is_now(row, False)
    await story.steps(3 * MINUTE)
    assert await story.notifications() == []


async def test_a_composite_is_converted_and_retired_during_its_evaluation(
    story: PagingWorld,
) -> None:
    world = story.world
    child = await world.monitor()
    config = {"mode": "all", "children": [str(child.uid)]}
    row = await world.monitor(type="composite", target="", config=config)
    async with world.pool.transaction("convert") as tx:
        done = await convert_composite(tx, world.editor, row.uid, [child.uid], 14)
    assert not done.already
    assert done.service.slug == row.slug
    await story.is_now(child, False)
    await story.steps(30 * SECOND)
    await retired(story, row)
    with pytest.raises(Refused) as refused:
        await retired(story, child)
    assert refused.value.code == "not_superseded"
    terms = await world.rows(
        "select m.slug, t.enabled from monitor_terms t join monitors m on m.id = t.monitor"
        " where t.from_at = (select max(from_at) from monitor_terms l where l.monitor = m.id)"
        " order by m.id"
    )
    assert terms == [(child.slug, True), (row.slug, False)]


@pytest.mark.parametrize("seed", range(3))
async def test_retired_and_brought_back_while_everyone_works(story: PagingWorld, seed: int) -> None:
    """Results, outages and evaluations run concurrently: there is no deadlock, and each
    announcement is followed by a resolution."""
    chance = random.Random(seed)
    rows = [await story.world.monitor(interval_seconds=30) for _ in range(3)]
    await story.channel("ops", *rows)
    for row in rows:
        await superseded(story, row)

    async def come_and_go() -> None:
        for _ in range(20):
            row = chance.choice(rows)
            # Another may have brought it back already.
            with suppress(Refused):
                await chance.choice([retired, reactivated])(story, row)

    async def tell() -> None:
        for _ in range(40):
            await story.is_now(chance.choice(rows), chance.random() < 0.4)

    async def watch() -> None:
        for _ in range(25):
            await story.run_pass()

    async with trio.open_nursery() as nursery:
        for work in (come_and_go, come_and_go, tell, tell, watch):
            nursery.start_soon(work)
    assert await story.world.rows(
        "select count(*) from monitors where retired_at is not null and enabled"
    ) == [(0,)]
    for row in rows:
        await retired(story, row)
        await reactivated(story, row)
    story.world.now = Instant(story.world.now + MINUTE)
    for row in rows:
        await story.is_now(row, True)
    await story.steps(MINUTE)
    assert await story.world.rows("select id from outages where ended_at is null") == []
    assert {status for _, status, _ in await story.incidents()} <= {"resolved"}
    begun = await story.world.rows(
        "select array_agg(event order by o.id) from outbox o join destinations d"
        " on d.id = o.destination where d.channel is not null group by thread"
    )
    assert all(events == ["incident.opened", "incident.resolved"] for (events,) in begun), begun
