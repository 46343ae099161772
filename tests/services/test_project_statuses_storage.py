"""Statuses of a project that are reused equal those of a new read, after every kind of change."""

from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

import pytest

from leadline.http.monitors.console import project_statuses
from leadline.http.monitors.console.project_statuses import ProjectStatuses, read_statuses
from leadline.http.services.console.service_list import ServiceListData, select_facts
from leadline.http.wire.project_cache import PROJECTS_MOST, WEIGHT_MOST, ProjectCache
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from tests.support.run.effort import varied
from tests.support.worlds.paging_world import PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

_PRESENCE = """
insert into presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes)
values (gen_random_uuid(), at(%(now)s), at(%(now)s), 'h', '{worker}', '{core}', '', false)
"""
_PROBE_ERROR = """
insert into probe_errors (org, monitor, reason, at)
values (%(org)s, %(monitor)s, 'decrypt_failed', at(%(now)s))
on conflict (org, monitor) do update set at = excluded.at
"""
_OBJECTIVE = """
insert into service_targets (org, service, "window", uid, objective, created_at, updated_at)
values (%(org)s, %(id)s, '30d', gen_random_uuid(), %(objective)s, at(%(now)s), at(%(now)s))
on conflict (org, service, "window") do update set objective = excluded.objective,
  updated_at = excluded.updated_at
"""
_NO_OBJECTIVE = "delete from service_targets where service = %(id)s"
_RENAME = """
update services set name = name || 'x', updated_at = at(%(now)s) where id = %(id)s
"""


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as found:
        yield found


class Reader:
    """Reads with a cache and without one, and compares."""

    def __init__(self, story: PagingWorld) -> None:
        self.story = story
        self.cache: ProjectCache[ProjectStatuses] = ProjectCache()
        self.reused = 0
        self.facts_reused = 0

    async def compare(self) -> ProjectStatuses:
        world = self.story.world
        before = self.cache.get(world.org, world.project)
        kept = dict(before.dependent) if before else {}
        async with world.pool.transaction("compare", read_only=True) as tx:
            found = await read_statuses(tx, self.cache, world.org, world.project, ["core"])
            facts = await select_facts(tx, world.org, world.project, found)
            fresh = await read_statuses(tx, ProjectCache(), world.org, world.project, ["core"])
            read = await select_facts(tx, world.org, world.project, fresh)
        assert said(found) == said(fresh)
        assert said_of_services(facts) == said_of_services(read)
        self.reused += found is before
        self.facts_reused += any(facts is one for one, _ in kept.values())
        return found


def said(statuses: ProjectStatuses) -> list[tuple[Any, ...]]:
    return [
        (one.row.id, one.row.name, one.row.revision, one.state, one.is_unserved, one.trouble)
        for one in statuses.monitors
    ]


def said_of_services(facts: ServiceListData) -> list[tuple[Any, ...]]:
    return [
        (
            row.id,
            row.name,
            health.state,
            health.revision,
            dict(health.members),
            {window: aim.objective for window, aim in facts.targets[row.key].items()},
        )
        for row in facts.rows
        for health in [facts.health[row.key]]
    ]


async def world_of(story: PagingWorld) -> tuple[list[MonitorRow], list[Any]]:
    monitors = [await story.world.monitor(tags=["a"]) for _ in range(4)]
    services = [
        await story.service(*monitors[:2], name="One"),
        await story.service(*monitors[1:], name="Two"),
    ]
    return monitors, services


