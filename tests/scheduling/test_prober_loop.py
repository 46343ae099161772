"""The prober: the work that it claims and the runs that it completes, with probes that the test
controls.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import prober as prober_module
from leadline.daemon.loops.check_cache import CachedCheck, CheckCache
from leadline.daemon.loops.prober import Prober
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import AHEAD_US, Ticker
from leadline.probes.check.check import Check, make_check
from leadline.probes.check.result import Phases, Result, RunOutcome
from leadline.probes.net.egress import Egress
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.run_now import run_now
from leadline.storage.results.event_bus import Bus
from leadline.storage.scheduling.rows import NO_LIMITS, JobLimits, LeasedBatch
from leadline.storage.scheduling.tables import presences
from leadline.storage.scheduling.tables import work_queues as queues
from tests.support.worlds.world import REGIONS, START, World

Says = Callable[[Check], bool | None]


def fake_run(says: Says) -> Callable[..., Any]:
    async def run(check: Check, _reach: Egress, clock: Callable[[], Instant], _org: int) -> Result:
        await trio.lowlevel.checkpoint()
        outcome = RunOutcome.DOWN if says(check) is False else RunOutcome.UP
        return Result(clock(), outcome, 1, None, "", Phases())

    return run


@asynccontextmanager
async def probing(
    world: World, process: UUID, regions: tuple[str, ...] = ("core",), permits: int = 100
) -> AsyncIterator[Prober]:
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    catalogue = CheckCache(world.pool, world.keyring, lambda: world.now)
    prober = Prober(
        world.pool,
        process,
        regions,
        catalogue,
        recorder,
        cast("Egress", None),
        trio.CapacityLimiter(permits),
        lambda: world.now,
    )
    async with trio.open_nursery() as recording:
        await recording.start(recorder.run)
        async with trio.open_nursery() as running:
            await running.start(prober.run)
            yield prober
            prober.close()
        recorder.close()


async def settled(world: World, query: str, expected: list[tuple[Any, ...]]) -> None:
    """Waits until the query returns `expected`; fails after 30 seconds."""
    with trio.fail_after(30):
        while await world.rows(query) != expected:  # noqa: ASYNC110 - another connection writes
            await trio.sleep(0.01)


async def test_each_failure_below_the_threshold_is_confirmed_and_not_only_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: False))
    row = await world.monitor(
        # The interval is long, so that no window falls due during the test with any anchor.
        failure_threshold=4,
        interval_seconds=86_400,
        confirm_interval_seconds=10,
    )
    async with probing(world, uuid7()) as prober:
        for failures in (1, 2, 3):
            await prober.pass_once()
            await settled(world, "select failures from monitor_states", [(failures,)])
            await settled(world, "select reason from jobs", [("confirm",)])
            world.now = Instant(world.now + 11 * SECOND)
        await prober.pass_once()
        await settled(world, "select status, failures from monitor_states", [("down", 4)])
    assert [ts - START for ts, _, _ in await world.beats(row)] == [
        n * 11 * SECOND for n in range(4)
    ]


async def test_a_prober_that_finished_its_batch_claims_more_immediately(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    for _ in range(160):
        await world.monitor(interval_seconds=60)
    await world.forget_jobs()
    ticker = Ticker(world.pool, lambda: world.now)
    await ticker.pass_once()
    world.now = Instant(world.now + 59 * SECOND)
    await ticker.pass_once()
    ((due,),) = await world.rows(
        "select count(*) from run_batches s cross join unnest(s.due_ats) as due"
        " where s.published and due <= at(%(now)s)",
        now=world.now,
    )
    async with probing(world, uuid7(), permits=10) as prober, trio.open_nursery() as nursery:

        async def look_only_when_woken() -> None:
            while True:
                await prober.pass_once()
                await prober.wake.wait(3_600)

        nursery.start_soon(look_only_when_woken)
        await settled(world, "select count(*) from heartbeats", [(due,)])
        nursery.cancel_scope.cancel()


async def test_while_no_permit_is_free_edits_are_read_and_finished_slices_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor()
    async with probing(world, uuid7()) as prober:
        permits = prober._permits

        async def taken_meanwhile(*_given: Any) -> dict[Any, Any]:
            for n in range(100):
                permits.acquire_on_behalf_of_nowait(n)
            return {}

        # The last permit goes between the question how many are free and the taking of one.
        monkeypatch.setattr(prober._catalogue, "find", taken_meanwhile)
        with trio.fail_after(30):
            await prober.pass_once()
        for n in range(100):
            permits.release_on_behalf_of(n)
        await settled(world, "select 1 from jobs", [])


COVERED = "select count(*) from ledger where verdict = 'covered'"


async def attend(world: World, process: UUID, through: Instant) -> None:
    async with world.pool.transaction("attend") as tx:
        await presences.begin_presence(
            tx, process, through, "there", ["worker"], ["core"], "0", accepts_pushes=False
        )


async def lease_jobs(
    world: World, process: UUID, most: int, limits: JobLimits = NO_LIMITS
) -> list[tuple[int, int]]:
    shards = [shard for (shard,) in await world.rows("select id from shards")]
    async with world.pool.transaction("lease") as tx:
        jobs = await queues.lease_jobs(tx, process, shards, most, limits)
    return [(job.org, job.monitor) for job in jobs]


async def test_an_outage_of_one_organization_delays_no_job_of_another(world: World) -> None:
    rows = [await world.monitor() for _ in range(6)]
    other = rows[-1]
    # The organization of the last monitor is another one, and its job the newest.
    async with world.pool.transaction("move") as tx:
        await tx.execute("set local session_replication_role = replica")
        await tx.execute("update jobs set org = 77 where id = (select max(id) from jobs)")
    process = uuid7()
    await attend(world, process, world.now)
    assert set(await lease_jobs(world, process, 2)) == {(77, other.key[1]), rows[0].key}
    none = JobLimits({(world.org, False): 0, (77, False): 0})
    assert await lease_jobs(world, process, 9, none) == []
    one = JobLimits({(world.org, False): 1})
    assert len(await lease_jobs(world, process, 9, one)) == 1
    assert len(await lease_jobs(world, process, 9)) == 3
    assert await lease_jobs(world, process, 9) == []


async def test_costly_monitors_of_an_organization_delay_no_job_of_its_others(
    world: World,
) -> None:
    rows = [await world.monitor() for _ in range(8)]
    keys = [row.key for row in rows]
    process = uuid7()
    await attend(world, process, world.now)
    # The first six are costly, named as exceptions or as all but the exceptions.
    rooms = {(world.org, True): 0, (world.org, False): 1}
    first = await lease_jobs(world, process, 9, JobLimits(rooms, (), keys[:6]))
    others = JobLimits(rooms, [world.org], keys[6:])
    second = await lease_jobs(world, process, 9, others)
    assert (len(first), len(second)) == (1, 1)
    assert {*first, *second} == set(keys[6:])
    assert await lease_jobs(world, process, 9, others) == []
    one = await lease_jobs(world, process, 9, JobLimits({(world.org, True): 1}, [world.org]))
    assert len(one) == 1
    assert {*one, *await lease_jobs(world, process, 9)} == set(keys[:6])


async def test_each_job_is_leased_by_one_of_many_processes(world: World) -> None:
    for _ in range(40):
        await world.monitor()
    leased: list[tuple[int, int]] = []

    async def lease_some() -> None:
        process = uuid7()
        await attend(world, process, world.now)
        while found := await lease_jobs(world, process, 3):
            leased.extend(found)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(lease_some)
    assert len(leased) == len(set(leased)) == 40


async def test_jobs_of_silent_targets_leave_permits_for_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass leases further jobs of an outage, until the organization has its share."""

    async def run(_check: Check, _reach: Egress, clock: Callable[[], Instant], _org: int) -> Result:
        await trio.sleep_forever()
        return Result(clock(), RunOutcome.UP, 1, None, "", Phases())

    for _ in range(30):
        await world.monitor(interval_seconds=86_400)
    monkeypatch.setattr(prober_module, "run", run)
    async with probing(world, uuid7(), permits=20) as prober:
        monkeypatch.setattr(prober_module, "JOBS_AT_ONCE", 3)
        # A window of another organization, which is due later.
        later = Instant(world.now + 3_600 * SECOND)
        await prober._take(LeasedBatch(9, 1, [77], [1], [later], [later]))
        for _ in range(12):
            await prober.pass_once()
        assert 20 * 2 // 3 <= prober._permits.borrowed_tokens < 20
        assert prober._running is not None
        prober._running.cancel_scope.cancel()


