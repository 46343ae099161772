"""Work whose backend is terminated before its n-th statement or COPY, for every n."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg.rows import tuple_row

from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Rejected, Tx
from tests.support.worlds.world import World

# More than the statements of each transaction.
STATEMENTS_MOST = 90


async def killed_at_each_statement(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[Tx], Awaitable[Any]],
    state: Callable[[], Awaitable[Any]],
) -> int:
    """Repeats `work` until it is not killed. `state` never changes before. Returns the kills."""
    before = await state()
    run, copy_bytes = Tx._run, Tx.copy_bytes
    left = 0

    async def count(tx: Tx) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            await run(tx, "select pg_terminate_backend(pg_backend_pid())", {}, tuple_row)

    async def counted(tx: Tx, query: str, parameters: dict[str, Any], factory: Any) -> Any:
        await count(tx)
        return await run(tx, query, parameters, factory)

    async def counted_copy(tx: Tx, query: str, data: bytes) -> int:
        await count(tx)
        return await copy_bytes(tx, query, data)

    for kills in range(STATEMENTS_MOST):
        left = kills + 1
        with monkeypatch.context() as patched:
            patched.setattr(Tx, "_run", counted)
            patched.setattr(Tx, "copy_bytes", counted_copy)
            try:
                async with world.pool.transaction("killed") as tx:
                    await work(tx)
            except (Unavailable, Rejected):
                died = True
            else:
                died = False
        if not died:
            return kills
        assert await state() == before
    raise AssertionError("the work did not end")
