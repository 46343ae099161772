"""Present health: monitors that a transaction has read give the same health as a read of them."""

from collections.abc import AsyncIterator

import pytest

from leadline.storage.core.instant import HOUR, MINUTE, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.queries.monitors import (
    select_monitors_of_project,
    select_standings,
)
from leadline.storage.services.queries.service_health import (
    HealthNow,
    KnownMonitor,
    select_health_now,
)
from leadline.storage.services.rules.service_health import MemberState
from tests.support.worlds.paging_world import PagingWorld, Service, paging_world

pytestmark = pytest.mark.template("paging_template")


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as found:
        yield found


async def known(tx: Tx, story: PagingWorld) -> dict[MonitorKey, KnownMonitor]:
    rows = await select_monitors_of_project(tx, story.world.org, story.world.project)
    statuses = await select_standings(tx, [row.key for row in rows])
    return {
        row.key: KnownMonitor(row.type, row.enabled, row.region, statuses[row.key])
        for row in rows
        if row.key in statuses
    }


async def health(story: PagingWorld, service: Service) -> HealthNow:
    """Returns the health as read, after it was compared with that of the known monitors."""
    async with story.world.pool.transaction("health", read_only=True) as tx:
        read = (await select_health_now(tx, [service.key]))[service.key]
        found = await select_health_now(tx, [service.key], await known(tx, story))
    assert found[service.key] == read
    return read


async def test_known_monitors_give_the_health_of_a_read(story: PagingWorld) -> None:
    up, down, paused, kept, deleted = [await story.world.monitor(tags=["a"]) for _ in range(5)]
    service = await story.service(revised=False)
    start = story.world.now
    members = (up, down, paused, kept)
    await story.revise(service, members, at=Instant(start - HOUR))
    story.world.now = Instant(start - MINUTE)
    before = await health(story, service)
    assert set(before.members.values()) == {MemberState.NOT_BEGUN}
    story.world.now = start
    await story.later(MINUTE)
    await story.is_now(up, True)
    for _ in range(3):
        await story.is_now(down, False)
        await story.later(MINUTE)
    await story.is_now(up, True)
    await story.edit(paused, enabled=False)
    await story.maintain(kept, 10 * MINUTE)
    await story.is_now(deleted, True)
    found = await health(story, service)
    assert found.members == {
        up.id: MemberState.UP,
        down.id: MemberState.DOWN,
        paused.id: MemberState.PAUSED,
        kept.id: MemberState.MAINTENANCE,
    }
    # A term that begins later is not the first one.
    async with story.world.pool.transaction("reserve") as tx:
        later = Instant(tx.now + 10 * MINUTE)
        await tx.execute("update shards set reserved_through = at(%(at)s)", at=later)
    await story.edit(up, interval_seconds=300)
    assert (await health(story, service)).members[up.id] is MemberState.UP
