"""Runner of operations: performs the work that requests left to the background.

Each step of a deletion or of an action on many monitors is one transaction under the lock of its
operation, and an application of a bundle is one transaction. So several processes can run
operations, and a process that ends leaves the rest to another.
"""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

import trio

from ...storage.accounts.queries.operations import select_running
from ...storage.accounts.tables.operations import BUNDLE_APPLY, MONITORS_EDIT
from ...storage.bulk.transactions import BulkContext, fail_action, perform_next
from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Tx
from ...storage.retirement.transactions.delete_tenant import abandon_deletion, continue_deletion
from .bundles.bundle_applier import BundleApplier

log = logging.getLogger("leadline.operation_runner")

PAUSE_SECONDS: Final = 1.0
AT_ONCE: Final = 20
# A deletion or an action that fails or takes long does not delay the others for longer.
TURN_SECONDS: Final = 5.0
# A request works on its own deletion for this time.
LEFT_ALONE_US: Final = SECOND
# An operation whose step failed waits for this time.
PUT_OFF_US: Final = 30 * SECOND
# After so many failures in a row the operation ends as failed.
FAILURES_MOST: Final = 10
_INTERNAL: Final = "internal error; see the log of the server. The rest was not deleted"
_INTERNAL_EDIT: Final = "internal error; see the log of the server"


class OperationRunner:
    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        applier: BundleApplier,
        ground: BulkContext,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._applier = applier
        self._ground = ground
        self._put_off: dict[UUID, Instant] = {}
        self._failures: dict[UUID, int] = {}

    async def pass_once(self) -> int:
        """Works on the running operations in turn; returns their number."""
        now = self._clock()
        self._put_off = {uid: until for uid, until in self._put_off.items() if until > now}
        before = Instant(now - LEFT_ALONE_US)
        async with self._pool.statement("running_operations") as tx:
            running = await select_running(tx, before, AT_ONCE, list(self._put_off))
        for uid, kind in running:
            try:
                await self._take_turn(uid, kind)
                self._failures.pop(uid, None)
            except Unavailable as error:
                cause = str(error)
                log.warning("operation postponed", extra={"operation": str(uid), "cause": cause})
                # A deletion continues when the database does. The caller of an application waits.
                is_waited_for = kind == BUNDLE_APPLY
                if self._put_off_again(uid, is_failure=is_waited_for):
                    await self._end(uid, kind, f"the database did not answer in time: {cause}")
            except Exception:
                # One operation that fails does not stop the others.
                log.exception("operation failed", extra={"operation": str(uid)})
                if self._put_off_again(uid):
                    await self._end(uid, kind, _INTERNAL)
        return len(running)

    async def _take_turn(self, uid: UUID, kind: str) -> None:
        if kind == BUNDLE_APPLY:
            await self._applier.apply(uid)
            return
        until = trio.current_time() + TURN_SECONDS
        while trio.current_time() < until and await self._step(uid, kind):
            self._failures.pop(uid, None)

    async def _step(self, uid: UUID, kind: str) -> bool:
        """Performs one step. Returns False if the operation has ended or is performed elsewhere."""
        if kind == MONITORS_EDIT:
            return await perform_next(self._pool, uid, self._ground)
        return await continue_deletion(self._pool, uid)

    def _put_off_again(self, uid: UUID, *, is_failure: bool = True) -> bool:
        """Postpones an operation. Returns whether it failed too often."""
        self._put_off[uid] = Instant(self._clock() + PUT_OFF_US)
        if not is_failure:
            return False
        self._failures[uid] = self._failures.get(uid, 0) + 1
        return self._failures[uid] >= FAILURES_MOST

    async def _end(self, uid: UUID, kind: str, error: str) -> None:
        """Ends an operation as failed. If that fails too, the next failure tries it again."""

        async def work(tx: Tx) -> None:
            if kind == MONITORS_EDIT:
                await fail_action(tx, uid, _INTERNAL_EDIT)
            else:
                await abandon_deletion(tx, uid, error)

        try:
            if kind == BUNDLE_APPLY:
                await self._applier.fail(uid, error)
            else:
                await self._pool.transact("abandon_deletion", work)
        except Unavailable as why:
            extra = {"operation": str(uid), "cause": str(why)}
            log.warning("operation could not be ended", extra=extra)
            return
        self._failures.pop(uid, None)
