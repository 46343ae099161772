"""Projects of an organization: list and creation, for its admins."""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ....storage.accounts.queries.console_navigation import select_places_of
from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.transactions.edit_project import EDIT
from ....storage.core.refusal import Refused
from ...ui.form_routes import page_route
from ...ui.form_values import stripped
from ...ui.formatting import count
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem, fault_in_words
from ...wire.route import Request, Response, Route
from ..routes import projects as api
from ..schemas.organizations import CreateProject

_SAID: Final = {"slug_taken": "Slug: used by another project of this organization."}


@dataclass(frozen=True, slots=True)
class NewProjectInput:
    name: str = ""
    slug: str = ""
    error: str = ""


async def render_projects(ask: Request) -> Response:
    return await _render(ask, NewProjectInput())


async def submit_projects(ask: Request) -> Response:
    """Creates a project and opens it."""
    name, slug = stripped(ask, "name"), stripped(ask, "slug")
    try:
        body = msgspec.convert({"name": name, "slug": slug}, CreateProject)
        made = await api.create(replace(ask, body=body))
    except msgspec.ValidationError as error:
        return await _render(ask, NewProjectInput(name, slug, fault_in_words(str(error))))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        said = _SAID.get(refused.code) or f"{refused.field} {refused.message or refused.code}."
        return await _render(ask, NewProjectInput(name, slug, said.strip()))
    except Problem as problem:
        if problem.status != 400:
            raise
        return await _render(ask, NewProjectInput(name, slug, problem.code))
    return redirect(f"/projects/{made.id}")


async def _render(ask: Request, typed: NewProjectInput) -> Response:
    async with ask.context.pool.transaction("console_projects", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        projects = await select_places_of(tx, ask.ids["orgID"])
    assert organization is not None, "its scope was found"
    frame = await outer_frame_of(ask, organization=ask.ids["orgID"])
    return page(
        "accounts/console/project_list.html",
        status=400 if typed.error else 200,
        frame=frame,
        organization=organization.name,
        first=f"{count(len(projects), 'project')} in {organization.name}",
        projects=projects,
        typed=typed,
    )


_PATH: Final = "/organizations/{orgID}/projects"
_IN_ORG: Final = ("organization", "orgID")

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=_PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=render_projects,
        summary="Projects of an organization.",
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=submit_projects,
        summary="Create a project.",
    ),
)