async def test_runs_of_another_region_are_not_run_here(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(prober_module, "run", fake_run(lambda check: asked.append(check.host)))
    await world.monitor(target="http://here/", interval_seconds=60)
    await world.monitor(target="http://there/", interval_seconds=60, region="eu")
    await world.forget_jobs()
    process = uuid7()
    async with probing(world, process) as prober:
        ticker = Ticker(
            world.pool,
            lambda: world.now,
            holder=process,
            hand_out=prober.hand_out,
            regions=("core",),
        )
        world.now = Instant(START + 58_500_000)
        await ticker.pass_once()
        world.now = Instant(START + 60 * SECOND)
        await settled(world, COVERED, [(1,)])
    assert asked == ["here"]
    left = await world.rows("select holder, claimed from run_batches where shard = 2")
    assert left == [(None, False)]


@pytest.mark.parametrize("permits", [100, 3])
async def test_run_batches_of_another_scheduler_are_claimed(
    world: World, monkeypatch: pytest.MonkeyPatch, permits: int
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    for _ in range(20):
        await world.monitor(interval_seconds=30, timeout_seconds=1)
    await world.forget_jobs()
    world.now = Instant(START + 30 * SECOND - AHEAD_US)
    await Ticker(world.pool, lambda: world.now).pass_once()
    world.now = Instant(START + 30 * SECOND)
    async with probing(world, uuid7(), permits=permits) as prober:
        await prober.pass_once()
        await settled(world, COVERED, [(20,)])


async def test_new_batches_are_claimed_before_those_with_windows_left(world: World) -> None:
    """Otherwise the windows that an overloaded process cannot run would delay all later ones."""
    process = uuid7()
    for _ in range(30):
        await world.monitor(interval_seconds=60)
    ticker = Ticker(world.pool, lambda: world.now)

    async def lease(most: int) -> list[int]:
        world.now = Instant(world.now + SECOND)
        await attend(world, process, world.now)
        await ticker.pass_once()
        shards = [shard for (shard,) in await world.rows("select id from shards")]
        async with world.pool.transaction("lease") as tx:
            return [one.id for one in await queues.lease_batches(tx, process, shards, [], most)]

    claimed: list[int] = []
    while not claimed:
        claimed = await lease(9)
    # Until the process may claim its own windows again, and new ones are there.
    unclaimed: list[int] = []
    while len(unclaimed) < 5:
        await lease(0)
        unclaimed = [
            id_ for (id_,) in await world.rows("select id from run_batches where not claimed")
        ]
    assert await lease(1) != claimed[:1]
    assert not set(await lease(2)) & set(claimed)
    assert set(await lease(99)) >= set(claimed)


@pytest.mark.parametrize(("seconds", "taken"), [(14, False), (16, True)])
async def test_a_dead_process_loses_its_slices_by_the_clock_it_was_seen_by(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: int, taken: bool
) -> None:
    """The product's clock is years from the server's here, as after a host clock was set."""
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor(interval_seconds=60, timeout_seconds=1)
    await world.forget_jobs()
    world.now = Instant(START + 60 * SECOND)
    dead = uuid7()
    ticker = Ticker(world.pool, lambda: world.now, holder=dead, regions=("core",))
    await ticker.pass_once()
    ((due,),) = await world.rows("select max(first_due) from run_batches")
    await attend(world, dead, due)
    world.now = Instant(due + seconds * SECOND)
    async with probing(world, uuid7()) as prober:
        await prober.pass_once()
        if taken:
            await settled(world, COVERED, [(1,)])
    assert await world.rows("select count(*) from heartbeats") == [(int(taken),)]


async def test_a_run_batch_that_its_own_prober_did_not_get_is_claimed_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor(interval_seconds=60, timeout_seconds=1)
    await world.forget_jobs()
    process = uuid7()
    world.now = Instant(START + 60 * SECOND)
    # The batch is committed, but the prober gets no notice.
    await Ticker(world.pool, lambda: world.now, holder=process, regions=("core",)).pass_once()
    ((due,),) = await world.rows("select max(first_due) from run_batches")
    await attend(world, process, Instant(due + 60 * SECOND))
    async with probing(world, process) as prober:
        world.now = Instant(due + 4 * SECOND)
        await prober.pass_once()
        assert await world.rows("select 1 from heartbeats") == []
        world.now = Instant(due + 5 * SECOND)
        await prober.pass_once()
        await settled(world, COVERED, [(1,)])


@pytest.mark.parametrize("windowed", [True, False])
async def test_a_run_with_an_outdated_check_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch, windowed: bool
) -> None:
    """The worker has not yet read the edit that corrects the target."""
    asked: list[str] = []

    def says(check: Check) -> bool:
        asked.append(check.host)
        return check.host == "mended"

    monkeypatch.setattr(prober_module, "run", fake_run(says))
    row = await world.monitor(target="http://broken/", interval_seconds=60, timeout_seconds=5)
    async with probing(world, uuid7()) as prober:
        await prober._catalogue.find([row.key])
        monkeypatch.setattr(prober._catalogue, "refresh", no_edits)
        await world.forget_jobs()
        # So that exactly one window is reserved, wherever the anchor lies.
        world.now = Instant(START + 60 * SECOND - AHEAD_US)
        async with world.pool.transaction("edit") as tx:
            await edit_monitor(
                tx, world.editor, row.uid, {"target": "http://mended/"}, world.keyring, REGIONS
            )
        if windowed:
            await world.forget_jobs()
            await Ticker(world.pool, lambda: world.now).pass_once()
        world.now = Instant(START + 60 * SECOND)
        await prober.pass_once()
        await settled(world, "select status from monitor_states", [("up",)])
    # The check of a job is read again at the claim, the check of a window only when it is outdated.
    assert asked == (["broken", "mended"] if windowed else ["mended"])
    assert [up for _, up, _ in await world.beats(row)] == [True]
    assert len(await world.ledger(row)) == windowed


async def no_edits(_shards: object) -> int:
    return 0


async def test_a_prober_with_an_outdated_pause_runs_the_job_of_a_resume(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edits are read before the commit of the resume, and the job is leased after it."""
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    row = await world.monitor(interval_seconds=3600)
    async with probing(world, uuid7()) as prober:
        for enabled in (False, True):
            async with world.pool.transaction("edit") as tx:
                given = {"enabled": enabled}
                await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)
            if not enabled:
                await prober.pass_once()
        monkeypatch.setattr(prober._catalogue, "refresh", no_edits)
        await prober.pass_once()
        await settled(world, "select status from monitor_states", [("up",)])


async def test_a_pass_that_outlives_the_prober_begins_no_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are cancelled together, and the commit of a pass can end after the runs."""
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor()
    async with probing(world, uuid7()) as prober:
        await prober.pass_once()
        find = prober._catalogue.find

        async def found_too_late(keys: Any) -> Any:
            found = await find(keys)
            prober.close()
            while prober._running is not None:  # noqa: ASYNC110 - the prober sets no event
                await trio.sleep(0.01)
            return found

        monkeypatch.setattr(prober._catalogue, "find", found_too_late)
        with trio.fail_after(30):
            async with world.pool.transaction("ask") as tx:
                await run_now(tx, world.editor, world.made[0].uid)
            await prober.pass_once()
    assert prober.counts.started <= 1


@pytest.mark.parametrize("steps", range(6))
async def test_jobs_claimed_while_the_prober_ends_cause_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """At any step of the end the jobs stay, and are claimed again when the lease expires."""
    monkeypatch.setattr(prober_module, "run", fake_run(lambda _check: True))
    await world.monitor()

    async def ending(*_given: Any) -> dict[Any, Any]:
        prober.close()
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        return {}

    async with probing(world, uuid7()) as prober:
        monkeypatch.setattr(prober._catalogue, "find", ending)
        await prober.pass_once()
    assert await world.rows("select count(*) from jobs") == [(1,)]


async def _find_one_check(keys: Sequence[MonitorKey]) -> dict[MonitorKey, CachedCheck]:
    await trio.lowlevel.checkpoint()
    check = make_check("tcp", "127.0.0.1:1", None, {}, ())
    entry = CachedCheck(uuid7(), 1, frozenset(), 1, 60 * SECOND, 10 * SECOND, True, check)
    return dict.fromkeys(keys, entry)


async def test_slow_runs_of_one_organization_leave_permits_for_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty runs never end, on eight permits. The run of the other organization starts."""
    slow, quick = 1, 2
    started: list[int] = []

    async def run(check: Check, _reach: Egress, clock: Callable[[], Instant], org: int) -> Result:
        started.append(org)
        if org == slow:
            await trio.sleep_forever()
        return Result(clock(), RunOutcome.UP, 1, None, "", Phases())

    monkeypatch.setattr(prober_module, "run", run)
    async with probing(world, uuid7(), permits=8) as prober:
        monkeypatch.setattr(prober._catalogue, "find", _find_one_check)
        ahead = Instant(world.now + 60 * SECOND)
        orgs = [slow] * 20 + [quick]
        leased = LeasedBatch(1, 1, orgs, list(range(21)), [world.now] * 21, [ahead] * 21)
        # More batches exist. The windows of the slow one that wait are no reason to lease none.
        prober._wants_more = True
        await prober._take(leased)
        with trio.fail_after(30):
            while quick not in started:  # noqa: ASYNC110 - the prober sets no event
                await trio.sleep(0.01)
            await prober.wake.wait(60.0)
        assert not prober._wants_more
        assert started.count(slow) < 8
        assert prober._running is not None
        prober._running.cancel_scope.cancel()


async def test_costly_runs_of_one_organization_leave_the_cpu_for_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    costly, quick = 1, 2
    running, most = 0, 0
    done: list[int] = []

    async def run(_check: Check, _reach: Egress, clock: Callable[[], Instant], org: int) -> Result:
        nonlocal running, most
        if org == costly:
            running += 1
            most = max(most, running if len(done) > 60 else 0)
            await trio.sleep(0.002)
            running -= 1
        done.append(org)
        cpu_us = 500_000 if org == costly else 400
        return Result(clock(), RunOutcome.UP, 1, None, "", Phases(), cpu_us=cpu_us)

    monkeypatch.setattr(prober_module, "run", run)
    async with probing(world, uuid7()) as prober:
        monkeypatch.setattr(prober._catalogue, "find", _find_one_check)
        ahead = Instant(world.now + 3_600 * SECOND)
        orgs = [quick] + [costly] * 120
        await prober._take(
            LeasedBatch(1, 1, orgs, list(range(121)), [world.now] * 121, [ahead] * 121)
        )
        with trio.fail_after(30):
            while len(done) < 121:
                await trio.sleep(0.01)
                # The organization rests after its runs.
                world.now = Instant(world.now + 2 * SECOND)
        assert prober._running is not None
        prober._running.cancel_scope.cancel()
    assert 1 <= most <= 3
