"""Canary dispatch: one run per monitor, a limit of runs per region, and refusals with a bounded set
of reasons.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import canary_dispatcher as dispatcher_module
from leadline.daemon.loops.canary_dispatcher import CanaryDispatcher
from leadline.daemon.loops.check_cache import CheckCache
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.daemon.runtime import limits
from leadline.probes.check.check import Check
from leadline.probes.check.result import Phases, Result, RunOutcome, UnknownReason, unobtained
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.storage.agents.rows import AgentRow
from leadline.storage.agents.tables import agents
from leadline.storage.agents.transactions.claim_jobs import ClaimedJobs, claim_jobs
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from leadline.storage.scheduling.queries import shards as shards_queries
from leadline.storage.scheduling.tables import presences
from tests.support.worlds.world import START, World

CAPABLE = ["async_transaction@1"]


class Fleet:
    """Dispatchers on one database. Their probes wait for `let_go` and then return `finds`."""

    def __init__(self, world: World, nursery: trio.Nursery) -> None:
        self.world = world
        self.nursery = nursery
        self.recorder = Recorder(world.pool, Bus(), lambda: world.now)
        self.ticker = Ticker(world.pool, lambda: world.now)
        self.under_way: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.keys: list[str] = []
        self.let_go = trio.Event()
        self.finds: Result | None = None

    async def probe(self, check: Check, *_: object) -> Result:
        monitor = check.run_key.partition("/")[0]
        self.keys.append(check.run_key)
        self.under_way[monitor] += 1
        self.under_way["all"] += 1
        for name, count in self.under_way.items():
            self.most[name] = max(self.most[name], count)
        await self.let_go.wait()
        self.under_way[monitor] -= 1
        self.under_way["all"] -= 1
        return self.finds or Result(self.world.now, RunOutcome.UP, 5, None, "", Phases())

    async def member(self, *, probes: bool = True, refuses: bool = True) -> CanaryDispatcher:
        world, process = self.world, uuid7()
        async with world.pool.transaction("present") as tx:
            await presences.begin_presence(
                tx,
                process,
                world.now,
                "here",
                ["worker"] if probes else ["scheduler"],
                ["core"] if probes else [],
                "1",
                accepts_pushes=False,
            )
        member = CanaryDispatcher(
            world.pool,
            process,
            ("core",) if probes else (),
            4,
            CheckCache(world.pool, world.keyring, lambda: world.now),
            self.recorder,
            make_reach(probe_policy(), nameservers=()),
            lambda: world.now,
            limits.running_canaries(4, 1 if probes else 0),
            refuses=refuses,
        )
        await self.nursery.start(member.run)
        return member

    async def forward(self, seconds: int) -> None:
        """Advances the clock in steps of one second and renews every presence."""
        for _ in range(seconds):
            self.world.now = Instant(self.world.now + SECOND)
            await self.ticker.pass_once()
        async with self.world.pool.transaction("renew") as tx:
            await tx.execute(
                "update presences set through_at = at(%(now)s) where not ended", now=self.world.now
            )

    async def end(self, member: CanaryDispatcher) -> None:
        """Ends the presence of a dispatcher whose process died."""
        async with self.world.pool.transaction("gone") as tx:
            await tx.execute(
                "update presences set ended = true where process = %(p)s", p=member.process
            )


@pytest.fixture
async def fleet(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    async with trio.open_nursery() as nursery:
        made = Fleet(world, nursery)
        monkeypatch.setattr(dispatcher_module, "run", made.probe)
        await nursery.start(made.recorder.run)
        yield made
        nursery.cancel_scope.cancel()


async def canary(world: World, **given: Any) -> MonitorRow:
    """Inserts a canary by SQL, because its type has no meaning here. It is due in the middle of its
    interval, one second after the previous canary, so that the number of windows does not depend on
    a random id.
    """
    row = await world.monitor(**{"interval_seconds": 60, "timeout_seconds": 5, **given})
    phase = row.interval_seconds // 2 + len(world.made)
    async with world.pool.transaction("make_canary") as tx:
        await tx.execute("update monitors set type = 'async_canary' where id = %(id)s", id=row.id)
        await tx.execute(
            "update monitor_terms set anchor = at(%(anchor)s) where monitor = %(id)s",
            anchor=START + phase * SECOND,
            id=row.id,
        )
    await world.forget_jobs()
    return row


async def settled(fleet: Fleet) -> None:
    with trio.fail_after(20):
        while True:
            if not fleet.under_way["all"] and not await fleet.world.rows(
                "select 1 from canary_runs"
            ):
                return
            await trio.sleep(0.01)


async def under_way(fleet: Fleet, count: int) -> None:
    with trio.fail_after(20):
        while True:
            if fleet.under_way["all"] == count:
                return
            await trio.sleep(0.01)


async def past_claiming(fleet: Fleet, row: MonitorRow) -> None:
    """The first of its windows can be claimed no more."""
    ((until,),) = await fleet.world.rows(
        "select min(w.claim) from run_batches s"
        " cross join unnest(s.monitors, s.claim_untils) as w(monitor, claim)"
        " where w.monitor = %(m)s",
        m=row.id,
    )
    while fleet.world.now < until + 2 * SECOND:
        await fleet.forward(1)


async def refusals(world: World, row: MonitorRow) -> list[str | None]:
    return [reason for _, verdict, reason in await world.ledger(row) if verdict == "withheld"]


async def test_a_run_is_made_by_its_key_and_covers_its_window(world: World, fleet: Fleet) -> None:
    row = await canary(world)
    member = await fleet.member()
    fleet.let_go.set()
    await fleet.forward(61)
    await member.pass_once()
    await settled(fleet)
    ((due, verdict, reason),) = await world.ledger(row)
    assert (verdict, reason) == ("covered", None)
    assert fleet.keys == [f"{row.uid}/{row.revision}/{due}"]
    assert [up for _, up, _ in await world.beats(row)] == [True]


async def test_a_region_has_four_places_and_a_monitor_one_run(world: World, fleet: Fleet) -> None:
    rows = [await canary(world, interval_seconds=60) for _ in range(7)]
    members = [await fleet.member(), await fleet.member()]
    await fleet.forward(61)
    for _ in range(6):
        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(member.pass_once)
        await under_way(fleet, 4)
        await fleet.forward(20)
    assert fleet.most["all"] == 4
    assert max(fleet.most[str(row.uid)] for row in rows) == 1
    reasons = Counter([reason for row in rows for reason in await refusals(world, row)])
    assert set(reasons) == {"region_saturated", "already_in_flight"}
    for row in rows:
        told = await refusals(world, row)
        beats = [(up, msg) for _, up, msg in await world.beats(row)]
        assert beats == [(False, reason) for reason in told], "one bounded failure each"
    fleet.let_go.set()
    await settled(fleet)


async def test_a_canary_waits_for_a_permit_of_the_dispatcher(world: World, fleet: Fleet) -> None:
    rows = [await canary(world), await canary(world)]
    member = await fleet.member()
    member.permits.total_tokens = 1
    await fleet.forward(61)
    await member.pass_once()
    await under_way(fleet, 1)
    with trio.fail_after(20):
        while member.permits.statistics().tasks_waiting < 1:  # noqa: ASYNC110 - it sets no event
            await trio.sleep(0.01)
    fleet.let_go.set()
    await settled(fleet)
    assert fleet.most["all"] == 1
    assert len({key.partition("/")[0] for key in fleet.keys}) == len(rows)


async def test_a_window_without_a_capable_runner_is_refused_when_its_time_is_over(
    world: World, fleet: Fleet
) -> None:
    row = await canary(world)
    scheduler = await fleet.member(probes=False)
    await fleet.forward(61)
    await scheduler.pass_once()
    assert await refusals(world, row) == [], "the window can still be claimed"
    await past_claiming(fleet, row)
    await scheduler.pass_once()
    await scheduler.pass_once()
    assert await refusals(world, row) == ["no_capable_runner"]
    assert [(up, msg) for _, up, msg in await world.beats(row)] == [(False, "no_capable_runner")]
    assert scheduler.refused == {"no_capable_runner": 1}
    assert await world.state(row) == ("down", 1)


@pytest.mark.parametrize(
    ("kind", "carrier", "reason"),
    [
        ("async_transaction@2", 4, "capability_mismatch"),
        ("async_transaction@1", 3, "no_capable_runner"),
    ],
)
async def test_an_agent_of_another_version_is_not_a_runner(
    world: World, fleet: Fleet, kind: str, carrier: int, reason: str
) -> None:
    row = await canary(world)
    scheduler = await fleet.member(probes=False)
    await register_agent(world, [kind], carrier)
    await fleet.forward(61)
    await past_claiming(fleet, row)
    await register_agent(world, [kind], carrier)
    await scheduler.pass_once()
    assert await refusals(world, row) == [reason]


async def test_a_window_with_a_capable_runner_is_not_refused(world: World, fleet: Fleet) -> None:
    row = await canary(world)
    scheduler = await fleet.member(probes=False)
    worker = await fleet.member()
    await fleet.forward(61)
    await past_claiming(fleet, row)
    await scheduler.pass_once()
    assert await world.ledger(row) == []
    assert await world.beats(row) == []
    await fleet.end(worker)
    await fleet.forward(1)
    await scheduler.pass_once()
    assert await refusals(world, row) == [], "a runner that ended later caused a refusal"


async def test_a_reason_of_now_does_not_refuse_an_old_window(world: World, fleet: Fleet) -> None:
    row = await canary(world)
    worker = await fleet.member()
    await fleet.forward(61)
    await past_claiming(fleet, row)
    await fleet.end(worker)
    world.now = Instant(world.now + 3_600 * SECOND)
    scheduler = await fleet.member(probes=False)
    await scheduler.pass_once()
    assert await world.ledger(row) == []


async def test_a_local_failure_is_recorded_and_frees_the_slot(world: World, fleet: Fleet) -> None:
    row = await canary(world)
    fleet.finds = unobtained(world.now, "shop", UnknownReason.MISSING_REFERENCE)
    fleet.let_go.set()
    member = await fleet.member()
    await fleet.forward(61)
    await member.pass_once()
    await settled(fleet)
    troubles = await world.rows("select monitor, reason from probe_errors")
    assert troubles == [(row.id, "missing_reference")]
    assert await world.ledger(row) == []
    assert await world.beats(row) == []


async def test_a_window_of_a_paused_monitor_is_not_refused(world: World, fleet: Fleet) -> None:
    row = await canary(world)
    scheduler = await fleet.member(probes=False)
    await fleet.forward(61)
    async with world.pool.transaction("pause") as tx:
        await tx.execute("update monitors set enabled = false where id = %(id)s", id=row.id)
    await past_claiming(fleet, row)
    await scheduler.pass_once()
    assert await world.ledger(row) == []
    assert await world.beats(row) == []


async def test_canaries_that_cannot_be_claimed_do_not_block_a_free_slot(
    world: World, fleet: Fleet
) -> None:
    for _ in range(12):
        await canary(world)
    member = await fleet.member()
    async with world.pool.transaction("elsewhere") as tx:
        await tx.execute(
            "insert into canary_runs (region, slot, org, monitor, holder, began_at)"
            " select 'eu', row_number() over (), org, id, %(holder)s, at(%(now)s) from monitors",
            holder=member.process,
            now=world.now,
        )
    last = await canary(world)
    await fleet.forward(61)
    for _ in range(61):
        dues = "select 1 from run_batches where %(m)s = any(monitors) and first_due <= at(%(now)s)"
        if await world.rows(f"{dues} and claim_until > at(%(now)s)", m=last.id, now=world.now):
            break
        await fleet.forward(1)
    agent = await register_agent(world, CAPABLE)
    runs = await claim(world, agent, CAPABLE)
    assert [run.definition.uid for run in runs] == [last.uid]


async def test_a_place_of_the_dead_is_free_again(world: World, fleet: Fleet) -> None:
    await canary(world)
    first, second = await fleet.member(), await fleet.member()
    await fleet.forward(61)
    await first.pass_once()
    await under_way(fleet, 1)
    await fleet.forward(61)
    await second.pass_once()
    assert len(fleet.keys) == 1
    await fleet.end(first)
    await second.pass_once()
    await under_way(fleet, 2)


async def register_agent(world: World, kinds: list[str], carrier: int = 4) -> AgentRow:
    async with world.pool.transaction("hear") as tx:
        row = await agents.hear(tx, "agent:edge", "core", UUID(int=0), "edge")
        await agents.record_heartbeat(tx, row.holder, "1", kinds, carrier)
        return await agents.hear(tx, "agent:edge", "core", UUID(int=0), "edge")


async def claim(world: World, agent: AgentRow, kinds: list[str]) -> list[ClaimedJobs]:
    async with world.pool.transaction("claim") as tx:
        shards = [shard.id for shard in await shards_queries.select_shards(tx, ["core"])]
        return await claim_jobs(tx, agent, kinds, shards, 10, 4)


async def test_an_agent_claims_slots_only_with_the_capability(world: World, fleet: Fleet) -> None:
    rows = [await canary(world, interval_seconds=120) for _ in range(6)]
    agent = await register_agent(world, CAPABLE)
    await fleet.forward(121)
    assert await claim(world, agent, []) == []
    runs = await claim(world, agent, CAPABLE)
    assert len(runs) == 4
    assert {run.definition.uid for run in runs} <= {row.uid for row in rows}
    assert await claim(world, agent, CAPABLE) == []
    world.now = runs[0].lease_until
    assert len(await claim(world, agent, CAPABLE)) == 2, "the last two canaries got no slot"


@pytest.mark.parametrize("seed", range(3))
async def test_limits_hold_and_each_refusal_is_recorded_once_in_random_histories(
    world: World, fleet: Fleet, seed: int
) -> None:
    dice = random.Random(seed)
    rows = [await canary(world, interval_seconds=dice.choice([20, 60])) for _ in range(9)]
    members = [await fleet.member(), await fleet.member(), await fleet.member(probes=False)]
    for _ in range(12):
        await fleet.forward(dice.randint(1, 30))
        async with trio.open_nursery() as nursery:
            for member in members:
                if dice.random() < 0.8:
                    nursery.start_soon(member.pass_once)
        if dice.random() < 0.3:
            fleet.let_go.set()
            await settled(fleet)
            fleet.let_go = trio.Event()
    fleet.let_go.set()
    await settled(fleet)
    assert fleet.most["all"] <= 4
    assert len(set(fleet.keys)) == len(fleet.keys)
    for row in rows:
        assert fleet.most[str(row.uid)] <= 1
        told = await refusals(world, row)
        failures = [msg for _, up, msg in await world.beats(row) if not up]
        assert failures == told
