"""Forms to create a service and to declare a revision.

A new service, its declaration and its objective are one transaction: a refusal stores no part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.monitors.queries.console_monitors import select_names
from ....storage.monitors.queries.monitors import select_monitor_uids
from ....storage.objectives.transactions.set_service_objective import put_target_of
from ....storage.services.queries.service_revisions import select_revisions
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_declaration import DESCRIPTION_LONGEST, MEMBERS_MOST
from ....storage.services.rules.service_report import WINDOWS
from ....storage.services.transactions.create_service import ServiceDraft, create_service
from ....storage.services.transactions.declare_service import declare
from ...ui.form_inputs import NONE, FieldFault, decimal, fault_of, typed_of
from ...ui.form_routes import form_route
from ...ui.form_values import stripped
from ...ui.formatting import number
from ...ui.page_layout import PageLayout, frame_of
from ...ui.reliability_text import LABELS
from ...ui.render import page, redirect
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .member_fields import declared, draft_of, values, with_defaults

# Projects with more monitors need a search by name.
NAMES_MOST: Final = 5_000


@dataclass(frozen=True, slots=True)
class DeclarationFormData:
    """`revision` is the newest declared revision, 0 if none exists."""

    frame: PageLayout
    row: ServiceRow | None
    monitors: Sequence[tuple[UUID, str]]
    revision: int
    typed: Mapping[str, str]
    members: Sequence[str]
    sli: Sequence[str]


async def render_declaration_form(ask: Request) -> Response:
    ground = await _ground(ask)
    return _form(ground, ground.typed, ground.members, ground.sli)


async def submit_declaration_form(ask: Request) -> Response:
    ground = await _ground(ask)
    if stripped(ask, "act") != "save":
        return _again(ask, ground)
    try:
        if ground.row is None:
            uid = await _create(ask, ground)
        else:
            uid = await _declare(ask, ground.row)
    except Refused as refused:
        return _again(ask, ground, fault_of(refused))
    return redirect(f"/services/{uid}")


async def _create(ask: Request, ground: DeclarationFormData) -> UUID:
    project = ground.frame.place.uid
    draft = ServiceDraft(
        name=stripped(ask, "name"),
        slug=stripped(ask, "slug") or None,
        description=stripped(ask, "description").replace("\r\n", "\n"),
    )
    declaration = draft_of(ask)
    objective = stripped(ask, "objective")
    window = stripped(ask, "window") or "30d"
    if window not in WINDOWS:
        raise Problem("Unknown action")
    aimed = decimal("objective", objective) if objective else None
    days = ask.context.options.heartbeat_days
    async with ask.context.pool.transaction("console_create_service") as tx:
        row = await create_service(tx, ask.who, project, draft)
        # Services are locked before monitors, so this precedes `declare`, which locks the members.
        if aimed is not None:
            await put_target_of(tx, ask.who, row, window, aimed)
        if declaration.monitors:
            await declare(tx, ask.who, project, row.uid, declaration, days)
    return row.uid


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
        monitors = await select_names(tx, org, project_of(ask), NAMES_MOST)
        if "serviceID" not in ask.ids:
            typed, members, sli = declared(None, {})
            return DeclarationFormData(
                frame, None, monitors, 0, {**typed, "window": "30d"}, members, sli
            )
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        revisions = (await select_revisions(tx, [row.key]))[row.key]
        newest = revisions[-1] if revisions else None
        uids = await select_monitor_uids(tx, org, newest.monitors) if newest else {}
    typed, members, sli = declared(newest, uids)
    return DeclarationFormData(frame, row, monitors, len(revisions), typed, members, sli)


def _again(ask: Request, ground: DeclarationFormData, fault: FieldFault = NONE) -> Response:
    """Returns the form with the submitted values."""
    sli = ask.form.get("sli", [])
    return _form(ground, typed_of(ask), [*ask.form.get("member", []), *sli], sli, fault)


def _form(
    ground: DeclarationFormData,
    typed: Mapping[str, str],
    members: Sequence[str],
    sli: Sequence[str],
    fault: FieldFault = NONE,
) -> Response:
    names = ("name", "slug", "description", "objective", "window", "backfill_from", "wanted")
    return page(
        "services/form/declaration_form.html",
        status=400 if fault.text else 200,
        frame=ground.frame,
        row=ground.row,
        revision=ground.revision,
        typed={**dict.fromkeys(names, ""), **with_defaults(typed)},
        fault=fault,
        windows=list(LABELS.items()),
        members_most=MEMBERS_MOST,
        description_longest=number(DESCRIPTION_LONGEST),
        **values(ground.monitors, typed, members, sli),
    )


_NEW: Final = ("/projects/{projectID}/services/new", ("project", "projectID"))
_ONE: Final = ("/services/{serviceID}/declaration", ("service", "serviceID"))

ROUTES: Final = (
    form_route("GET", *_NEW, render_declaration_form, "The form of a new service."),
    form_route("POST", *_NEW, submit_declaration_form, "Adds a service."),
    form_route("GET", *_ONE, render_declaration_form, "The form of a declaration."),
    form_route("POST", *_ONE, submit_declaration_form, "Save a declaration."),
)
