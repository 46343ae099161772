"""Organizations: members list them, admins rename them, global admins create and delete them."""

from functools import partial
from typing import Final

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.queries.visible_projects import select_visible_organizations
from ....storage.accounts.rows import OrganizationRow
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.transactions.edit_organization import (
    CREATE,
    RENAME,
    create_organization,
    rename_organization,
)
from ....storage.core.instant import to_text
from ....storage.retirement.transactions.delete_tenant import (
    DELETE_ORGANIZATION,
    begin_organization_deletion,
    count_organization,
)
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ..schemas.organizations import (
    CreateOrganization,
    DeletionCounts,
    Operation,
    Organization,
    Rename,
)
from .tenant_deletion import DeletionQuery, delete_tenant

_ALL: Final = "/api/v1/organizations"
_ONE: Final = f"{_ALL}/{{orgID}}"
_IN_IT: Final = ("organization", "orgID")


def _organization_json(row: OrganizationRow) -> Organization:
    return Organization(
        id=row.uid,
        slug=row.slug,
        name=row.name,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


async def list_all(ask: Request) -> list[Organization]:
    async with ask.context.pool.transaction("list_organizations", read_only=True) as tx:
        return [_organization_json(row) for row in await select_visible_organizations(tx, ask.who)]


async def create(ask: Request) -> Organization:
    async with ask.context.pool.transaction("create_organization") as tx:
        row = await create_organization(tx, ask.who, ask.body.slug, ask.body.name)
    return _organization_json(row)


async def read(ask: Request) -> Organization:
    async with ask.context.pool.transaction("read_organization", read_only=True) as tx:
        row = await select_organization(tx, ask.ids["orgID"])
    if row is None:
        raise Problem("not_found")
    return _organization_json(row)


async def rename(ask: Request) -> Organization:
    async with ask.context.pool.transaction("rename_organization") as tx:
        row = await rename_organization(tx, ask.who, ask.ids["orgID"], ask.body.name)
    return _organization_json(row)


async def delete(ask: Request) -> Response:
    return await delete_tenant(
        ask, ask.ids["orgID"], count_organization, begin_organization_deletion
    )


_all: Final = partial(Route, path=_ALL, tag="organizations")
_one: Final = partial(Route, path=_ONE, scope=_IN_IT, tag="organizations")

ROUTES: Final = (
    _all(
        method="GET",
        action=Permission(Need.ANYONE),
        handler=list_all,
        summary="The organizations that the caller is in.",
        answer=list[Organization],
    ),
    _all(
        method="POST",
        action=CREATE,
        handler=create,
        summary="Create an organization; the caller becomes its first org_admin.",
        body=CreateOrganization,
        answer=Organization,
        status=201,
        also=(409,),
    ),
    _one(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=read,
        summary="An organization.",
        answer=Organization,
    ),
    _one(
        method="PATCH",
        action=RENAME,
        handler=rename,
        summary="Rename an organization; its slug stays.",
        body=Rename,
        answer=Organization,
    ),
    _one(
        method="DELETE",
        action=DELETE_ORGANIZATION,
        handler=delete,
        summary="Delete an organization with its contents, or count them.",
        query=DeletionQuery,
        status=204,
        answers_too={200: DeletionCounts, 202: Operation},
        also=(409,),
    ),
)
