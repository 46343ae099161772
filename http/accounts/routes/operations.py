"""Operations: readable by the principal that started one, and by admins of its scope."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.queries.operations import select_operation
from ....storage.accounts.rows import OperationRow
from ....storage.accounts.rules.access import Need, Permission, Rank, rank_in
from ....storage.bulk.queries import select_report
from ....storage.bulk.rows import BulkReport
from ....storage.bulk.rules import ObjectState
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas.organizations import BundlePlan, Operation, OperationFailure

FAILURES_MOST: Final = 100


def operation_json(row: OperationRow, bulk: BulkReport | None = None) -> Operation:
    """`bulk` is the report of a bulk action on monitors."""
    failed: int | UnsetType = UNSET
    changed: int | UnsetType = UNSET
    failures: list[OperationFailure] | UnsetType = UNSET
    if bulk is not None:
        failed, changed = bulk.counts[ObjectState.FAILED], bulk.counts[ObjectState.CHANGED]
        failures = [
            OperationFailure(name=one.name, code=one.code, message=one.rule)
            for one in bulk.failures
        ]
    return Operation(
        id=row.uid,
        kind=row.kind,  # type: ignore[arg-type]
        state=row.state,  # type: ignore[arg-type]
        done=row.done,
        total=row.total,
        created_at=to_text(row.created_at),
        finished_at=UNSET if row.finished_at is None else to_text(row.finished_at),
        error=UNSET if row.error is None else row.error,
        result=UNSET if row.result is None else msgspec.json.decode(row.result, type=BundlePlan),
        failed=failed,
        failures=failures,
        act=UNSET if bulk is None else bulk.row.act,
        changed=changed,
        undone_by=known(None if bulk is None else bulk.undone_by),
    )


async def read(ask: Request) -> Operation:
    async with ask.context.pool.transaction("read_operation", read_only=True) as tx:
        row, bulk = await readable_operation(ask, tx)
    return operation_json(row, bulk)


async def readable_operation(ask: Request, tx: Tx) -> tuple[OperationRow, BulkReport | None]:
    """Returns the operation that the path names, and its report if it is a bulk action.

    Raises: Problem not_found; forbidden for a principal that neither started it nor is an admin.
    """
    row = await select_operation(tx, ask.ids["operationID"])
    if row is None:
        raise Problem("not_found")
    assert ask.scope is not None, "the route has a scope"
    needed = Rank.ORG_ADMIN if row.project is None else Rank.PROJECT_ADMIN
    is_own = row.started_by is not None and row.started_by == ask.who.uid
    if not is_own and rank_in(ask.who, ask.scope) < needed:
        raise Problem("forbidden")
    if row.kind != "monitors_edit" or row.project is None:
        return row, None
    return row, await select_report(tx, row.org, row.project, row.uid, FAILURES_MOST)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/operations/{operationID}",
        scope=("operation", "operationID"),
        tag="operations",
        action=Permission(Need.VIEWER),
        handler=read,
        summary="Read the progress and the result of a bundle, a deletion or a bulk action.",
        answer=Operation,
    ),
)
