"""The clock of the database is set: no monitor goes down, no run happens twice, and no window is
left out."""

import pytest
from uuid_utils.compat import uuid7

from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.presence_renewer import PresenceRenewer, ProcessIdentity
from leadline.daemon.loops.push_deadline_checker import PushDeadlineChecker
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.product_clock import ProductClock
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.rules.run_schedule import windows
from leadline.storage.scheduling.tables import shards as schedules
from tests.support.worlds.world import START, World


class Machine:
    """A clock that can be set, and one that only runs."""

    def __init__(self) -> None:
        self.wall_us = int(START)
        self.running_us = 0

    def passes(self, us: int) -> None:
        self.wall_us += us
        self.running_us += us

    async def read(self) -> tuple[Instant, Instant | None]:
        return Instant(self.wall_us), None


async def test_a_clock_set_back_an_hour_makes_no_false_alarm_and_no_gap(world: World) -> None:
    machine = Machine()
    clock = ProductClock(machine.read, lambda: machine.running_us)
    await clock.refresh()
    world.now = clock.now()
    probed = await world.monitor(interval_seconds=60, timeout_seconds=10)
    pushed = await world.monitor(type="push", interval_seconds=60, grace_seconds=30)
    identity = ProcessIdentity(uuid7(), "here", ["all"], ("core",), "0", accepts_pushes=True)
    attendance = PresenceRenewer(world.pool, identity, clock.now, clock.now)
    ticker, sealer = Ticker(world.pool, clock.now), MonitorSealer(world.pool, clock.now)
    listener = PushDeadlineChecker(world.pool, Bus(), clock.now, lambda: None)
    seen = [clock.now()]
    for step in range(300):
        if step == 60:
            machine.wall_us -= HOUR
        machine.passes(10 * SECOND)
        await clock.refresh()
        world.now = clock.now()
        seen.append(world.now)
        await attendance.pass_once()
        if step % 6 == 0:
            async with world.pool.transaction("push") as tx:
                await record_results(tx, [world.result(pushed, world.now, True)])
        await ticker.pass_once()
        await listener.pass_once()
        await sealer.pass_once()
    assert seen == sorted(seen), "it never runs back"
    assert seen[62] - seen[61] in range(4 * SECOND, 6 * SECOND), (
        "the clock does not run at half speed"
    )
    assert await missed(world, pushed) == []
    assert await world.state(pushed) == ("up", 0)
    assert await world.state(probed) == ("pending", 0)
    async with world.pool.transaction("terms", read_only=True) as tx:
        terms = (await schedules.select_terms_of(tx, [probed.key]))[probed.key]
    sealed = Instant(world.now - 3 * MINUTE)
    expected = [window.due for window in windows(terms, terms[0].from_, sealed)]
    ledger = [due for due, _, _ in await world.ledger(probed) if due <= sealed]
    assert ledger == expected


@pytest.mark.parametrize("ahead", [2, 7, 10, 14, 20, 90, 3_600])
@pytest.mark.parametrize("phase", range(0, 10, 3))
async def test_time_that_was_skipped_is_no_silence(world: World, ahead: int, phase: int) -> None:
    """A sender that pushes every 10 s goes on while the clock jumps. Then it stops."""
    machine = Machine()
    clock = ProductClock(machine.read, lambda: machine.running_us)
    await clock.refresh()
    world.now = clock.now()
    pushed = await world.monitor(type="push", interval_seconds=10, grace_seconds=2)
    identity = ProcessIdentity(uuid7(), "here", ["all"], ("core",), "0", accepts_pushes=True)
    attendance = PresenceRenewer(
        world.pool, identity, clock.now, clock.now, lambda: clock.jumps, lambda _: clock.refresh()
    )
    listener = PushDeadlineChecker(world.pool, Bus(), clock.now, lambda: None)
    for second in range(200):
        if second == 60 + phase:
            machine.wall_us += ahead * SECOND
        machine.passes(SECOND)
        world.now = clock.now()
        if second % 5 == 0:
            await attendance.pass_once()
            world.now = clock.now()
        if second % 10 == 0 and second <= 120:
            async with world.pool.transaction("push") as tx:
                await record_results(tx, [world.result(pushed, world.now, True)])
        await listener.pass_once()
        if second == 130:
            assert await missed(world, pushed) == []
    assert len(await missed(world, pushed)) >= 1, "the sender has stopped"


async def missed(world: World, row: MonitorRow) -> list[Instant]:
    return [at for at, _, message in await world.beats(row) if message == "push_missed"]
