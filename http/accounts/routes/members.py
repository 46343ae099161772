"""Routes of the members of an organization or of one of its projects."""

from functools import partial
from typing import Final

import msgspec

from ....storage.accounts.queries.users import MemberRow, select_members
from ....storage.accounts.rows import MembershipRow
from ....storage.accounts.rules.access import Role
from ....storage.accounts.transactions.edit_invitations import is_member
from ....storage.accounts.transactions.edit_members import (
    EDIT,
    add_member,
    remove_member,
    update_member,
)
from ....storage.core.instant import to_text
from ...wire.route import Request, Response, Route
from ...wire.schema import given, instant_text, known
from ...wire.scope_keys import org_of
from ..schemas.invitations import Invitation
from ..schemas.organizations import AddMember, Member, Membership, UpdateMember
from .invitations import invite_address
from .users import auth_type_of

_ALL: Final = "/api/v1/organizations/{orgID}/members"
_ONE: Final = f"{_ALL}/{{membershipID}}"
_IN_ORG: Final = ("organization", "orgID")


def _membership(row: MembershipRow) -> Membership:
    return Membership(
        id=row.uid,
        user_id=row.user_uid,
        org_id=row.org_uid,
        project_id=known(row.project_uid),
        role=Role(row.role),
        created_at=to_text(row.created_at),
    )


def _member(row: MemberRow) -> Member:
    return Member(
        **msgspec.structs.asdict(_membership(row)),
        from_group=row.group_issuer is not None,
        email=row.email,
        display_name=row.display_name,
        auth_type=auth_type_of(has_password=row.has_password, has_identity=row.has_identity),
        totp_enabled=row.has_factor,
        last_active_at=instant_text(row.last_active_at),
    )


async def list_members(ask: Request) -> list[Member]:
    async with ask.context.pool.transaction("list_members", read_only=True) as tx:
        return [_member(row) for row in await select_members(tx, org_of(ask))]


async def add(ask: Request) -> Membership | Response:
    """Adds a member. An address that belongs to no member is invited: 202."""
    body = ask.body
    email = given(body.email)
    if email is not None and given(body.user_id) is None:
        async with ask.context.pool.transaction("find_member", read_only=True) as tx:
            known_here = await is_member(tx, org_of(ask), email)
        if not known_here:
            made = await invite_address(ask, email, given(body.project_id), body.role)
            return Response(body=made, status=202)
    async with ask.context.pool.transaction("add_member") as tx:
        row = await add_member(
            tx,
            ask.who,
            ask.ids["orgID"],
            given(body.user_id),
            given(body.email),
            given(body.project_id),
            body.role,
        )
    return _membership(row)


async def update(ask: Request) -> Membership:
    ids = ask.ids
    async with ask.context.pool.transaction("update_member") as tx:
        row = await update_member(tx, ask.who, ids["orgID"], ids["membershipID"], ask.body.role)
    return _membership(row)


async def remove(ask: Request) -> None:
    async with ask.context.pool.transaction("remove_member") as tx:
        await remove_member(tx, ask.who, ask.ids["orgID"], ask.ids["membershipID"])


_all: Final = partial(Route, path=_ALL, scope=_IN_ORG, tag="members")
_one: Final = partial(Route, path=_ONE, scope=_IN_ORG, tag="members")

ROUTES: Final = (
    _all(
        method="GET",
        action=EDIT,
        handler=list_members,
        summary="The members of an organization.",
        answer=list[Member],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=add,
        summary="Add a member, or invite an e-mail address that belongs to no member.",
        body=AddMember,
        answer=Membership,
        status=201,
        answers_too={202: Invitation},
        also=(409,),
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Change a member's role.",
        body=UpdateMember,
        answer=Membership,
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=remove,
        summary="End a membership; the last org_admin cannot be removed.",
        status=204,
        also=(400,),
    ),
)
