"""Incident templates of a project. All members see them; editors add, change and delete them."""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.naming import NAME_LONGEST
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.incident_templates import (
    select_template_of,
    select_templates_of,
)
from ....storage.incidents.rows import IncidentTemplateRow
from ....storage.incidents.rules.incident import BODY_LONGEST, TITLE_LONGEST, IncidentImpact
from ....storage.incidents.rules.incident_template import TEMPLATES_OF_PROJECT_MOST
from ....storage.incidents.transactions.edit_incidents import EDIT
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_in, value_of
from ...ui.formatting import Moment, moment, number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import incident_templates as api
from ..schemas import CreateIncidentTemplate, PatchIncidentTemplate
from .incident_mark import mark_of

_STEPS: Final = frozenset({"add", "edit", "delete"})
# Fault, and the field that it belongs to.
_SAID: Final = {
    "template_exists": ("name", "is already used by another template"),
    "template_quota": ("", f"Limit: {TEMPLATES_OF_PROJECT_MOST} incident templates per project."),
    "not_found": ("", "The template was deleted by another user."),
}
_DONE: Final = {
    "add": "The template was added.",
    "save": "Saved.",
    "delete": "The template was deleted.",
}


class TemplateQuery(msgspec.Struct, frozen=True):
    """`show` is the step: empty for the list, add, edit or delete. `uid` is the template."""

    show: str = ""
    uid: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class TemplateInput:
    """Values of the form. `fault` belongs to the field `faulty`, or to no field."""

    name: str = ""
    title: str = ""
    impact: str = IncidentImpact.MINOR
    body: str = ""
    faulty: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class TemplateItem:
    uid: UUID
    name: str
    title: str
    mark: str
    impact: str
    changed: Moment


async def render_templates(ask: Request) -> Response:
    query: TemplateQuery = ask.query
    what = query.show if query.show in _STEPS else ""
    return await _render(ask, what, query.uid, done=_DONE.get(query.done, ""))


async def submit_templates(ask: Request) -> Response:
    """Calls the API handler of the button."""
    what, uid = value_of(ask, "act"), value_of(ask, "template")
    typed = TemplateInput(
        name=stripped(ask, "name"),
        title=stripped(ask, "title"),
        impact=value_of(ask, "impact"),
        body=stripped(ask, "body"),
    )
    try:
        await _apply(ask, what, uid, typed)
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        faulty, fault = _SAID.get(refused.code, (refused.field, refused.message))
        typed = replace(typed, faulty=faulty, fault=fault)
        step = "" if refused.code == "not_found" else {"add": "add", "save": "edit"}.get(what, "")
        return await _render(ask, step, uid, typed)
    return redirect(f"/projects/{ask.ids['projectID']}/incident-templates?done={what}")


async def _apply(ask: Request, what: str, uid: str, typed: TemplateInput) -> None:
    if what == "delete":
        await api.delete(await _of_template(ask, uid))
        return
    try:
        impact = IncidentImpact(typed.impact)
    except ValueError:
        raise Problem("Unknown action") from None
    given = {"name": typed.name, "title": typed.title, "body": typed.body}
    match what:
        case "add":
            await api.create(replace(ask, body=CreateIncidentTemplate(**given, impact=impact)))
        case "save":
            body = PatchIncidentTemplate(**given, impact=impact)
            await api.update(replace(await _of_template(ask, uid), body=body))
        case _:
            raise Problem("Unknown action")


async def _of_template(ask: Request, uid: str) -> Request:
    """Returns the request for the template of the form. Raises Refused not_found."""
    async with ask.context.pool.transaction("console_incident_template", read_only=True) as tx:
        row = await _select(ask, tx, uid)
    if row is None:
        raise Refused("not_found")
    return replace(ask, ids={**ask.ids, "templateID": row.uid})


async def _select(ask: Request, tx: Tx, uid: str) -> IncidentTemplateRow | None:
    return await select_template_of(tx, org_of(ask), project_of(ask), uuid_in(uid))


async def _render(
    ask: Request, what: str, uid: str, typed: TemplateInput | None = None, *, done: str = ""
) -> Response:
    async with ask.context.pool.transaction("console_incident_templates", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_templates_of(tx, org_of(ask), project_of(ask))
        now = tx.now
        chosen = await _select(ask, tx, uid) if what in ("edit", "delete") else None
    if what and not frame.may_write:
        raise Problem("forbidden")
    if what in ("edit", "delete") and chosen is None:
        raise Problem("not_found")
    if typed is None:
        typed = _input(chosen) if chosen is not None else TemplateInput()
    return page(
        "incidents/console/incident_templates.html",
        status=400 if typed.fault else 200,
        frame=frame,
        what=what,
        chosen=chosen,
        typed=typed,
        done=done,
        path=f"/projects/{ask.ids['projectID']}/incident-templates",
        lines=[
            TemplateItem(
                row.uid,
                row.name,
                row.title,
                mark_of("", row.impact),
                row.impact.capitalize(),
                moment(row.updated_at, now),
            )
            for row in rows
        ],
        impacts=list(IncidentImpact),
        name_longest=NAME_LONGEST,
        title_longest=TITLE_LONGEST,
        body_longest=number(BODY_LONGEST),
        most=TEMPLATES_OF_PROJECT_MOST,
    )


def _input(row: IncidentTemplateRow) -> TemplateInput:
    return TemplateInput(name=row.name, title=row.title, impact=row.impact, body=row.body)


_PATH: Final = "/projects/{projectID}/incident-templates"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_templates,
        summary="A project's incident templates.",
        query=TemplateQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_templates,
        summary="Adds, changes or deletes an incident template.",
    ),
)
