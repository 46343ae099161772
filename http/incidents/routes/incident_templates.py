"""Routes of the incident templates of a project."""

from functools import partial
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.incidents.queries.incident_templates import select_templates_of
from ....storage.incidents.rows import IncidentTemplateRow
from ....storage.incidents.rules.incident import IncidentImpact
from ....storage.incidents.rules.incident_template import TemplateDraft
from ....storage.incidents.transactions.edit_incident_templates import (
    TemplateEdit,
    create_template,
    delete_template,
    edit_template,
)
from ....storage.incidents.transactions.edit_incidents import EDIT
from ...wire.route import Request, Route
from ...wire.schema import given
from ...wire.scope_keys import org_of, project_of
from ..schemas import CreateIncidentTemplate, IncidentTemplate, PatchIncidentTemplate

_ALL: Final = "/api/v1/projects/{projectID}/incident-templates"
_ONE: Final = "/api/v1/incident-templates/{templateID}"


def _template_json(row: IncidentTemplateRow) -> IncidentTemplate:
    return IncidentTemplate(
        id=row.uid,
        project_id=row.project_uid,
        name=row.name,
        title=row.title,
        impact=IncidentImpact(row.impact),
        body=row.body,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


async def list_templates(ask: Request) -> list[IncidentTemplate]:
    async with ask.context.pool.transaction("list_incident_templates", read_only=True) as tx:
        rows = await select_templates_of(tx, org_of(ask), project_of(ask))
    return [_template_json(row) for row in rows]


async def create(ask: Request) -> IncidentTemplate:
    body: CreateIncidentTemplate = ask.body
    draft = TemplateDraft(body.name, body.title, body.impact, body.body)
    async with ask.context.pool.transaction("create_incident_template") as tx:
        return _template_json(await create_template(tx, ask.who, ask.ids["projectID"], draft))


async def update(ask: Request) -> IncidentTemplate:
    body: PatchIncidentTemplate = ask.body
    edit = TemplateEdit(
        name=given(body.name),
        title=given(body.title),
        impact=given(body.impact),
        body=given(body.body),
    )
    async with ask.context.pool.transaction("edit_incident_template") as tx:
        return _template_json(await edit_template(tx, ask.who, ask.ids["templateID"], edit))


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_incident_template") as tx:
        await delete_template(tx, ask.who, ask.ids["templateID"])


_PROJECT: Final = ("project", "projectID")
_TEMPLATE: Final = ("template", "templateID")

_all: Final = partial(Route, path=_ALL, scope=_PROJECT, tag="incidents")
_one: Final = partial(Route, path=_ONE, scope=_TEMPLATE, tag="incidents")

ROUTES: Final = (
    _all(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=list_templates,
        summary="The project's incident templates, by name.",
        answer=list[IncidentTemplate],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create an incident template.",
        body=CreateIncidentTemplate,
        answer=IncidentTemplate,
        status=201,
        also=(409,),
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Change an incident template; incidents keep their copies.",
        body=PatchIncidentTemplate,
        answer=IncidentTemplate,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Delete an incident template.",
        status=204,
    ),
)
