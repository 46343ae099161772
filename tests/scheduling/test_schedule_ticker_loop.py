"""The cost of a pass of the ticker depends on the due windows, not on the duration of the pass."""

from leadline.daemon.loops.schedule_ticker import AHEAD_US, Ticker
from leadline.storage.core.instant import Instant
from tests.support.worlds.world import World


async def test_a_pass_ends_although_the_clock_advances(world: World) -> None:
    await world.monitor(interval_seconds=60, timeout_seconds=10)
    read: list[Instant] = []

    def clock() -> Instant:
        world.now = Instant(world.now + 3_000)
        read.append(world.now)
        return world.now

    await Ticker(world.pool, clock).pass_once()
    ((through,),) = await world.rows("select reserved_through from shards")
    assert through - AHEAD_US in read[:4], "one reservation, as far as the pass began with"
