"""Random histories of services with shared members and an evaluator that stops and starts, compared
with the guarantees: one page, one recovery, and no outage without a page.
"""

import random
from collections.abc import AsyncIterator

import pytest

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.services.rules.service_health import AggregationMode, Policies
from tests.support.run.effort import varied

from ..support.worlds.paging_world import PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

# A lease, the confirmation time, half a minute of a process, and several passes.
PATIENCE_US = 6 * MINUTE


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


class Play:
    def __init__(self, story: PagingWorld, seed: int) -> None:
        self.story = story
        self.chance = random.Random(seed)
        self.rows: list[MonitorRow] = []
        self.up: dict[int, bool] = {}
        self.down_since: dict[int, Instant] = {}

    async def begin(self) -> None:
        story, chance = self.story, self.chance
        for n in range(5):
            above = [r.uid for r in self.rows if chance.random() < 0.15]
            self.rows.append(await story.world.monitor(name=f"M{n}", depends_on=above))
            self.up[n] = True
        await story.channel("own", *self.rows)
        ops = await story.channel("ops")
        policy = await story.policy((0, ops))
        for n in range(3):
            members = chance.sample(self.rows, chance.randrange(1, 4))
            await story.service(
                *members,
                name=f"S{n}",
                policy=policy,
                policies=Policies(mode=chance.choice([AggregationMode.ALL, AggregationMode.ANY])),
                page_on=chance.choice([["down"], ["down", "degraded"]]),
                confirm_evaluations=chance.randrange(1, 4),
            )

    async def step(self) -> None:
        chance = self.chance
        for n in range(5):
            if chance.random() < 0.08:
                self.up[n] = not self.up[n]
        if chance.random() < 0.03:
            self.story.dead = not self.story.dead
        await self.pass_time()
        await self.expect_no_silent_outage()

    async def pass_time(self) -> None:
        now = Instant(self.story.world.now + self.chance.randrange(10, 31) * SECOND)
        self.story.world.now = now
        for n, row in enumerate(self.rows):
            await self.story.is_now(row, self.up[n])
            if self.up[n]:
                self.down_since.pop(n, None)
            else:
                self.down_since.setdefault(n, now)
        await self.story.run_pass()
        if self.chance.random() < 0.8:
            await self.story.deliver()

    async def expect_no_silent_outage(self) -> None:
        """Checks that every long outage is announced, has an announced cause, or is tolerated by a
        healthy service.
        """
        held = dict(
            await self.story.world.rows(
                "select o.monitor, o.suppressed_by from outages o"
                " where o.ended_at is null and o.announced_at is null"
            )
        )
        for n, since in self.down_since.items():
            if self.story.world.now - since < PATIENCE_US or self.rows[n].id not in held:
                continue
            by = held[self.rows[n].id]
            assert by in ("delegated", "dependency", "waiting", "rechecking"), by
            if by == "delegated":
                await self._expect_borne(n)

    async def _expect_borne(self, n: int) -> None:
        found = await self.story.world.rows(
            "select a.live_state, e.id is not null from service_alerting a"
            " join service_revisions r on r.service = a.service and %(monitor)s = any(r.sli)"
            " left join service_episodes e on e.service = a.service and e.ended_at is null",
            monitor=self.rows[n].id,
        )
        # An episode is open, and it or the member whose page it adopted was announced.
        assert any(state == "healthy" or is_open for state, is_open in found), found


async def expect_everything_ended(story: PagingWorld) -> None:
    rows = story.world.rows
    assert await rows("select id from outages where ended_at is null") == []
    assert await rows("select id from incidents where status <> 'resolved'") == []
    assert await rows("select id from service_episodes where ended_at is null") == []
    found = await rows(
        "select thread, d.channel, array_agg(event order by o.id) from outbox o"
        " join destinations d on d.id = o.destination group by 1, 2"
    )
    for _, _, events in found:
        assert events in (
            ["incident.opened", "incident.resolved"],
            ["incident.escalated", "incident.resolved"],
        ), events


@pytest.mark.parametrize("seed", varied([0], range(6)))
async def test_a_random_history(story: PagingWorld, seed: int) -> None:
    play = Play(story, seed)
    await play.begin()
    for _ in range(80):
        await play.step()
    story.dead = False
    play.up = dict.fromkeys(play.up, True)
    for _ in range(8):
        await play.pass_time()
    await expect_everything_ended(story)
