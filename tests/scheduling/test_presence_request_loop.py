"""A process that waits to judge a push deadline asks the others to renew their presence."""

import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.cache_invalidator import hear
from leadline.daemon.loops.presence_renewer import PresenceRenewer, ProcessIdentity
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.engine.edit_notify import EDITED, notify_edited
from leadline.storage.engine.pools import Pool
from leadline.storage.scheduling.tables import presences
from tests.support.worlds.world import World

HANGS_SECONDS = 30


def attendance(pool: Pool, world: World) -> PresenceRenewer:
    identity = ProcessIdentity(uuid7(), "here", ["api"], (), "0", accepts_pushes=True)
    return PresenceRenewer(pool, identity, lambda: world.now, lambda: world.now)


async def test_an_asked_process_renews_its_presence_immediately(world: World, dsn: str) -> None:
    asking, asked = attendance(world.pool, world), attendance(world.pool, world)
    await asking.pass_once()
    await asked.pass_once()
    world.now = Instant(world.now + SECOND)
    heard, listens = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            hear, dsn, {presences.ASKED: lambda _: heard.set()}, lambda _: listens.set()
        )
        with trio.fail_after(HANGS_SECONDS):
            await listens.wait()
            asking.ask()
            await asking.pass_once()
            await heard.wait()
        await asked.pass_once()
        assert asked.renewed_through == world.now
        nursery.cancel_scope.cancel()


async def test_a_regular_renewal_asks_no_other_process(world: World, dsn: str) -> None:
    alone = attendance(world.pool, world)
    await alone.pass_once()
    asked, edited, listens = trio.Event(), trio.Event(), trio.Event()
    heard = {presences.ASKED: lambda _: asked.set(), EDITED: lambda _: edited.set()}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, heard, lambda _: listens.set())
        with trio.fail_after(HANGS_SECONDS):
            await listens.wait()
            await alone.pass_once()
            # PostgreSQL delivers notifications in order: after this one, an earlier one would have
            # arrived.
            async with world.pool.statement("notify_edited") as tx:
                await notify_edited(tx, uuid7(), ())
            await edited.wait()
        assert not asked.is_set()
        nursery.cancel_scope.cancel()
