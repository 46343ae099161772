"""A window is given out once at a time: random histories of agents and workers, compared with a
list of the leases."""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
import trustme
from uuid_utils.compat import uuid7

from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.probes.jobs.agent_protocol import OPTIONS, Generation
from leadline.storage.agents.rows import AgentRow
from leadline.storage.agents.tables import agents
from leadline.storage.agents.transactions.claim_jobs import ClaimedJobs, claim_jobs
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.scheduling.queries import shards as shards_queries
from leadline.storage.scheduling.rows import OpenBatch
from leadline.storage.scheduling.rules.run_schedule import claimable_until
from leadline.storage.scheduling.tables import presences
from leadline.storage.scheduling.tables import work_queues as queues
from leadline.storage.scheduling.transactions.split_batch import split_batch
from tests.support.peers.real_servers import pems
from tests.support.worlds.world import World

REGION = "eu"
CHAIN, KEY = pems(trustme.CA().issue_cert("leadline.example"))
CONFIGS: dict[str, dict[str, Any]] = {
    "client_cert": {"client_cert": CHAIN, "client_key": KEY},
    "oauth2_token_url": {
        "auth_mode": "oauth2",
        "oauth2_token_url": "https://id.example/token",
        "oauth2_client_id": "shop",
        "oauth2_client_secret": "horse",
    },
    "proxy_url": {"proxy_url": "http://proxy.example:3128"},
}
Window = tuple[int, Instant]


async def register_agent(world: World, name: str, carrier: int = Generation.WORKFLOWS) -> AgentRow:
    async with world.pool.transaction("hear") as tx:
        row = await agents.hear(tx, f"agent:{name}", REGION, UUID(int=0), name)
        await agents.record_heartbeat(tx, row.holder, "1", [], carrier)
        return await agents.hear(tx, f"agent:{name}", REGION, UUID(int=0), name)


async def claim(
    world: World, agent: AgentRow, most: int = 10, kinds: Collection[str] = ()
) -> list[ClaimedJobs]:
    async with world.pool.transaction("claim") as tx:
        shards = [shard.id for shard in await shards_queries.select_shards(tx, [REGION])]
        return await claim_jobs(tx, agent, kinds, shards, most, 4)


async def lease(world: World, process: UUID, have: list[int], most: int = 5) -> list[Any]:
    async with world.pool.transaction("lease") as tx:
        shards = [shard.id for shard in await shards_queries.select_shards(tx, [REGION])]
        return await queues.lease_batches(tx, process, shards, have, most)


async def present(world: World, process: UUID) -> None:
    async with world.pool.transaction("present") as tx:
        await presences.begin_presence(
            tx, process, world.now, "here", ["worker"], [REGION], "1", accepts_pushes=False
        )


async def windows_of_slices(world: World) -> list[Window]:
    rows = await world.rows(
        "select w.monitor, w.due"
        " from run_batches s cross join unnest(s.monitors, s.due_ats) as w(monitor, due)"
    )
    return [(monitor, due) for monitor, due in rows]


@dataclass
class Book:
    """The holder of each window, and the end of its lease."""

    world: World
    given: dict[Window, tuple[UUID, Instant]] = field(default_factory=dict)
    dead: set[UUID] = field(default_factory=set)

    def is_held(self, window: Window, by: UUID) -> bool:
        holder, until = self.given.get(window, (by, Instant(0)))
        return holder != by and holder not in self.dead and until > self.world.now

    def give(self, window: Window, to: UUID, until: Instant) -> None:
        assert not self.is_held(window, to), "it was another's"
        self.given[window] = (to, until)


