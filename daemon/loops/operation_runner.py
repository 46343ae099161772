"""Runner of operations: continues deletions that a request left to the background.

Each step is one transaction under the lock of its operation, so that several processes can run it,
and a process that ends leaves the rest to another.
"""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

import trio

from ...storage.accounts.queries.operations import select_running
from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.retirement.transactions.delete_tenant import continue_deletion

log = logging.getLogger("leadline.operation_runner")

PAUSE_SECONDS: Final = 1.0
AT_ONCE: Final = 20
# An operation that fails or takes long does not delay the others for longer.
TURN_SECONDS: Final = 5.0
# A request works on its own operation for this time.
LEFT_ALONE_US: Final = SECOND
# An operation whose step failed waits for this time.
PUT_OFF_US: Final = 30 * SECOND


class OperationRunner:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        self._put_off: dict[UUID, Instant] = {}

    async def pass_once(self) -> int:
        """Works on the running operations in turn; returns their number."""
        now = self._clock()
        self._put_off = {uid: until for uid, until in self._put_off.items() if until > now}
        before = Instant(now - LEFT_ALONE_US)
        async with self._pool.statement("running_operations") as tx:
            running = await select_running(tx, before, AT_ONCE, list(self._put_off))
        for uid in running:
            try:
                await self._take_turn(uid)
            except Unavailable as error:
                self._put_off[uid] = Instant(self._clock() + PUT_OFF_US)
                cause = str(error)
                log.warning("operation postponed", extra={"operation": str(uid), "cause": cause})
            except Exception:
                # One operation that fails does not stop the others.
                self._put_off[uid] = Instant(self._clock() + PUT_OFF_US)
                log.exception("operation failed", extra={"operation": str(uid)})
        return len(running)

    async def _take_turn(self, uid: UUID) -> None:
        until = trio.current_time() + TURN_SECONDS
        while trio.current_time() < until and await continue_deletion(self._pool, uid):
            pass
