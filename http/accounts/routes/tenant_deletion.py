"""Deletion of a project or organization: a count, at once, or an operation in the background."""

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

import msgspec
import trio
from msgspec.structs import asdict

from ....storage.accounts.queries.operations import select_operation
from ....storage.accounts.rows import DeletionCounts as Counts
from ....storage.accounts.rows import OperationRow
from ....storage.accounts.rules.access import Principal
from ....storage.core.instant import Instant
from ....storage.engine.lock_refusal import refused_when_locked
from ....storage.engine.partitions import partitions
from ....storage.engine.pools import Tx
from ....storage.results.queries.results import select_packed_from
from ....storage.retirement.transactions.delete_tenant import continue_deletion
from ...wire.route import Request, Response
from ..schemas.organizations import DeletionCounts
from .operations import operation_json

# A larger deletion runs in the background.
DELETED_AT_ONCE_MOST: Final = 1_000
# A process that takes over an operation works on it meanwhile.
_OTHER_PROCESS_SECONDS: Final = 0.05

_Count = Callable[[Tx, Principal, UUID, Instant], Awaitable[Counts]]
_Begin = Callable[[Tx, Principal, UUID, Counts], Awaitable[UUID]]


class DeletionQuery(msgspec.Struct, frozen=True):
    dry_run: bool = False


async def delete_tenant(ask: Request, uid: UUID, count: _Count, begin: _Begin) -> Response:
    """Answers 200 with the counts of a dry run, 204 after a deletion, or 202 with its operation."""
    pool = ask.context.pool
    stored = await partitions(pool, "heartbeats")
    kept_from = min((partition.from_ for partition in stored), default=Instant(0))
    async with pool.transaction("count_tenant", read_only=True) as tx:
        packed_from = await select_packed_from(tx)
        kept_from = kept_from if packed_from is None else min(kept_from, packed_from)
        counts = await count(tx, ask.who, uid, kept_from)
    if ask.query.dry_run:
        return Response(body=DeletionCounts(**asdict(counts)), status=200)

    async def begin_deletion(tx: Tx) -> UUID:
        return await begin(tx, ask.who, uid, counts)

    with refused_when_locked():
        operation = await pool.transact("begin_deletion", begin_deletion)
    if counts.objects <= DELETED_AT_ONCE_MOST:
        while True:
            while await continue_deletion(pool, operation):
                pass
            row = await _read(ask, operation)
            if row.state == "succeeded":
                return Response(status=204)
            if row.state == "failed":
                return Response(body=operation_json(row), status=202)
            await trio.sleep(_OTHER_PROCESS_SECONDS)
    return Response(body=operation_json(await _read(ask, operation)), status=202)


async def _read(ask: Request, uid: UUID) -> OperationRow:
    async with ask.context.pool.transaction("read_operation", read_only=True) as tx:
        row = await select_operation(tx, uid)
    assert row is not None, "a finished operation is kept for days"
    return row
