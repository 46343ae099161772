"""Several processes of each role on one database, cancelled at any await and restarted: each window
has one verdict or is reserved, no result is stored twice, and each state follows its newest result.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import prober as prober_module
from leadline.daemon.loops.check_cache import CheckCache
from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.presence_renewer import PresenceRenewer, ProcessIdentity
from leadline.daemon.loops.prober import Prober
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.probes.check.check import Check
from leadline.probes.check.result import Phases, Result, RunOutcome
from leadline.probes.net.egress import Egress
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Isolation
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import IncomingResult
from leadline.storage.scheduling.queries import shards
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.tables import shards as schedules
from tests.support.run.effort import varied
from tests.support.worlds.world import REGIONS, World

# How much product time passes in each real second, so that minutes are seen in seconds.
SPEED = 40
REAL_SECONDS = 6.0
PAUSE_SECONDS = 0.03

_BEATS = "select ts, up, msg from heartbeats where monitor = %(monitor)s order by ts"
_COVERED = """
select due_at from ledger
where monitor = %(monitor)s and verdict in ('covered', 'covered_late') order by due_at
"""
_STATE = "select status, failures from monitor_states where monitor = %(monitor)s"


class Processes:
    """Workers that start and end in a world whose clock runs fast."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.probed: Counter[str] = Counter()

    async def keep_time(self) -> None:
        began, start = trio.current_time(), self.world.now
        while True:
            self.world.now = Instant(start + int((trio.current_time() - began) * SPEED * SECOND))
            await trio.sleep(0.005)

    async def probe(
        self, check: Check, _reach: Egress, clock: Callable[[], Instant], _org: int
    ) -> Result:
        started = clock()
        self.probed[check.host] += 1
        await trio.sleep(self.chance.random() * 0.05)
        outcome = RunOutcome.UP if self.chance.random() < 0.6 else RunOutcome.DOWN
        return Result(started, outcome, 1, None, "", Phases())

    async def loop(self, pass_once: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await pass_once()
            except Unavailable:
                await trio.sleep(PAUSE_SECONDS)
            await trio.sleep(self.chance.random() * 2 * PAUSE_SECONDS)

    async def scheduler(self) -> None:
        world = self.world
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.loop, Ticker(world.pool, lambda: world.now).pass_once)
            nursery.start_soon(self.loop, MonitorSealer(world.pool, lambda: world.now).pass_once)
            nursery.start_soon(self.loop, Repairer(world.pool).pass_once)

    async def worker(self) -> None:
        world, process = self.world, uuid7()
        recorder = Recorder(world.pool, Bus(), lambda: world.now)
        prober = self._prober(process, recorder)
        who = ProcessIdentity(process, "here", ["worker"], ("core",), "0", accepts_pushes=False)
        attendance = PresenceRenewer(world.pool, who, lambda: world.now, recorder.committed_through)
        async with trio.open_nursery() as nursery:
            await attendance.pass_once()
            nursery.start_soon(self.loop, attendance.pass_once)
            await nursery.start(recorder.run)
            await nursery.start(prober.run)
            nursery.start_soon(self.loop, prober.pass_once)

    def _prober(self, process: UUID, recorder: Recorder) -> Prober:
        world = self.world
        catalogue = CheckCache(world.pool, world.keyring, lambda: world.now)
        return Prober(
            world.pool,
            process,
            ("core",),
            catalogue,
            recorder,
            cast("Egress", None),
            trio.CapacityLimiter(60),
            lambda: world.now,
        )

    async def killed_at_random(self, role: Callable[[], Awaitable[None]]) -> None:
        """Runs a role, cancels it after a random time and starts it again."""
        while True:
            with trio.move_on_after(0.3 + self.chance.random() * 1.5):
                await role()
            await trio.sleep(self.chance.random() * 0.2)

    async def live(self) -> None:
        with trio.move_on_after(REAL_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.keep_time)
                for role in (self.scheduler, self.scheduler, *[self.worker] * 3):
                    nursery.start_soon(self.killed_at_random, role)
                nursery.start_soon(self.edit_now_and_then)

    async def edit_now_and_then(self) -> None:
        world = self.world
        while True:
            await trio.sleep(self.chance.random() * 0.8)
            row = self.chance.choice(world.made)
            changes: list[dict[str, Any]] = [{"enabled": True}, {"enabled": False}]
            changes += [{"interval_seconds": seconds} for seconds in (5, 10, 20)]
            async with world.pool.transaction("edit") as tx:
                change = self.chance.choice(changes)
                await edit_monitor(tx, world.editor, row.uid, change, world.keyring, REGIONS)


