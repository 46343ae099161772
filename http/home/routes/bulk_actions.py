"""Actions on the monitors of a selector, as operations.

The selector is resolved once, when the action begins: the operation names its monitors, and later
changes of tags or statuses neither add nor remove one.
"""

from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.operations import select_operation
from ....storage.accounts.rules.access import Need, Permission
from ....storage.bulk.queries import select_objects, select_report
from ....storage.bulk.rows import BulkObjectResult
from ....storage.bulk.rules import OBJECTS_MOST, BulkAct
from ....storage.bulk.transactions import (
    EDIT,
    begin_action,
    begin_undo,
    expect_values,
    stop_action,
)
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitor_pages import (
    MonitorSelection,
    select_chosen,
    select_monitor_page,
)
from ....storage.monitors.rows import MonitorRow
from ...accounts.routes.operations import operation_json, readable_operation
from ...accounts.schemas.organizations import Operation
from ...wire.cursor import page_limit, read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_if_given
from ..schemas import (
    ActedObject,
    ActedObjectList,
    MonitorsAction,
    MonitorSelector,
    SelectedMonitor,
    SelectedMonitors,
)


class ActionQuery(msgspec.Struct, frozen=True):
    """`dry_run` returns the selected monitors only."""

    dry_run: bool = False


class ObjectsQuery(msgspec.Struct, frozen=True):
    limit: str = "50"
    cursor: str | None = None


async def begin(ask: Request) -> Response:
    body: MonitorsAction = ask.body
    values = _values(body)
    async with ask.context.pool.transaction("select_for_action", read_only=True) as tx:
        await expect_values(tx, ask.who, ask.ids["projectID"], BulkAct(body.act), values)
        found = await _selected(ask, tx, body)
    _expect_count(body, len(found), is_dry_run=ask.query.dry_run)
    if ask.query.dry_run:
        chosen = [SelectedMonitor(id=one.uid, slug=one.slug, name=one.name) for one in found]
        return Response(body=SelectedMonitors(count=len(chosen), monitors=chosen), status=200)
    objects = [(one.uid, one.name) for one in found]

    async def work(tx: Tx) -> Operation:
        uid = await begin_action(
            tx, ask.who, ask.ids["projectID"], BulkAct(body.act), values, objects
        )
        return await _operation(tx, uid)

    return _begun(await ask.context.pool.transact("begin_bulk_action", work))


async def undo(ask: Request) -> Response:
    async def work(tx: Tx) -> Operation:
        _, report = await readable_operation(ask, tx)
        if report is None:
            raise Problem("operation_id: has no undo")
        uid = await begin_undo(tx, ask.who, report.row.project_uid, report.row)
        return await _operation(tx, uid)

    return _begun(await ask.context.pool.transact("begin_bulk_action", work))


async def stop(ask: Request) -> Response:
    async def work(tx: Tx) -> Operation:
        row, report = await readable_operation(ask, tx)
        if report is None:
            raise Problem("operation_id: cannot be stopped")
        await stop_action(tx, ask.who, report.row.project_uid, row.uid)
        return operation_json(row, report)

    return Response(body=await ask.context.pool.transact("stop_bulk_action", work), status=202)


async def list_objects(ask: Request) -> ActedObjectList:
    query: ObjectsQuery = ask.query
    most, bound = page_limit(query.limit), ("operation_objects", ask.ids["operationID"])
    key = read_cursor(query.cursor, bound, 1)
    async with ask.context.pool.transaction("list_operation_objects", read_only=True) as tx:
        row, _ = await readable_operation(ask, tx)
        found = await select_objects(tx, row.uid, key[0] if key else 0, most + 1)
    page = found[:most]
    more = len(found) > most
    return ActedObjectList(
        items=[_object_json(one) for one in page],
        next_cursor=write_cursor((page[-1].place,), bound) if more else None,
    )


def _object_json(one: BulkObjectResult) -> ActedObject:
    return ActedObject(
        id=one.uid,
        name=one.name,
        state=one.state,  # type: ignore[arg-type]
        code=known(one.code),
        message=known(one.rule),
    )


