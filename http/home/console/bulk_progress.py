"""Progress of an action on many monitors, which continues when its screen is closed.

The list of monitors shows the result once, with the undo, when the action has ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from ....storage.bulk.queries import select_report, select_running_action
from ....storage.bulk.rows import BulkReport
from ....storage.bulk.rules import BulkAct, ObjectState
from ....storage.bulk.transactions import EDIT, begin_action, begin_undo, stop_action
from ....storage.engine.pools import Tx
from ...ui.form_routes import page_route
from ...ui.formatting import count, number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .monitor_bulk import FAILURES_SHOWN, TITLES, BulkResult, left_of, result_of
from .monitor_filter import MonitorListQuery, filter_of

_REFRESH_S: Final = 2


async def begin(
    ask: Request, act: BulkAct, values: Mapping[str, str], objects: Sequence[tuple[UUID, str]]
) -> UUID:
    """Begins an action in the background and returns its operation."""

    async def work(tx: Tx) -> UUID:
        return await begin_action(tx, ask.who, ask.ids["projectID"], act, values, objects)

    return await ask.context.pool.transact("begin_bulk_action", work)


async def undo(ask: Request, uid: UUID) -> UUID:
    """Begins the undo of an action that has ended. Raises: Problem if the action does not exist."""

    async def work(tx: Tx) -> UUID:
        report = await _report(ask, tx, uid)
        return await begin_undo(tx, ask.who, ask.ids["projectID"], report.row)

    return await ask.context.pool.transact("begin_bulk_action", work)


def to_action(ask: Request, uid: UUID, query: str) -> Response:
    """Redirects to the progress of an action. `query` is that of the list to return to."""
    return redirect(f"/projects/{ask.ids['projectID']}/monitors/actions/{uid}?{query}")


async def finished(ask: Request, uid: UUID | None) -> BulkResult:
    """Returns the result of an action for the list. Empty while it runs, and without an action."""
    if uid is None:
        return BulkResult()
    async with ask.context.pool.transaction("read_bulk_action", read_only=True) as tx:
        found = await select_report(tx, org_of(ask), project_of(ask), uid, FAILURES_SHOWN)
    return BulkResult() if found is None or found.finished_at is None else result_of(found)


async def running_text(ask: Request, tx: Tx) -> tuple[UUID, str] | None:
    """Returns the newest running action of the project, with its progress as text."""
    found = await select_running_action(tx, org_of(ask), project_of(ask))
    if found is None:
        return None
    uid, act, done, total = found
    return uid, f"{TITLES[BulkAct(act)]}: {number(done)} of {number(total)}"


async def render_action(ask: Request) -> Response:
    """Shows the progress; the list with the result once the action has ended."""
    here = filter_of(ask.query).query(page=ask.query.page)
    async with ask.context.pool.transaction("console_bulk_action", read_only=True) as tx:
        report = await _report(ask, tx, ask.ids["operationID"])
        if report.finished_at is not None:
            back = f"/projects/{ask.ids['projectID']}/monitors"
            return redirect(f"{back}?{here}&action={report.row.uid}")
        frame = await frame_of(ask, tx)
        left = left_of(report, tx.now)
    total = sum(report.counts.values())
    seen = total - report.counts[ObjectState.WAITING]
    failed = report.counts[ObjectState.FAILED]
    answer = page(
        "home/console/bulk_progress.html",
        frame=frame,
        query=here,
        uid=report.row.uid,
        title=TITLES[report.row.kind],
        seen=seen,
        total=total,
        words=f"{number(seen)} of {number(total)}",
        left=left,
        failed=count(failed, "monitor") if failed else "",
        is_stopping=report.row.stopped_by is not None,
    )
    return replace(answer, headers={**answer.headers, "Refresh": str(_REFRESH_S)})


async def stop(ask: Request) -> Response:
    uid = ask.ids["operationID"]

    async def work(tx: Tx) -> None:
        await _report(ask, tx, uid)
        await stop_action(tx, ask.who, ask.ids["projectID"], uid)

    await ask.context.pool.transact("stop_bulk_action", work)
    return to_action(ask, uid, filter_of(ask.query).query(page=ask.query.page))


async def _report(ask: Request, tx: Tx, uid: UUID) -> BulkReport:
    """Raises: Problem if the project has no such action."""
    found = await select_report(tx, org_of(ask), project_of(ask), uid, FAILURES_SHOWN)
    if found is None:
        raise Problem("not_found")
    return found


_PATH: Final = "/projects/{projectID}/monitors/actions/{operationID}"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=render_action,
        summary="Progress of an action on many monitors.",
        query=MonitorListQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=stop,
        summary="Stop an action on many monitors.",
        query=MonitorListQuery,
    ),
)