@pytest.mark.parametrize("seed", varied([0], range(4)))
async def test_killed_processes_leave_one_verdict_per_window_and_one_row_per_result(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(world, random.Random(seed))
    monkeypatch.setattr(prober_module, "run", processes.probe)
    told = arrival_with_its_window(prober_module.arrival_of)
    monkeypatch.setattr(prober_module, "arrival_of", told)
    for n in range(12):
        await world.monitor(
            interval_seconds=[5, 10, 20][n % 3],
            timeout_seconds=5,
            failure_threshold=1 + n % 3,
            confirm_interval_seconds=5 * (n % 2),
            target=f"http://m{n}/",
        )
    verdicts = Counter[str]()
    # On a busy machine the processes do less in the same time.
    with trio.fail_after(20 * REAL_SECONDS):
        while len(processes.probed) < 12 or verdicts["covered"] <= 10:
            await processes.live()
            verdicts.clear()
            for row in world.made:
                verdicts.update(await expect_each_window_once(world, row))
                await expect_state_of_newest(world, row)
    # No process is killed from here on, so the open windows are settled.
    world.now = Instant(world.now + 5 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    await MonitorSealer(world.pool, lambda: world.now).pass_once()
    for row in world.made:
        left = await expect_each_window_once(world, row)
        open_until = world.now - 130 * SECOND
        assert left["reserved"] <= (world.now + 2 * SECOND - open_until) // (5 * SECOND) + 1


def arrival_with_its_window(make: Callable[..., IncomingResult]) -> Callable[..., IncomingResult]:
    """Writes into each result's message which window it answers."""

    def arrival(*given: Any) -> IncomingResult:
        made = make(*given)
        return msgspec.structs.replace(made, msg=str(made.dues[0]) if made.windowed else "beside")

    return arrival


async def expect_each_window_once(world: World, row: MonitorRow) -> Counter[str]:
    """The verdicts of a monitor's windows, once it is clear that each has one."""
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = (await schedules.select_terms_of(tx, [row.key]))[row.key]
        (shard,) = await shards.select_shards(tx)
    due = {w.due for w in windows(terms, terms[0].from_, shard.reserved_through)}
    ledger = {at: verdict for at, verdict, _ in await world.ledger(row)}
    in_slices = await world.rows(
        "select due from run_batches, unnest(monitors, due_ats) as w(monitor, due)"
        " where monitor = %(m)s",
        m=row.id,
    )
    reserved = [at for (at,) in in_slices if at not in ledger]
    assert len(reserved) == len(set(reserved)), "a window is in two run batches"
    assert due == set(ledger) | set(reserved)
    return Counter([*ledger.values(), *["reserved"] * len(reserved)])


async def expect_state_of_newest(world: World, row: MonitorRow) -> None:
    """Each covered window has one result, and the state follows the newest results."""
    # One snapshot, because a commit of a killed process can still arrive.
    async with world.pool.transaction(
        "look", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        beats = await tx.rows(_BEATS, monitor=row.id)
        covered = [at for (at,) in await tx.rows(_COVERED, monitor=row.id)]
        ((status, failures),) = await tx.rows(_STATE, monitor=row.id)
    answered = [int(msg) for _, _, msg in beats if msg and msg != "beside"]
    unlike = (Counter(answered) - Counter(covered), Counter(covered) - Counter(answered))
    assert unlike == (Counter(), Counter()), (row.interval_seconds, row.failure_threshold)
    if not beats:
        assert (status, failures) == ("pending", 0)
        return
    if beats[-1][1]:
        assert (status, failures) == ("up", 0)
    else:
        assert status != "up" or failures > 0
        # A success that is older than the folded results does not reset the failures.
        assert failures <= sum(not up for _, up, _ in beats)
