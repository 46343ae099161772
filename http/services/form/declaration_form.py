"""Form to declare a revision of a service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.monitors.queries.monitors import select_monitor_uids
from ....storage.services.queries.service_revisions import select_revisions
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_declaration import MEMBERS_MOST
from ....storage.services.transactions.declare_service import declare
from ....storage.services.transactions.lock_service import EDIT
from ...ui.form_inputs import NONE, FieldFault, fault_of, typed_of
from ...ui.form_routes import form_route
from ...ui.form_values import stripped
from ...ui.pickers.objects import PickPlace
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of
from .member_fields import declared, draft_of, values, with_defaults, with_members


@dataclass(frozen=True, slots=True)
class DeclarationFormData:
    """`revision` is the newest declared revision, 0 if none exists."""

    frame: PageLayout
    row: ServiceRow
    revision: int
    typed: Mapping[str, str]
    members: Sequence[str]
    sli: Sequence[str]

    @property
    def place(self) -> PickPlace:
        path = f"/projects/{self.row.project_uid}"
        return PickPlace(self.row.org, self.row.project, path)


async def render_declaration_form(ask: Request) -> Response:
    ground = await _ground(ask)
    return await _form(ask, ground, ground.typed, ground.members, ground.sli)


async def submit_declaration_form(ask: Request) -> Response:
    ground = await _ground(ask)
    ask, fault = await with_members(ask, ground.place)
    if fault.text or stripped(ask, "act") != "save":
        return await _again(ask, ground, fault)
    try:
        uid = await _declare(ask, ground.row)
    except Refused as refused:
        return await _again(ask, ground, fault_of(refused))
    return redirect(f"/services/{uid}")


async def _declare(ask: Request, row: ServiceRow) -> UUID:
    draft = draft_of(ask)
    days = ask.context.options.heartbeat_days
    async with ask.context.pool.transaction("console_declare") as tx:
        await declare(tx, ask.who, row.project_uid, row.uid, draft, days)
    return row.uid


async def _ground(ask: Request) -> DeclarationFormData:
    org = org_of(ask)
    async with ask.context.pool.transaction("console_service_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        revisions = (await select_revisions(tx, [row.key]))[row.key]
        newest = revisions[-1] if revisions else None
        uids = await select_monitor_uids(tx, org, newest.monitors) if newest else {}
    typed, members, sli = declared(newest, uids)
    return DeclarationFormData(frame, row, len(revisions), typed, members, sli)


async def _again(ask: Request, ground: DeclarationFormData, fault: FieldFault = NONE) -> Response:
    """Returns the form with the submitted values."""
    sli = ask.form.get("sli", [])
    members = [*ask.form.get("member", []), *sli]
    return await _form(ask, ground, typed_of(ask), members, sli, fault)


async def _form(
    ask: Request,
    ground: DeclarationFormData,
    typed: Mapping[str, str],
    members: Sequence[str],
    sli: Sequence[str],
    fault: FieldFault = NONE,
) -> Response:
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        shown = await values(tx, ground.place, typed, members, sli)
    return page(
        "services/form/declaration_form.html",
        status=400 if fault.text else 200,
        frame=ground.frame,
        row=ground.row,
        revision=ground.revision,
        typed={"backfill_from": "", **with_defaults(typed)},
        fault=fault,
        members_most=MEMBERS_MOST,
        **shown,
    )


_ONE: Final = ("/services/{serviceID}/declaration", ("service", "serviceID"))

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", *_ONE, render_declaration_form, "The form of a declaration."),
    _route("POST", *_ONE, submit_declaration_form, "Save a declaration."),
)
