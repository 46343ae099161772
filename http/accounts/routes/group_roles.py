"""Routes of the roles that groups of the identity provider give, set by global admins."""

from typing import Final

from ....storage.accounts.queries.group_roles import select_group_roles
from ....storage.accounts.queries.oidc_settings import select_sign_on_shown
from ....storage.accounts.rows import GroupRoleRow
from ....storage.accounts.rules.access import Role
from ....storage.accounts.transactions.edit_group_roles import (
    EDIT,
    add_group_role,
    remove_group_role,
)
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ..schemas.settings import CreateGroupRole, GroupRole

_ALL: Final = "/api/v1/settings/oidc/group-roles"


async def list_group_roles(ask: Request) -> list[GroupRole]:
    async with ask.context.pool.transaction("list_group_roles", read_only=True) as tx:
        issuer = await _issuer(ask, tx)
        return [_json(row, issuer) for row in await select_group_roles(tx)]


async def create(ask: Request) -> GroupRole:
    body: CreateGroupRole = ask.body
    place = (body.org_id, given(body.project_id))
    async with ask.context.pool.transaction("add_group_role") as tx:
        issuer = await _issuer(ask, tx)
        row = await add_group_role(
            tx, ask.who, issuer, body.claim.strip(), body.value.strip(), place, body.role
        )
    return _json(row, issuer)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("remove_group_role") as tx:
        await remove_group_role(tx, ask.who, ask.ids["ruleID"])


async def _issuer(ask: Request, tx: Tx) -> str:
    return (await select_sign_on_shown(tx, ask.context.options.sign_on)).settings.issuer


def _json(row: GroupRoleRow, issuer: str) -> GroupRole:
    return GroupRole(
        id=row.uid,
        issuer=row.issuer,
        claim=row.claim,
        value=row.value,
        org_id=row.org_uid,
        org_name=row.org_name,
        project_id=known(row.project_uid),
        project_name=known(row.project_name),
        role=Role(row.role),
        active=row.issuer == issuer,
        created_at=to_text(row.created_at),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=EDIT,
        handler=list_group_roles,
        summary="List the roles that groups of the identity provider give.",
        tag="sign_on_settings",
        answer=list[GroupRole],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=EDIT,
        handler=create,
        summary="Give a group of the identity provider a role, from the next sign-ins on.",
        tag="sign_on_settings",
        body=CreateGroupRole,
        answer=GroupRole,
        status=201,
    ),
    Route(
        method="DELETE",
        path=f"{_ALL}/{{ruleID}}",
        action=EDIT,
        handler=delete,
        summary="Delete a rule; the roles that it gave end at the next sign-in of each person.",
        tag="sign_on_settings",
        status=204,
    ),
)
