"""Reads of operations."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import OperationRow
from ..tables.operations import _COLUMNS

_SELECT = f"select {_COLUMNS} from operations where uid = %(uid)s"
_RUNNING = """
select uid from operations where state = 'running' and created_at <= at(%(before)s)
  and uid <> all (%(but)s::uuid[])
order by created_at limit %(most)s
"""


async def select_operation(tx: Tx, uid: UUID) -> OperationRow | None:
    return await tx.one(OperationRow, _SELECT, uid=uid)


async def select_running(
    tx: Tx, before: Instant, most: int, but: Sequence[UUID] = ()
) -> list[UUID]:
    """Returns the running operations that were created at or before an instant."""
    return [uid for (uid,) in await tx.rows(_RUNNING, before=before, most=most, but=list(but))]
