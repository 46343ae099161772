"""A process is steady only after it has renewed its presence without a break for long enough."""

from uuid_utils.compat import uuid7

from leadline.daemon.loops.presence_renewer import PresenceRenewer, ProcessIdentity
from leadline.storage.alerting.rules.paging_delegation import STEADY_US
from leadline.storage.core.instant import SECOND, Instant
from tests.support.worlds.world import World


async def test_a_process_is_steady_after_a_while_without_a_break(world: World) -> None:
    who = ProcessIdentity(uuid7(), "here", ["all"], ("core",), "0", accepts_pushes=True)
    here = PresenceRenewer(world.pool, who, lambda: world.now, lambda: world.now)

    async def attend(us: int) -> None:
        for _ in range(us // (5 * SECOND)):
            world.now = Instant(world.now + 5 * SECOND)
            await here.pass_once()

    assert not here.is_steady(STEADY_US)
    await here.pass_once()
    await attend(STEADY_US - 5 * SECOND)
    assert not here.is_steady(STEADY_US)
    await attend(5 * SECOND)
    assert here.is_steady(STEADY_US)
    # The process paused, so it is not steady, even before the next renewal.
    world.now = Instant(world.now + 16 * SECOND)
    assert not here.is_steady(STEADY_US)
    await here.pass_once()
    assert not here.is_steady(STEADY_US)
    await attend(STEADY_US)
    assert here.is_steady(STEADY_US)
