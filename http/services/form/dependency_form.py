"""Forms to edit the dependencies of a service and to delete it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.retirement.transactions.delete_service import delete_service
from ....storage.services.queries.pickable_objects import PickableKind
from ....storage.services.queries.service_dependencies import select_edges, select_generation
from ....storage.services.queries.services import select_service, select_services_of_project
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_dependency import DEPTH_MOST, UPSTREAMS_MOST
from ....storage.services.transactions.edit_dependencies import put_dependencies
from ....storage.services.transactions.lock_service import EDIT
from ...ui.form_inputs import NONE, FieldFault, fault_of, uuids
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, value_of, whole_number
from ...ui.pickers.fields import ADD, is_pick
from ...ui.pickers.objects import PickPlace, field_of, with_picks
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response

NEEDS: Final = "needs"


@dataclass(frozen=True, slots=True)
class DependencyFormData:
    frame: PageLayout
    row: ServiceRow
    needed: Sequence[UUID]
    generation: int

    @property
    def place(self) -> PickPlace:
        row = self.row
        return PickPlace(row.org, row.project, f"/projects/{row.project_uid}", without=row.uid)


async def render_dependency_form(ask: Request) -> Response:
    ground = await _ground(ask)
    return await _form(ask, ground, [str(uid) for uid in ground.needed])


async def submit_dependency_form(ask: Request) -> Response:
    ground = await _ground(ask)
    form, faults = await with_picks(ask, ground.place, {NEEDS: PickableKind.SERVICE})
    ask, wanted = replace(ask, form=form), form.get(NEEDS, [])
    if faults or is_pick(value_of(ask, "act")):
        said = f"Dependencies: {faults[NEEDS]}." if faults else ""
        return await _form(ask, ground, wanted, FieldFault("depends_on", said))
    try:
        generation = whole_number("generation", stripped(ask, "generation"))
        async with ask.context.pool.transaction("console_put_dependencies") as tx:
            row = ground.row
            await put_dependencies(tx, ask.who, row.project_uid, row.uid, uuids(wanted), generation)
    except Refused as refused:
        return await _form(ask, ground, wanted, fault_of(refused))
    return redirect(f"/services/{ground.row.uid}")


async def _ground(ask: Request) -> DependencyFormData:
    async with ask.context.pool.transaction("console_dependencies", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        frame = await frame_of(ask, tx)
        rows = await select_services_of_project(tx, row.org, row.project)
        edges = await select_edges(tx, row.org, row.project)
        generation = await select_generation(tx, row.org, row.project)
    needed = [one.uid for one in rows if one.id in edges.get(row.id, ())]
    return DependencyFormData(frame, row, needed, generation)


async def _form(
    ask: Request, ground: DependencyFormData, wanted: Sequence[str], fault: FieldFault = NONE
) -> Response:
    text = value_of(ask, f"{ADD}{NEEDS}")
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        needs = await field_of(tx, ground.place, PickableKind.SERVICE, NEEDS, wanted, text)
    return page(
        "services/form/dependency_form.html",
        status=400 if fault.text else 200,
        frame=ground.frame,
        row=ground.row,
        needs=needs,
        generation=ground.generation,
        fault=fault,
        most=UPSTREAMS_MOST,
        deepest=DEPTH_MOST,
    )


async def ask_to_delete(ask: Request) -> Response:
    return await _asked(ask)


async def delete(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_service_named", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
    if row is None:
        raise Problem("not_found")
    try:
        async with ask.context.pool.transaction("console_delete_service") as tx:
            await delete_service(tx, ask.who, row.project_uid, row.uid)
    except Refused as refused:
        return await _asked(ask, fault_of(refused))
    return redirect(f"/projects/{row.project_uid}/services")


async def _asked(ask: Request, fault: FieldFault = NONE) -> Response:
    async with ask.context.pool.transaction("console_confirm_delete", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        frame = await frame_of(ask, tx)
    status = 409 if fault.text else 200
    return page(
        "services/form/delete_service.html", status=status, frame=frame, row=row, error=fault.text
    )


_SERVICE: Final = ("service", "serviceID")


_NEEDS: Final = "/services/{serviceID}/dependencies"
_DELETE: Final = "/services/{serviceID}/delete"

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route(
        "GET",
        _NEEDS,
        _SERVICE,
        render_dependency_form,
        "The form of the dependencies of a service.",
    ),
    _route("POST", _NEEDS, _SERVICE, submit_dependency_form, "Save the dependencies of a service."),
    _route("GET", _DELETE, _SERVICE, ask_to_delete, "Asks whether to delete a service."),
    _route("POST", _DELETE, _SERVICE, delete, "Deletes a service."),
)