@pytest.mark.parametrize("seed", range(6))
async def test_each_window_has_one_holder_at_a_time_and_none_is_lost(
    world: World, seed: int
) -> None:
    dice = random.Random(seed)
    for n in range(dice.randint(3, 120)):
        await world.monitor(
            region=REGION,
            interval_seconds=dice.choice([5, 20, 60]),
            timeout_seconds=dice.choice([1, 5]),
            target=f"http://127.0.0.1/{n}",
        )
    await world.forget_jobs()
    ticker = Ticker(world.pool, lambda: world.now)
    book = Book(world)
    fleet = [await register_agent(world, name) for name in ("a", "b", "c")]
    workers = [uuid7(), uuid7()]
    known: set[Window] = set()
    for worker in workers:
        await present(world, worker)
    for _ in range(25):
        match dice.choice(["tick", "tick", "claim", "claim", "lease", "die"]):
            case "tick":
                world.now = Instant(world.now + dice.randint(1, 20) * SECOND)
                await ticker.pass_once()
                known |= set(await windows_of_slices(world))
                for worker in workers:
                    if worker not in book.dead:
                        await renew(world, worker)
            case "claim":
                agent = dice.choice(fleet)
                for run in await claim(world, agent, dice.choice([1, 3, 10, 100])):
                    interval_us = run.definition.interval_seconds * SECOND
                    assert claimable_until(run.due, interval_us) > world.now
                    book.give((run.definition.id, run.due), agent.holder, run.lease_until)
            case "lease":
                worker = dice.choice(workers)
                if worker not in book.dead:
                    for item in await lease(world, worker, []):
                        for monitor, due in zip(item.monitors, item.due_ats, strict=True):
                            book.give((monitor, due), worker, Instant(2**62))
            case "die":
                if len(book.dead) < len(workers) - 1:
                    worker = dice.choice(workers)
                    await silence(world, worker)
                    book.dead.add(worker)
        found = await windows_of_slices(world)
        assert len(found) == len(set(found)), "a window is in two run batches"
        assert set(found) == known, "a window was lost"


async def renew(world: World, process: UUID) -> None:
    async with world.pool.transaction("renew") as tx:
        await tx.execute(
            "update presences set through_at = at(%(now)s) where process = %(process)s",
            now=world.now,
            process=process,
        )


async def silence(world: World, process: UUID) -> None:
    """Its last presence is long ago."""
    async with world.pool.transaction("silence") as tx:
        await tx.execute(
            "update presences set from_at = from_at - interval '1 day', through_at = from_at -"
            " interval '1 day' where process = %(process)s",
            process=process,
        )


async def reserved(world: World, count: int = 1, **given: Any) -> list[MonitorRow]:
    """Monitors in the region, one window of each due now."""
    made = [
        await world.monitor(region=REGION, interval_seconds=60, timeout_seconds=10, **given)
        for _ in range(count)
    ]
    await world.forget_jobs()
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()
    world.now = Instant(world.now + 58 * SECOND)
    await ticker.pass_once()
    world.now = max(due for _, due in await windows_of_slices(world))
    return made


async def test_a_lease_that_ran_out_is_given_out_again_while_the_window_is(world: World) -> None:
    await reserved(world)
    one, other = await register_agent(world, "one"), await register_agent(world, "other")
    (run,) = await claim(world, one)
    assert await claim(world, other) == await claim(world, one) == []
    world.now = run.lease_until
    (again,) = await claim(world, other)
    assert (again.due, again.definition.id) == (run.due, run.definition.id)
    world.now = Instant(run.due + 60 * SECOND)
    assert await claim(world, one) == []


async def test_a_worker_claims_the_window_of_an_expired_agent(world: World) -> None:
    await reserved(world)
    (run,) = await claim(world, await register_agent(world, "one"))
    worker = uuid7()
    await present(world, worker)
    assert await lease(world, worker, []) == []
    world.now = run.lease_until
    await renew(world, worker)
    (item,) = await lease(world, worker, [])
    assert item.due_ats == [run.due]


