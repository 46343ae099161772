"""Applier of bundles: performs the applications that requests left to the background."""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

import msgspec
import trio

from ....storage.accounts.tables.operations import report_progress, stop_reason
from ....storage.bundles.rows import ApplicationRow
from ....storage.bundles.rules.apply_log import ApplyLog, extended
from ....storage.bundles.rules.bundle import Bundle, read_bundle
from ....storage.bundles.tables.bundle_applications import (
    lock_application,
    select_application,
)
from ....storage.bundles.transactions.adopt_proposals import adopt_after_application
from ....storage.bundles.transactions.apply_in_background import (
    STOPPED,
    fail_application,
    open_document,
    perform_application,
    source_of_row,
)
from ....storage.bundles.transactions.bundle_context import (
    ApplyContext,
    ApplyProgress,
    ApplySource,
)
from ....storage.core.refusal import Refused, Unavailable
from ....storage.engine.keyring import CannotOpen
from ....storage.engine.pools import Pool, Tx

log = logging.getLogger("leadline.bundle_applier")

REPORT_SECONDS: Final = 0.5
_INTERNAL: Final = "internal error; see the log of the server"


class BundleApplier:
    def __init__(
        self,
        pool: Pool,
        ground: ApplyContext,
        reading: trio.CapacityLimiter,
        on_edit: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._ground = ground
        self._reading = reading
        self._on_edit = on_edit

    async def apply(self, uid: UUID) -> None:
        """Performs an application, and ends its operation also if it fails.

        Raises: Unavailable if it can be repeated.
        """
        async with self._pool.transaction("read_application") as tx:
            # The process that performs it has this lock. The others do not read the document.
            if not await lock_application(tx, uid):
                return
            row = await select_application(tx, uid)
            stopped = await stop_reason(tx, uid)
        if row is None:
            return
        if stopped is not None:
            await self.fail(uid, stopped)
            return
        try:
            is_applied = await self._perform(row)
        except Refused as why:
            await self.fail(uid, str(why))
        except Unavailable:
            raise
        except Exception:
            log.exception("bundle could not be applied", extra={"operation": str(uid)})
            await self.fail(uid, _INTERNAL)
        else:
            if is_applied:
                log.info("bundle applied", extra={"operation": str(uid)})
                self._on_edit()
                await adopt_after_application(self._pool, row.project)

    async def fail(self, uid: UUID, error: str) -> None:
        """Ends the operation of an application that changed nothing, unless it has ended."""

        async def work(tx: Tx) -> bool:
            return await fail_application(tx, uid, error)

        if await self._pool.transact("fail_application", work):
            log.warning("bundle not applied", extra={"operation": str(uid), "why": error})

    async def _perform(self, row: ApplicationRow) -> bool:
        try:
            document = open_document(row, self._ground.keyring)
        except CannotOpen as error:
            raise Refused("invalid", "document", "no configured key decrypts the bundle") from error
        bundle = await trio.to_thread.run_sync(_read, document, limiter=self._reading)
        source = source_of_row(row)
        outcome: list[bool | Exception] = []
        # The caller needs the exception of the application, without a group.
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(self._report, row.operation, source.progress, scope)
            outcome.append(await self._outcome(row, bundle, source))
            scope.cancel()
        if not outcome:
            # Cancelled by `_report`: its transaction is rolled back.
            async with self._pool.statement("stop_reason") as tx:
                reason = await stop_reason(tx, row.operation)
            if reason is None:
                return False
            raise Refused(STOPPED, "", reason)
        (found,) = outcome
        if isinstance(found, Exception):
            raise found
        return found

    async def _outcome(
        self, row: ApplicationRow, bundle: Bundle, source: ApplySource
    ) -> bool | Exception:
        try:
            return await perform_application(
                self._pool, row.operation, row.project, bundle, source, self._ground
            )
        except Exception as error:
            return error

    async def _report(self, uid: UUID, progress: ApplyProgress, scope: trio.CancelScope) -> None:
        """Writes the progress while it changes, and cancels the application if it is to stop.

        A figure that cannot be written is omitted.
        """
        reported = (0, 0)
        log_: ApplyLog | None = None
        waiting: list[tuple[str, str, str]] = []
        while True:
            await trio.sleep(REPORT_SECONDS)
            figures = (progress.done, progress.total)
            try:
                async with self._pool.statement("stop_reason") as tx:
                    is_stopped = await stop_reason(tx, uid) is not None
                if is_stopped:
                    scope.cancel()
                    return
                if figures == reported or not progress.total:
                    continue
                waiting += progress.taken()
                async with self._pool.statement("report_progress") as tx:
                    after = extended(log_, tx.now, *figures, waiting)
                    text = msgspec.json.encode(after).decode()
                    await report_progress(tx, uid, *figures, text)
            except Unavailable:
                continue
            reported, log_ = figures, after
            waiting.clear()


def _read(document: bytes) -> Bundle:
    return read_bundle(msgspec.json.decode(document))
