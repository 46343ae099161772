"""Reads of operations."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import OperationRow
from ..tables.operations import _COLUMNS

_SELECT = f"select {_COLUMNS} from operations where uid = %(uid)s"
_LAST_APPLICATION = f"""
select {_COLUMNS} from operations
where kind = 'bundle_apply' and org = %(org)s and project = %(project)s
order by created_at desc limit 1
"""
# The request of a deletion works on it first. No request works on a bundle or an action.
_RUNNING = """
select uid, kind from (
  select uid, kind, state, created_at,
    row_number() over (partition by org order by state = 'running', created_at) as turn
  from operations
  where (state in ('applying', 'editing') or (state = 'running' and created_at <= at(%(before)s)))
    and uid <> all (%(but)s::uuid[])
  order by turn, created_at limit %(most)s) as chosen
order by state = 'running', turn, created_at
"""


async def select_operation(tx: Tx, uid: UUID) -> OperationRow | None:
    return await tx.one(OperationRow, _SELECT, uid=uid)


async def select_running(
    tx: Tx, before: Instant, most: int, but: Sequence[UUID] = ()
) -> list[tuple[UUID, str]]:
    """Returns at most `most` running operations with their kinds.

    Every organization has one before any has two. In the order of the answer, bundles and actions
    are first, since people wait for them. Deletions are those that were created at or before an
    instant.
    """
    rows = await tx.rows(_RUNNING, before=before, most=most, but=list(but))
    return [(uid, kind) for uid, kind in rows]


async def select_last_application(tx: Tx, org: int, project: int) -> OperationRow | None:
    """Returns the newest application of a bundle to a project in the background."""
    return await tx.one(OperationRow, _LAST_APPLICATION, org=org, project=project)