async def test_a_window_with_a_result_is_not_given_out(world: World) -> None:
    await reserved(world)
    one = await register_agent(world, "one")
    (run,) = await claim(world, one)
    async with world.pool.transaction("settle") as tx:
        await tx.execute(
            "insert into expected_runs (org, monitor, due_at, settled_at, verdict)"
            " values (%(org)s, %(monitor)s, at(%(due)s), at(%(due)s), 'covered')",
            org=run.definition.org,
            monitor=run.definition.id,
            due=run.due,
        )
    world.now = run.lease_until
    assert await claim(world, one) == []


async def test_of_many_windows_only_those_taken_were_claimed(world: World) -> None:
    await reserved(world, 7)
    assert len(await claim(world, await register_agent(world, "one"), 3)) == 3
    rows = await world.rows(
        "select claimed, cardinality(due_ats) from run_batches order by claimed"
    )
    assert sum(count for claimed, count in rows if claimed) == 3
    assert sum(count for claimed, count in rows if not claimed) == 4


async def test_a_newer_monitor_type_needs_its_capability(world: World) -> None:
    (row,) = await reserved(world, type="smtp", target="mail.example")
    old = await register_agent(world, "old")
    assert await claim(world, old) == []
    troubles = "select reason from probe_errors where monitor = %(m)s"
    assert await world.rows(troubles, m=row.id) == [("carrier_too_old",)]
    (run,) = await claim(world, old, kinds=["smtp@1"])
    assert run.definition.type == "smtp"


async def test_a_schedule_needs_its_capability(world: World) -> None:
    """An agent without it would run the windows of an interval while it is offline."""
    knowing = ["cron_schedule@1"]
    old = await register_agent(world, "old")
    made = await world.monitor(region=REGION, schedule="* * * * *")
    # The run at the creation has no window.
    assert await claim(world, old) == []
    assert [run.definition.id for run in await claim(world, old, kinds=knowing)] == [made.id]
    world.now = Instant(world.now + 30 * SECOND)
    await reserved(world, schedule="* * * * *")
    assert await claim(world, old) == []
    troubles = "select distinct reason from probe_errors where monitor = %(m)s"
    assert await world.rows(troubles, m=made.id) == [("carrier_too_old",)]
    runs = await claim(world, old, kinds=knowing)
    assert len(runs) == 2
    assert {(run.definition.schedule, run.due % MINUTE) for run in runs} == {("* * * * *", 0)}


@pytest.mark.parametrize("setting", OPTIONS)
async def test_a_setting_needs_its_capability(world: World, setting: str) -> None:
    """An agent without it would ignore the setting, and report the target as down."""
    config, knowing = CONFIGS[setting], [OPTIONS[setting]]
    old = await register_agent(world, "old")
    made = await world.monitor(region=REGION, target="https://shop.example/", config=config)
    # The run at the creation has no window.
    assert await claim(world, old) == []
    assert [run.definition.id for run in await claim(world, old, kinds=knowing)] == [made.id]
    world.now = Instant(world.now + 30 * SECOND)
    (row,) = await reserved(world, target="https://shop.example/", config=config)
    assert await claim(world, old, kinds=["cron_schedule@1", "smtp@1"]) == []
    troubles = "select reason from probe_errors where monitor = %(m)s"
    assert await world.rows(troubles, m=row.id) == [("carrier_too_old",)]
    assert {run.definition.id for run in await claim(world, old, kinds=knowing)} >= {row.id}


async def test_a_domain_needs_its_capability_everywhere(world: World) -> None:
    given = {"type": "domain", "target": "example.com", "interval_seconds": 3_600}
    old = await register_agent(world, "old")
    made = await world.monitor(region=REGION, **given)
    assert await claim(world, old, kinds=["smtp@1"]) == []
    assert [run.definition.id for run in await claim(world, old, kinds=["domain@1"])] == [made.id]
    async with world.pool.transaction("old") as tx:
        await presences.begin_presence(
            tx, UUID(int=7), world.now, "here", ["worker"], ["core"], "1", accepts_pushes=False
        )
        await tx.execute("update presences set knows = '{client_cert@1}'")
    with pytest.raises(Refused, match="type"):
        await world.monitor(**given)


