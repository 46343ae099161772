"""Waits until other connections wait for a lock."""

import trio

from leadline.storage.engine.pools import Pool

_COUNT = """
select count(*) from pg_stat_activity
where wait_event_type = 'Lock' and datname = current_database()
"""
_HANGS_SECONDS = 30


async def until_blocked(pool: Pool, connections: int = 1) -> None:
    """Waits until this many connections to the database of `pool`, or more, wait for a lock.

    Zero waits until no connection waits. The caller can own a connection of `pool`: a task can use
    only one, so another task queries.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_until_blocked, pool, connections)


async def _until_blocked(pool: Pool, connections: int) -> None:
    with trio.fail_after(_HANGS_SECONDS):
        while True:
            async with pool.statement("count_blocked") as tx:
                waiting = await tx.value(_COUNT)
            if waiting == 0 if connections == 0 else waiting >= connections:
                return
            await trio.sleep(0.005)
