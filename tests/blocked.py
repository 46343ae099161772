"""Waits until other connections wait for a lock."""

import trio

from leadline.storage.pools import Pool

_COUNT = """
select count(*) from pg_stat_activity
where wait_event_type = 'Lock' and datname = current_database()
"""
_HANGS_SECONDS = 30


async def until_blocked(pool: Pool, connections: int = 1) -> None:
    """Waits until exactly this many connections to the database of `pool` wait for a lock.

    The caller may hold a connection of `pool`: a task can hold only one, so another task asks.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_until_blocked, pool, connections)


async def _until_blocked(pool: Pool, connections: int) -> None:
    with trio.fail_after(_HANGS_SECONDS):
        while True:
            async with pool.statement("count_blocked") as tx:
                if await tx.value(_COUNT) == connections:
                    return
            await trio.sleep(0.005)
