"""The pending runs of a region, compared with a model of run batches, jobs and their holders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from leadline.daemon.loops.metric_samplers import STALE_US, RegionLoadSampler
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.agents.queries.fleet import RegionLoad, count_watched, select_fleet
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.scheduling.tables import presences
from leadline.storage.scheduling.tables import shards as schedules
from leadline.storage.scheduling.tables import work_queues as queues
from tests.support.run.effort import varied
from tests.support.worlds.world import World

REGIONS = frozenset({"core", "attic"})


async def loads(world: World) -> dict[str, RegionLoad]:
    async with world.pool.transaction("look", read_only=True) as tx:
        return {one.name: one for one in (await select_fleet(tx, REGIONS)).regions}


async def present(world: World, through: Instant, role: str = "worker", *regions: str) -> UUID:
    process = uuid4()
    async with world.pool.transaction("present") as tx:
        await presences.begin_presence(
            tx, process, through, "here", [role], regions or ("core",), "1", accepts_pushes=False
        )
    return process


async def hear(world: World, region: str, at: Instant) -> None:
    async with world.pool.transaction("hear") as tx:
        await tx.execute(
            "insert into agents (credential, region, instance, name, holder, first_seen_at,"
            " last_seen_at) values ('catch-all', %(region)s, gen_random_uuid(), '',"
            " gen_random_uuid(), at(%(at)s), at(%(at)s))",
            region=region,
            at=at,
        )


async def test_a_window_is_pending_until_it_is_claimed_or_expires(world: World) -> None:
    row = await world.monitor(interval_seconds=60)
    await world.forget_jobs()
    ticker = Ticker(world.pool, lambda: world.now)
    for _ in range(60):
        await ticker.pass_once()
        if (await loads(world))["core"].pending_jobs:
            break
        world.now = Instant(world.now + SECOND)
    began = world.now
    world.now = Instant(world.now + 7 * SECOND)
    waiting = (await loads(world))["core"]
    assert waiting.pending_jobs == 1
    lag = waiting.lag_us(world.now)
    assert lag is not None
    assert 7 * SECOND <= lag <= 8 * SECOND
    assert (await loads(world))["attic"] == RegionLoad("attic", 0, 0, 0, None)
    process = await present(world, world.now)
    async with world.pool.transaction("lease") as tx:
        assert len(await queues.lease_batches(tx, process, [row.shard], [], 10)) == 1
    assert (await loads(world))["core"] == RegionLoad("core", 1, 0, 0, None)
    # Its holder is gone: it waits again, as long as it may be claimed.
    world.now = Instant(world.now + 16 * SECOND)
    assert (await loads(world))["core"].pending_jobs == 1
    world.now = Instant(began + 61 * SECOND)
    assert (await loads(world))["core"] == RegionLoad("core", 0, 0, 0, None)


async def test_a_run_that_was_asked_for_waits_too(world: World) -> None:
    row = await world.monitor()
    assert (await loads(world))["core"].pending_jobs == 1
    world.now = Instant(world.now + 3 * SECOND)
    assert (await loads(world))["core"].lag_us(world.now) == 3 * SECOND
    process = await present(world, world.now)
    async with world.pool.transaction("lease") as tx:
        assert len(await queues.lease_jobs(tx, process, [row.shard], 10)) == 1
    assert (await loads(world))["core"].pending_jobs == 0


async def test_live_probers_are_counted_per_region(world: World) -> None:
    await present(world, world.now, "worker", "core", "attic")
    await present(world, world.now, "all", "core")
    await present(world, world.now, "api", "core")
    await present(world, Instant(world.now - 16 * SECOND), "worker", "core")
    for region, ago in (("attic", 44), ("attic", 0), ("attic", 46), ("moon", 1)):
        await hear(world, region, Instant(world.now - ago * SECOND))
    found = {name: (one.workers, one.agents) for name, one in (await loads(world)).items()}
    assert found == {"attic": (1, 2), "core": (2, 0), "moon": (0, 1)}


async def test_only_enabled_probed_monitors_are_counted(world: World) -> None:
    await world.monitor()
    await world.monitor(enabled=False)
    await world.monitor(type="push")
    async with world.pool.transaction("look", read_only=True) as tx:
        assert await count_watched(tx) == {"core": 1}


@dataclass
class Model:
    """The same numbers, computed without a query."""

    now: Instant
    live: set[UUID] = field(default_factory=set)
    settled: set[tuple[int, Instant]] = field(default_factory=set)
    slices: list[dict[str, Any]] = field(default_factory=list)

    def is_held(self, item: dict[str, Any]) -> bool:
        return item["holder"] in self.live or item["lease_until"] > self.now

    def waiting(self, shard: int) -> list[Instant]:
        found = []
        for item in self.slices:
            if item["shard"] != shard or item["kind"] != "run" or not item["published"]:
                continue
            if item["holder"] is not None and self.is_held(item):
                continue
            for monitor, due, until in zip(
                item["monitors"], item["due_ats"], item["claim_untils"], strict=True
            ):
                done = item["claimed"] and (monitor, due) in self.settled
                if due <= self.now < until and not done:
                    found.append(due)
        return found


def _slice(random: Random, now: Instant, shard: int, holders: Sequence[UUID]) -> dict[str, Any]:
    due_ats = [Instant(now + random.randint(-125, 2) * SECOND) for _ in range(random.randint(1, 4))]
    holder = random.choice([None, *holders])
    return {
        "shard": shard,
        "kind": random.choice(["run", "run", "run", "push"]),
        "monitors": [random.randint(1, 9) for _ in due_ats],
        "due_ats": due_ats,
        "claim_untils": [Instant(due + random.choice([5, 60, 120]) * SECOND) for due in due_ats],
        "published": random.random() < 0.8,
        "holder": holder,
        "lease_until": Instant(now + random.choice([-5, 0, 5]) * SECOND),
        "claimed": holder is not None or random.random() < 0.2,
    }


async def _store(world: World, items: Iterable[dict[str, Any]]) -> None:
    async with world.pool.transaction("store") as tx:
        for item in items:
            await tx.execute(
                "insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats,"
                " claim_untils, published, first_due, claim_until, first_seal, last_seal, holder,"
                " lease_until, claimed)"
                " select %(shard)s, %(kind)s, array_fill(1, array[%(many)s::int]), %(monitors)s,"
                " d.due_ats, d.due_ats, d.untils, %(published)s, at(%(first)s),"
                " at(%(last)s), at(%(first)s), at(%(first)s), %(holder)s, at(%(lease_until)s),"
                " %(claimed)s from (select array(select at(x) from unnest(%(due_ats)s::bigint[])"
                " with ordinality u(x, n) order by n) as due_ats, array(select at(x) from"
                " unnest(%(claim_untils)s::bigint[]) with ordinality u(x, n) order by n)"
                " as untils) d",
                **item,
                many=len(item["due_ats"]),
                first=min(item["due_ats"]),
                last=max(item["claim_untils"]),
            )


@pytest.mark.parametrize("seed", varied([0, 1], range(12)))
async def test_pending_runs_equal_those_of_a_model(world: World, seed: int) -> None:
    random = Random(seed)
    here = await present(world, world.now)
    gone = await present(world, Instant(world.now - 20 * SECOND))
    async with world.pool.transaction("shards") as tx:
        shards = {
            name: await schedules.ensure_shard(tx, 0, name, world.now) for name in sorted(REGIONS)
        }
    model = Model(world.now, {here})
    model.slices = [
        _slice(random, world.now, random.choice(list(shards.values())), [here, gone, uuid4()])
        for _ in range(40)
    ]
    await _store(world, model.slices)
    windows = [
        (m, d)
        for item in model.slices
        for m, d in zip(item["monitors"], item["due_ats"], strict=True)
    ]
    model.settled = set(random.sample(windows, len(windows) // 3))
    async with world.pool.transaction("settle") as tx:
        for monitor, due in model.settled:
            await tx.execute(
                "insert into expected_runs (org, monitor, due_at, settled_at, verdict)"
                " values (1, %(m)s, at(%(d)s), at(%(d)s), 'covered')",
                m=monitor,
                d=due,
            )
    found = await loads(world)
    for name, shard in shards.items():
        waiting = model.waiting(shard)
        told = (found[name].pending_jobs, found[name].oldest_due)
        assert told == (len(waiting), min(waiting, default=None)), name


async def test_an_old_sample_is_not_reported(world: World) -> None:
    surveyor = RegionLoadSampler(world.pool, lambda: world.now, REGIONS)
    assert surveyor.seen is None
    await surveyor.pass_once()
    assert surveyor.seen is not None
    assert [one.name for one in surveyor.seen.regions] == ["attic", "core"]
    world.now = Instant(world.now + STALE_US + 1)
    assert surveyor.seen is None
