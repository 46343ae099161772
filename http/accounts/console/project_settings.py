"""Settings of a project: its name, and its deletion after the name was typed.

The deletion of a large project continues in the background, and its screen shows the progress.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ....storage.accounts.rows import ManagedObject
from ....storage.accounts.transactions.edit_project import EDIT
from ....storage.core.refusal import Refused
from ....storage.retirement.transactions.delete_tenant import DELETE_PROJECT, managed_in_project
from ...ui.form_routes import page_route
from ...ui.form_values import stripped
from ...ui.formatting import count
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import problem_of
from ...wire.route import Request, Response, Route
from ..routes import projects as api
from ..routes.tenant_deletion import DeletionQuery
from ..schemas.organizations import DeletionCounts, Operation, Project, Rename

# Managed objects that the screen of a deletion names.
MANAGED_SHOWN: Final = 20
# The screen of a managed object, by its kind.
_PLACES: Final = {
    "monitor": "/monitors/{uid}",
    "service": "/services/{uid}",
    "channel": "/projects/{project}/channels",
    "schedule": "/projects/{project}/on-call?schedule={uid}",
    "escalation policy": "/escalation-policies/{uid}/edit",
    "alert routes": "/projects/{project}/alert-routes",
    "status page": "/projects/{project}/status-pages/{uid}",
    "webhook": "/organizations/{organization}/webhooks",
    "maintenance series": "/projects/{project}/maintenance",
    "project settings": "/projects/{project}/settings/general",
}
_WORDS: Final = (
    ("monitors", "monitor", ""),
    ("services", "service", ""),
    ("incidents", "incident", ""),
    ("status_pages", "status page", ""),
    ("results", "result", ""),
)


@dataclass(frozen=True, slots=True)
class ProjectFormResult:
    """Error of the form with its input."""

    error: str = ""
    typed: str = ""
    saved: bool = False


async def _frame(ask: Request) -> PageLayout:
    async with ask.context.pool.transaction("console_project_settings", read_only=True) as tx:
        return await frame_of(ask, tx)


async def render_general(ask: Request) -> Response:
    return await _general(ask, ProjectFormResult())


async def submit_general(ask: Request) -> Response:
    name = stripped(ask, "name")
    if not name:
        return await _general(ask, ProjectFormResult("Name: required."))
    try:
        await api.rename(replace(ask, body=Rename(name=name)))
    except Refused as refused:
        if refused.code != "invalid":
            raise
        return await _general(ask, ProjectFormResult(f"Name: {refused.message}.", name))
    return await _general(ask, ProjectFormResult(saved=True))


async def _general(ask: Request, said: ProjectFormResult) -> Response:
    return page(
        "accounts/console/project_general.html",
        status=400 if said.error else 200,
        frame=await _frame(ask),
        project=await api.read(ask),
        said=said,
    )


async def render_deletion(ask: Request) -> Response:
    """Shows what is deleted, or the managed objects that prevent it."""
    return await _deletion(ask, ProjectFormResult())


async def submit_deletion(ask: Request) -> Response:
    """Deletes the project if the form has its name."""
    project = await api.read(ask)
    typed = stripped(ask, "name")
    if typed != project.name:
        return await _deletion(
            ask, ProjectFormResult(f"The name is not {project.name}. Nothing was deleted.", typed)
        )
    try:
        answer = await api.delete(replace(ask, query=DeletionQuery()))
    except Refused as refused:
        if problem_of(refused).status != 409:
            raise
        return await _deletion(ask, ProjectFormResult(_conflict(refused)))
    if isinstance(answer.body, Operation):
        return redirect(f"/operations/{answer.body.id}")
    return redirect("/")


def _conflict(refused: Refused) -> str:
    text = " ".join(part for part in (refused.field, refused.message) if part)
    return f"Nothing was deleted: {text or refused.code}."


async def _managed(ask: Request) -> Response | None:
    """Returns the screen of a project that cannot be deleted, None if no object is managed."""
    async with ask.context.pool.transaction("console_managed", read_only=True) as tx:
        found = await managed_in_project(tx, ask.who, ask.ids["projectID"], MANAGED_SHOWN)
    if not found:
        return None
    project = await api.read(ask)
    return page(
        "accounts/console/delete_project.html",
        status=409 if ask.method == "POST" else 200,
        frame=await _frame(ask),
        project=project,
        managed=[(one, _place(project, one)) for one in found],
        more=found[0].many - len(found),
        many=count(found[0].many, "object is", "objects are"),
        deleted=(),
        said=ProjectFormResult(),
    )


def _place(project: Project, one: ManagedObject) -> str:
    place = _PLACES[one.kind]
    return place.format(uid=one.uid, project=project.id, organization=project.org_id)


async def _deletion(ask: Request, said: ProjectFormResult) -> Response:
    managed = await _managed(ask)
    if managed is not None:
        return managed
    answer = await api.delete(replace(ask, query=DeletionQuery(dry_run=True)))
    assert isinstance(answer.body, DeletionCounts), "a dry run answers with counts"
    return page(
        "accounts/console/delete_project.html",
        status=400 if said.error else 200,
        frame=await _frame(ask),
        project=await api.read(ask),
        managed=(),
        deleted=counts_in_words(answer.body),
        said=said,
    )


def counts_in_words(counts: DeletionCounts) -> Sequence[str]:
    """Returns what a deletion deletes, one line for each kind of object that exists."""
    found = [(getattr(counts, field), noun, plural) for field, noun, plural in _WORDS]
    return [count(many, noun, plural) for many, noun, plural in found if many]


_IN_PROJECT: Final = ("project", "projectID")
_GENERAL: Final = "/projects/{projectID}/settings/general"
_DELETE: Final = "/projects/{projectID}/settings/delete"

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=_GENERAL,
        action=EDIT,
        scope=_IN_PROJECT,
        handler=render_general,
        summary="Name and slug of a project.",
    ),
    page_route(
        method="POST",
        path=_GENERAL,
        action=EDIT,
        scope=_IN_PROJECT,
        handler=submit_general,
        summary="Rename a project.",
    ),
    page_route(
        method="GET",
        path=_DELETE,
        action=DELETE_PROJECT,
        scope=_IN_PROJECT,
        handler=render_deletion,
        summary="What the deletion of a project deletes.",
    ),
    page_route(
        method="POST",
        path=_DELETE,
        action=DELETE_PROJECT,
        scope=_IN_PROJECT,
        handler=submit_deletion,
        summary="Delete a project after its name was typed.",
    ),
)
