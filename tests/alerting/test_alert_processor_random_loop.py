"""Random histories of dependent monitors, compared with the guarantees of alerting: an outage is
announced once, not while a cause is down, always in the end, and its recovery is sent to every
notified channel.
"""

import random
from collections.abc import Awaitable, Callable

import pytest

from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.tables import incidents
from leadline.storage.incidents.transactions.write_incident import IncidentEntry, write_entry
from leadline.storage.monitors.rows import MonitorRow
from tests.support.run.effort import varied
from tests.support.worlds.world import World

from .test_alert_processor_loop import Story

HOLD_US = 90 * SECOND
# The longest delay: a timeout of 10 s plus 5 s, twice, and several passes.
PATIENCE_US = 40 * SECOND


class Model:
    """The state of the monitors, computed from the actions of the test in seconds and booleans."""

    def __init__(self, story: Story, rows: list[MonitorRow], edges: dict[int, set[int]]) -> None:
        self.story = story
        self.rows = rows
        self.above = {n: self._closure(n, edges) for n in range(len(rows))}
        self.last: dict[int, tuple[Instant, bool]] = {}
        self.paused: set[int] = set()
        self.maintained: set[int] = set()
        # Since when no condition suppresses the announcement of a monitor that is down.
        self.free_since: dict[int, Instant | None] = {}

    def _closure(self, n: int, edges: dict[int, set[int]]) -> set[int]:
        found: set[int] = set()
        open_ = list(edges.get(n, ()))
        while open_:
            one = open_.pop()
            if one not in found:
                found.add(one)
                open_ += edges.get(one, ())
        return found

    @property
    def now(self) -> Instant:
        return self.story.world.now

    def known(self, n: int) -> bool | None:
        """Returns whether the newest result is up while it is fresh; None if the state is
        unknown.
        """
        if n in self.paused or n not in self.last:
            return None
        at, up = self.last[n]
        return up if self.now < at + HOLD_US else None

    def explains(self, n: int) -> bool:
        return self.known(n) is False or n in self.maintained

    def may_notify(self, n: int) -> bool:
        if n in self.paused or n in self.maintained or self.known(n) is not False:
            return False
        return not any(self.explains(one) for one in self.above[n])

    def evaluate(self) -> None:
        for n in range(len(self.rows)):
            if not self.may_notify(n):
                self.free_since[n] = None
            elif self.free_since.get(n) is None:
                self.free_since[n] = self.now


Act = Callable[[int], Awaitable[None]]


class Play:
    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.story = model.story
        self.chance = random.Random(seed)
        self.notified: set[int] = set()

    async def step(self) -> None:
        n = self.chance.randrange(len(self.model.rows))
        acts: list[Act] = [self.result, self.wait, self.pause, self.maintain, self.resolve]
        (act,) = self.chance.choices(acts, [12, 8, 1, 1, 1])
        await act(n)
        self.model.evaluate()
        if self.chance.random() < 0.7:
            await self.run_pass()

    async def result(self, n: int, up: bool | None = None) -> None:
        if n in self.model.paused or n in self.model.maintained:
            return
        if up is None:
            up = self.chance.random() < 0.5
        await self.story.is_now(self.model.rows[n], up)
        self.model.last[n] = (self.model.now, up)

    async def wait(self, _: int) -> None:
        for _ in range(self.chance.choice([1, 2, 10, 30])):
            self.story.world.now = Instant(self.model.now + SECOND)
            self.model.evaluate()
            await self.run_pass()

    async def pause(self, n: int) -> None:
        row, enabled = self.model.rows[n], n in self.model.paused
        self.story.world.now = Instant(self.model.now + SECOND)
        await self.story.edit(row, enabled=enabled)
        self.story.world.now = Instant(self.model.now + SECOND)
        self.model.last.pop(n, None)
        self.model.paused ^= {n}

    async def maintain(self, n: int) -> None:
        if n in self.model.maintained:
            async with self.story.world.pool.transaction("over") as tx:
                await tx.execute(
                    "update maintenances set cancel_effective_at = at(%(now)s)"
                    " where monitor = %(id)s and cancel_effective_at is null",
                    now=self.model.now,
                    id=self.model.rows[n].id,
                )
        else:
            await self.story.maintain(self.model.rows[n], HOUR)
        self.story.world.now = Instant(self.model.now + SECOND)
        # Results from before the pause no longer count.
        self.model.last.pop(n, None)
        self.model.maintained ^= {n}

    async def resolve(self, n: int) -> None:
        row = self.model.rows[n]
        async with self.story.world.pool.transaction("resolve") as tx:
            incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
            if incident is not None:
                entry = IncidentEntry(
                    status=IncidentStatus.RESOLVED, body="", public=None, author=None
                )
                await write_entry(tx, incident, entry)

    async def run_pass(self) -> None:
        await self.story.run_pass()
        announced = await self.announced()
        for n in announced - self.notified:
            assert self.model.may_notify(n), f"{n} was announced beside a cause, or was not down"
        self.notified = announced
        for n, since in self.model.free_since.items():
            if since is not None and self.model.now - since > PATIENCE_US:
                assert n in announced, f"{n} is down and was not announced"

    async def announced(self) -> set[int]:
        keys = {row.id: n for n, row in enumerate(self.model.rows)}
        rows = await self.story.world.rows(
            "select monitor from outages where ended_at is null and announced_at is not null"
        )
        return {keys[monitor] for (monitor,) in rows}


@pytest.mark.parametrize("seed", varied([0], range(6)))
async def test_a_random_history(world: World, seed: int) -> None:
    story, chance = Story(world), random.Random(seed)
    rows: list[MonitorRow] = []
    edges: dict[int, set[int]] = {}
    for n in range(5):
        edges[n] = {other for other in range(n) if chance.random() < 0.4}
        wanted = [rows[other].uid for other in sorted(edges[n])]
        rows.append(
            await world.monitor(
                depends_on=wanted, interval_seconds=30, auto_incident=chance.random() < 0.7
            )
        )
    await story.channel("ops", *rows)
    model = Model(story, rows, edges)
    play = Play(model, seed)
    for _ in range(120):
        await play.step()
    for n in sorted(model.paused):
        await play.pause(n)
    for n in sorted(model.maintained):
        await play.maintain(n)
    for n in range(5):
        await play.result(n, up=True)
    await story.later(10 * SECOND)
    await expect_everything_ended(world)


async def expect_everything_ended(world: World, *, reminded: bool = False) -> None:
    """Each announced outage has one beginning, then reminders, then one end."""
    assert await world.rows("select id from outages where ended_at is null") == []
    assert await world.rows("select id from incidents where status <> 'resolved'") == []
    found = await world.rows(
        "select thread, array_agg(event order by id) from outbox group by thread"
    )
    told = await world.rows("select count(*) from outages where announced_at is not null")
    assert len(found) == told[0][0]
    for _, events in found:
        first, *between, last = [event.partition(".")[2] for event in events]
        assert first in ("opened", "down")
        assert set(between) <= ({"reminder"} if reminded else set())
        assert last in ("resolved", "recovered")
