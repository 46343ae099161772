"""Edits of one process invalidate the caches of the others; several edits send one notification."""

from collections.abc import Collection

import trio

from leadline.daemon.loops.cache_invalidator import CacheInvalidator, hear
from leadline.storage.engine.edit_notify import EDITED
from leadline.storage.engine.pools import Pool


class Notifications:
    def __init__(self) -> None:
        self.listens = trio.Event()
        self.edited = trio.Event()
        self.count = 0

    def hear(self, _payloads: Collection[str]) -> None:
        self.count += 1
        self.edited.set()


async def test_a_listener_receives_one_notification_for_many_edits(pool: Pool, dsn: str) -> None:
    heard, edits = Notifications(), CacheInvalidator(pool)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {EDITED: heard.hear}, lambda _: heard.listens.set())
        with trio.fail_after(30):
            await heard.listens.wait()
            await edits.pass_once()
            for _ in range(5):
                edits.note()
            await edits.pass_once()
            await heard.edited.wait()
            # An unnecessary second notification would arrive before this one.
            await edits.pass_once()
            heard.edited = trio.Event()
            edits.note()
            await edits.pass_once()
            await heard.edited.wait()
        nursery.cancel_scope.cancel()
    assert heard.count == 2


async def test_a_listener_reports_when_it_hears(pool: Pool, dsn: str) -> None:
    told: list[bool] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {EDITED: lambda _: None}, told.append)
        with trio.fail_after(30):
            while not told:  # noqa: ASYNC110 - the database says when
                await trio.sleep(0.01)
            async with pool.transaction("cut") as tx:
                await tx.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name = 'leadline listen'"
                    " and datname = current_database()"
                )
            while len(told) < 3:  # noqa: ASYNC110
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert told == [True, False, True]
