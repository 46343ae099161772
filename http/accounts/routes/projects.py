"""Projects of an organization. A member of one project sees only that project."""

from functools import partial
from typing import Final

from ....storage.accounts.queries.projects import select_project
from ....storage.accounts.queries.visible_projects import select_visible_projects
from ....storage.accounts.rows import ProjectRow
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.transactions.edit_project import (
    EDIT,
    create_project,
    rename_project,
)
from ....storage.core.instant import to_text
from ....storage.retirement.transactions.delete_tenant import (
    DELETE_PROJECT,
    begin_project_deletion,
    count_project,
)
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..schemas.organizations import CreateProject, DeletionCounts, Operation, Project, Rename
from .tenant_deletion import DeletionQuery, delete_tenant

_ALL: Final = "/api/v1/organizations/{orgID}/projects"
_ONE: Final = "/api/v1/projects/{projectID}"
_IN_ORG: Final = ("organization", "orgID")
_IN_IT: Final = ("project", "projectID")


def _project_json(row: ProjectRow) -> Project:
    return Project(
        id=row.uid,
        org_id=row.org_uid,
        slug=row.slug,
        name=row.name,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


async def list_of_organization(ask: Request) -> list[Project]:
    async with ask.context.pool.transaction("list_projects", read_only=True) as tx:
        return [
            _project_json(row) for row in await select_visible_projects(tx, ask.who, org_of(ask))
        ]


async def create(ask: Request) -> Project:
    body = ask.body
    async with ask.context.pool.transaction("create_project") as tx:
        row = await create_project(tx, ask.who, ask.ids["orgID"], body.slug, body.name)
    return _project_json(row)


async def read(ask: Request) -> Project:
    async with ask.context.pool.transaction("read_project", read_only=True) as tx:
        row = await select_project(tx, ask.ids["projectID"])
    if row is None:
        raise Problem("not_found")
    return _project_json(row)


async def rename(ask: Request) -> Project:
    async with ask.context.pool.transaction("rename_project") as tx:
        row = await rename_project(tx, ask.who, ask.ids["projectID"], ask.body.name)
    return _project_json(row)


async def delete(ask: Request) -> Response:
    return await delete_tenant(ask, ask.ids["projectID"], count_project, begin_project_deletion)


_all: Final = partial(Route, path=_ALL, scope=_IN_ORG, tag="projects")
_one: Final = partial(Route, path=_ONE, scope=_IN_IT, tag="projects")

ROUTES: Final = (
    _all(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=list_of_organization,
        summary="The projects of an organization that the caller sees.",
        answer=list[Project],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create a project.",
        body=CreateProject,
        answer=Project,
        status=201,
        also=(409,),
    ),
    _one(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=read,
        summary="A project.",
        answer=Project,
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=rename,
        summary="Rename a project; its slug stays.",
        body=Rename,
        answer=Project,
    ),
    _one(
        method="DELETE",
        action=DELETE_PROJECT,
        handler=delete,
        summary="Delete a project with its contents, or count them.",
        query=DeletionQuery,
        status=204,
        answers_too={200: DeletionCounts, 202: Operation},
        also=(409,),
    ),
)