def _begun(operation: Operation) -> Response:
    where = f"/api/v1/operations/{operation.id}"
    return Response(body=operation, status=202, headers={"Location": where})


async def _operation(tx: Tx, uid: UUID) -> Operation:
    row = await select_operation(tx, uid)
    assert row is not None, "it was just inserted"
    assert row.project is not None, "its monitors are in a project"
    return operation_json(row, await select_report(tx, row.org, row.project, row.uid, 0))


def _values(body: MonitorsAction) -> dict[str, str]:
    """Returns the values of the action as texts. Instants are in UTC."""
    found: dict[str, object] = {
        "tag": given(body.tag),
        "channel": given(body.channel_id),
        "minutes": given(body.minutes),
        "reason": given(body.reason),
    }
    for name in ("starts_at", "ends_at"):
        instant = instant_if_given(name, given(getattr(body, name)))
        found[name] = None if instant is None else to_text(instant)
    return {name: str(value) for name, value in found.items() if value is not None}


async def _selected(ask: Request, tx: Tx, body: MonitorsAction) -> list[MonitorRow]:
    """Returns the monitors of the action. Raises: Problem that names the field."""
    selector, ids = given(body.selector), given(body.monitor_ids)
    if (selector is None) == (ids is None):
        raise Problem("selector: give one of selector and monitor_ids")
    org, project = org_of(ask), project_of(ask)
    if selector is not None:
        found = await select_monitor_page(
            tx, org, project, _selection(selector), "", OBJECTS_MOST + 1
        )
        field = "selector"
    else:
        assert ids is not None
        found = await select_chosen(tx, org, project, ids)
        field = "monitor_ids"
        if len(found) != len(set(ids)):
            raise Problem("monitor_ids: names a monitor that is not in this project")
    if not found:
        raise Problem(f"{field}: selects no monitor")
    if len(found) > OBJECTS_MOST:
        raise Problem(f"{field}: selects more than {OBJECTS_MOST} monitors")
    return found


def _selection(selector: MonitorSelector) -> MonitorSelection:
    selection = MonitorSelection(
        types=tuple(selector.type),
        regions=tuple(selector.region),
        tags=tuple(selector.tag),
        q=selector.q,
        statuses=tuple(selector.status),
    )
    if (selection == MonitorSelection()) is not selector.all:
        rule = "give q, tag, type, region or status, or only all"
        raise Problem(f"selector: {rule}")
    return selection


def _expect_count(body: MonitorsAction, found: int, *, is_dry_run: bool) -> None:
    """A deletion must state how many monitors it expects, as the selector could match others.

    A dry run returns the number, and checks one that is given.
    """
    wanted = given(body.count)
    if (wanted is None and body.act == "delete" and not is_dry_run) or wanted not in (None, found):
        raise Problem(f"count: must be the number of selected monitors, {found}")


_PROJECT: Final = ("project", "projectID")
_OPERATION: Final = ("operation", "operationID")
_ONE: Final = "/api/v1/operations/{operationID}"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/projects/{projectID}/monitors/actions",
        action=EDIT,
        scope=_PROJECT,
        handler=begin,
        summary="Pause, resume, tag, attach, maintain or delete the monitors of a selector.",
        tag="operations",
        body=MonitorsAction,
        query=ActionQuery,
        answer=Operation,
        status=202,
        answers_too={200: SelectedMonitors},
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/undo",
        action=EDIT,
        scope=_OPERATION,
        handler=undo,
        summary="Undo a bulk action that has ended, where its monitors were not changed since.",
        tag="operations",
        answer=Operation,
        status=202,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/stop",
        action=EDIT,
        scope=_OPERATION,
        handler=stop,
        summary="Stop a bulk action after its present monitor.",
        tag="operations",
        answer=Operation,
        status=202,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/objects",
        action=Permission(Need.VIEWER),
        scope=_OPERATION,
        handler=list_objects,
        summary="The monitors of a bulk action, each with its result.",
        tag="operations",
        query=ObjectsQuery,
        answer=ActedObjectList,
    ),
)
