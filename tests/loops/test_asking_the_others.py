"""A deadline that waits is judged at once, however many processes listen: they are asked."""

import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.attendance import Attendance, Identity
from leadline.daemon.loops.edits import hear
from leadline.daemon.loops.pace import Wake
from leadline.storage.pools import Pool
from leadline.storage.rules.instant import SECOND, Instant
from leadline.storage.tables import presences
from tests.world import World


def attendance(pool: Pool, world: World) -> Attendance:
    identity = Identity(uuid7(), "here", ["api"], (), "0", listens=True)
    return Attendance(pool, identity, lambda: world.now, lambda: world.now)


async def test_whoever_is_asked_says_at_once_how_far_it_has_listened(
    world: World, dsn: str
) -> None:
    asking, asked = attendance(world.pool, world), attendance(world.pool, world)
    await asking.pass_once()
    await asked.pass_once()
    world.now = Instant(world.now + SECOND)
    heard = Wake()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {presences.ASKED: heard.set})
        with trio.fail_after(30):
            while asked.renewed_through != world.now:
                asking.ask()
                await asking.pass_once()
                began = trio.current_time()
                await heard.wait(0.5)
                if trio.current_time() - began < 0.4:
                    await asked.pass_once()
        nursery.cancel_scope.cancel()


async def test_a_renewal_that_nobody_asked_for_asks_nobody(world: World, dsn: str) -> None:
    alone = attendance(world.pool, world)
    await alone.pass_once()
    heard = Wake()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {presences.ASKED: heard.set})
        await trio.sleep(0.3)
        await alone.pass_once()
        began = trio.current_time()
        await heard.wait(0.3)
        assert trio.current_time() - began >= 0.29
        nursery.cancel_scope.cancel()