@pytest.mark.parametrize("setting", OPTIONS)
async def test_a_process_of_an_earlier_version_prevents_the_setting(
    world: World, setting: str
) -> None:
    given: dict[str, Any] = {"target": "https://shop.example/", "config": CONFIGS[setting]}
    async with world.pool.transaction("old") as tx:
        await presences.begin_presence(
            tx, UUID(int=7), world.now, "here", ["worker"], ["core"], "1", accepts_pushes=False
        )
        await tx.execute("update presences set knows = '{}'")
    with pytest.raises(Refused, match=f"config.{setting}"):
        await world.monitor(**given)
    await world.monitor()
    world.now = Instant(world.now + MINUTE)
    await world.monitor(**given)


async def test_abilities_of_different_agents_do_not_add_up(world: World) -> None:
    """One understands passwords, the other the type: neither can run the monitor."""
    config = {"username": "a", "password": "horse", "encryption": "tls"}
    (row,) = await reserved(world, type="smtp", target="mail.example", config=config)
    new = await register_agent(world, "new")
    plain = await register_agent(world, "plain", Generation.PLAIN)
    async with world.pool.transaction("declare") as tx:
        await agents.record_heartbeat(tx, plain.holder, "1", ["smtp@1"], Generation.PLAIN)
    assert await claim(world, plain, kinds=["smtp@1"]) == []
    assert await claim(world, new) == []
    troubles = "select reason from probe_errors where monitor = %(m)s"
    assert await world.rows(troubles, m=row.id) == [("carrier_too_old",)]


async def test_an_agent_too_old_for_a_secret_never_receives_it(world: World) -> None:
    config = {"auth_mode": "basic", "username": "shop", "password": "horse"}
    (row,) = await reserved(world, config=config)
    old = await register_agent(world, "old", Generation.PLAIN)
    assert await claim(world, old) == []
    troubles = "select reason from probe_errors where monitor = %(m)s"
    assert await world.rows(troubles, m=row.id) == [("carrier_too_old",)]
    (run,) = await claim(world, await register_agent(world, "new"))
    assert run.carrier is Generation.PASSWORDS


async def test_no_reason_is_recorded_if_another_agent_can_run_the_window(world: World) -> None:
    config = {"auth_mode": "basic", "username": "shop", "password": "horse"}
    (row,) = await reserved(world, config=config)
    await register_agent(world, "new")
    assert await claim(world, await register_agent(world, "old", Generation.PLAIN)) == []
    assert await world.rows("select 1 from probe_errors where monitor = %(m)s", m=row.id) == []


@pytest.mark.parametrize("carrier", list(Generation))
async def test_jobs_without_a_window_go_by_the_same_rule(world: World, carrier: Generation) -> None:
    await world.monitor(region=REGION)
    config = {"auth_mode": "basic", "username": "shop", "password": "horse"}
    await world.monitor(region=REGION, config=config)
    await world.monitor(region="core")
    runs = await claim(world, await register_agent(world, "one", carrier))
    assert all(run.job is not None for run in runs)
    assert len(runs) == (1 if carrier < Generation.PASSWORDS else 2)
    assert await claim(world, await register_agent(world, "two", carrier)) == []
    world.now = Instant(world.now + 10 * SECOND)
    assert all(run.lease_until > world.now for run in runs)


def test_a_slice_is_parted_without_remainder() -> None:
    item = OpenBatch(
        1,
        2,
        [1, 1, 1],
        [4, 5, 6],
        *([Instant(n), Instant(n + 1), Instant(n + 2)] for n in (0, 9, 5)),
    )
    taken, left = split_batch(item, [2, 0])
    assert (taken.monitors, taken.due_ats) == ([4, 6], [0, 2])
    assert left is not None
    assert (left.monitors, left.seal_ats) == ([5], [10])
    assert split_batch(item, [0, 1, 2])[1] is None
