"""Several processes with their own connections process alerts and evaluate services, while users
edit and results arrive: each outage is announced once, and no transactions deadlock.
"""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import trio

from leadline.daemon.loops.alert_processor import AlertProcessor
from leadline.daemon.loops.service_evaluator import ServiceEvaluator
from leadline.storage.core.instant import Instant
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.services.rules.service_health import AggregationMode, Policies
from tests.support.run.effort import varied

from ..support.worlds.paging_world import EVERY, PagingWorld, Service, paging_world

pytestmark = pytest.mark.template("paging_template")

Process = tuple[AlertProcessor, ServiceEvaluator]

PROCESSES = 3
MOMENTS = 16


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


class Crowd:
    def __init__(self, story: PagingWorld, others: list[Process], seed: int) -> None:
        self.story = story
        self.others = others
        self.chance = random.Random(seed)
        self.rows: list[MonitorRow] = []
        self.services: list[Service] = []
        self.up: dict[int, bool] = {}

    async def begin(self) -> None:
        story = self.story
        for n in range(4):
            self.rows.append(await story.world.monitor(name=f"M{n}"))
            self.up[n] = True
        await story.channel("own", *self.rows)
        policy = await story.policy((0, await story.channel("ops")))
        for n in range(3):
            members = [self.rows[n], self.rows[3]]
            mode = self.chance.choice([AggregationMode.ALL, AggregationMode.ANY])
            policies = Policies(mode=mode)
            made = await story.service(*members, name=f"S{n}", policy=policy, policies=policies)
            self.services.append(made)

    async def moment(self, *, edits: bool) -> None:
        """Runs all processes concurrently, at one instant of the clock."""
        self.story.world.now = Instant(self.story.world.now + EVERY)
        async with trio.open_nursery() as nursery:
            for n, row in enumerate(self.rows):
                nursery.start_soon(self.story.is_now, row, self.up[n])
            for watcher, evaluator in self.others:
                nursery.start_soon(watcher.pass_once)
                nursery.start_soon(evaluator.pass_once)
            if edits:
                nursery.start_soon(self.edit, self.chance.choice(self.services))
        # A row that one process locked was skipped by the others, and is processed here.
        await self.story.run_pass()

    async def edit(self, service: Service) -> None:
        owns, confirm = self.chance.random() < 0.7, self.chance.randrange(1, 4)
        await self.story.set_paging(service, owns_paging=owns, confirm_evaluations=confirm)

    async def go(self) -> None:
        for _ in range(MOMENTS):
            for n in self.up:
                if self.chance.random() < 0.2:
                    self.up[n] = not self.up[n]
            await self.moment(edits=self.chance.random() < 0.4)
            if self.chance.random() < 0.8:
                await self.story.deliver()
            await self.expect_one_incident_each()
        self.up = dict.fromkeys(self.up, True)
        for _ in range(4):
            await self.moment(edits=False)

    async def expect_one_incident_each(self) -> None:
        found = await self.story.world.rows(
            "select coalesce(monitor, 0), coalesce(service, 0), count(*) from incidents"
            " where status <> 'resolved' group by 1, 2"
        )
        assert all(count == 1 for _, _, count in found), found

    async def expect_one_notification(self) -> None:
        rows = self.story.world.rows
        assert await rows("select id from outages where ended_at is null") == []
        assert await rows("select id from incidents where status <> 'resolved'") == []
        assert await rows("select id from service_episodes where ended_at is null") == []
        found = await rows(
            "select array_agg(o.event order by o.id) from outbox o"
            " join destinations d on d.id = o.destination where d.channel is not null"
            " group by o.thread, o.destination"
        )
        assert found, "at least one page was sent"
        for (events,) in found:
            assert events in (
                ["incident.opened", "incident.resolved"],
                ["incident.escalated", "incident.resolved"],
            ), events


def _process(story: PagingWorld, pool: Pool) -> Process:
    def clock() -> Instant:
        return story.world.now

    def wake_none() -> None:
        """Wakes no other loop."""

    return AlertProcessor(pool, clock, wake_none, wake_none), ServiceEvaluator(
        pool, clock, wake_none
    )


@pytest.mark.parametrize("seed", varied([0], range(4)))
async def test_concurrent_evaluators_page_once(story: PagingWorld, dsn: str, seed: int) -> None:
    async with AsyncExitStack() as stack:
        others: list[Process] = []
        for _ in range(PROCESSES):
            pool: Pool = await stack.enter_async_context(
                open_pool(dsn, name="other", size=3, clock=lambda: story.world.now)
            )
            others.append(_process(story, pool))
        crowd = Crowd(story, others, seed)
        await crowd.begin()
        await crowd.go()
        await crowd.expect_one_notification()
    deadlocks = await story.world.rows(
        "select deadlocks from pg_stat_database where datname = current_database()"
    )
    assert deadlocks == [(0,)]