@pytest.mark.parametrize("seed", varied(range(3), range(20)))
async def test_reused_statuses_are_those_of_a_new_read(story: PagingWorld, seed: int) -> None:
    random = Random(seed)
    monitors, services = await world_of(story)
    reader = Reader(story)
    number = 1

    async def revise() -> None:
        nonlocal number
        number += 1
        later = random.choice([0, 20 * SECOND])
        members = random.sample(monitors, random.randint(1, 4))
        at = Instant(story.world.now + later)
        await story.revise(random.choice(services), members, number=number, at=at)
        # A declaration also sets the time of its service.
        await story.set(_RENAME, id=services[0].id, now=story.world.now)

    async def aim() -> None:
        given = {"org": story.world.org, "id": random.choice(services).id, "now": story.world.now}
        if random.random() < 0.3:
            await story.set(_NO_OBJECTIVE, id=given["id"])
        else:
            objective = random.choice([990_000, 999_000])
            await story.set(_OBJECTIVE, **given, objective=objective)

    async def pass_time() -> None:
        us = random.choice([SECOND, 7 * SECOND, 40 * SECOND, 3 * MINUTE])
        story.world.now = Instant(story.world.now + us)

    def one() -> MonitorRow:
        return random.choice(monitors)

    actions: list[Callable[[], Awaitable[Any]]] = [
        lambda: story.is_now(one(), up=True),
        lambda: story.is_now(one(), up=True),
        lambda: story.is_now(one(), up=False),
        lambda: story.edit(one(), enabled=random.random() < 0.6),
        lambda: story.edit(one(), interval_seconds=random.choice([30, 60])),
        lambda: story.maintain(one(), random.choice([5 * SECOND, MINUTE])),
        lambda: story.set(_PRESENCE, now=story.world.now),
        lambda: story.set(_PROBE_ERROR, org=story.world.org, monitor=one().id, now=story.world.now),
        revise,
        aim,
        pass_time,
        pass_time,
    ]
    for _ in range(60):
        await random.choice(actions)()
        await reader.compare()
        # Most requests see no change: without these, nothing would be reused.
        story.world.now = Instant(story.world.now + SECOND)
        await reader.compare()
    assert reader.reused > 10
    assert reader.facts_reused > 10


async def test_a_status_ends_with_its_result_although_nothing_is_written(
    story: PagingWorld,
) -> None:
    monitors, _ = await world_of(story)
    for row in monitors:
        await story.is_now(row, up=True)
    reader = Reader(story)
    seen = set()
    for _ in range(100):
        seen.add(tuple(one.state.value for one in (await reader.compare()).monitors))
        story.world.now = Instant(story.world.now + 2 * SECOND)
    assert len(seen) > 1
    assert reader.reused > 50


async def test_a_late_first_result_of_an_unknown_monitor_is_seen_at_once(
    story: PagingWorld,
) -> None:
    monitors, _ = await world_of(story)
    await story.is_now(monitors[0], up=True)
    story.world.now = Instant(story.world.now + HOUR)
    reader = Reader(story)
    await reader.compare()
    await reader.compare()
    assert reader.reused == 1
    # The stored status remains up, so that the revision of the project does not change.
    await story.is_now(monitors[0], up=True)
    states = {one.row.id: one.state for one in (await reader.compare()).monitors}
    assert states[monitors[0].id] == "up"
    assert reader.reused == 1


async def test_a_clock_that_steps_back_reads_anew(story: PagingWorld) -> None:
    await world_of(story)
    reader = Reader(story)
    await reader.compare()
    story.world.now = Instant(story.world.now - MINUTE)
    await reader.compare()
    assert reader.reused == 0


async def test_many_unknown_statuses_are_not_kept(
    story: PagingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world_of(story)
    monkeypatch.setattr(project_statuses, "RESULTS_MOST", 3)
    reader = Reader(story)
    await reader.compare()
    await reader.compare()
    assert reader.reused == 0
    assert len(reader.cache) == 0


def test_the_cache_has_bounds_and_drops_what_was_used_least() -> None:
    cache: ProjectCache[str] = ProjectCache()
    for number in range(PROJECTS_MOST):
        cache.put(1, number, "x", 1)
    assert cache.get(1, 0) == "x"
    cache.put(1, PROJECTS_MOST, "x", 1)
    assert (len(cache), cache.get(1, 0), cache.get(1, 1)) == (PROJECTS_MOST, "x", None)
    cache.put(2, 1, "heavy", WEIGHT_MOST)
    assert (len(cache), cache.weight, cache.get(2, 1)) == (1, WEIGHT_MOST, "heavy")
    cache.put(2, 1, "too heavy", WEIGHT_MOST + 1)
    assert (len(cache), cache.weight) == (0, 0)
    cache.put(2, 1, "a", 5)
    cache.put(2, 1, "b", 7)
    assert (len(cache), cache.weight, cache.get(2, 1)) == (1, 7, "b")


def test_the_variants_of_a_project_share_the_bound() -> None:
    cache: ProjectCache[str] = ProjectCache(weight_most=10)
    cache.put(1, 1, "with secrets", 6, True)
    cache.put(1, 1, "without", 4, False)
    assert (cache.get(1, 1, True), cache.get(1, 1, False)) == ("with secrets", "without")
    cache.put(2, 1, "other", 1)
    assert (cache.weight, cache.get(1, 1, True), cache.get(1, 1, False)) == (5, None, "without")
