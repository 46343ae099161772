"""Routes of the users of the installation, for global admins."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.users import NamedMembership, UserWithRoles, search_people
from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.auth_policy import is_allowed
from ....storage.accounts.transactions.edit_users import (
    EDIT,
    create_user,
    delete_user,
    set_global_admin,
)
from ....storage.core.naming import words_fault
from ...auth.passwords import rule_broken
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, instant_text, known
from ..schemas.accounts import AdminUser, AdminUserMembership, CreateUser, UpdateAdminUser, User
from ..schemas.organizations import AuthType
from .auth_policy import configured_policy
from .me import user_json

_ALL: Final = "/api/v1/admin/users"
_ONE: Final = f"{_ALL}/{{userID}}"


class UsersQuery(msgspec.Struct, frozen=True):
    """`q` is part of an e-mail address or name, case-insensitive."""

    q: Annotated[str, Meta(max_length=200)] = ""


def _membership(membership: NamedMembership) -> AdminUserMembership:
    return AdminUserMembership(
        org_id=membership.org_uid,
        org_name=membership.org_name,
        project_id=known(membership.project_uid),
        project_name=known(membership.project_name),
        role=Role(membership.role),
    )


# By (has a password, has an OIDC identity).
_AUTH_TYPES: Final[Mapping[tuple[bool, bool], AuthType]] = {
    (True, False): "local",
    (False, True): "oidc",
    (True, True): "both",
    (False, False): "none",
}


def auth_type_of(*, has_password: bool, has_identity: bool) -> AuthType:
    return _AUTH_TYPES[has_password, has_identity]


def _user_json(person: UserWithRoles) -> AdminUser:
    return AdminUser(
        **msgspec.structs.asdict(user_json(person.user)),
        auth_type=auth_type_of(
            has_password=person.user.password is not None,
            has_identity=person.user.oidc_sub is not None,
        ),
        last_active_at=instant_text(person.user.last_active_at),
        memberships=[_membership(membership) for membership in person.memberships],
    )


async def list_people(ask: Request) -> list[AdminUser]:
    q = ask.query.q
    fault = words_fault(q)
    if fault is not None:
        raise Problem(f"q: {fault}")
    async with ask.context.pool.transaction("list_users", read_only=True) as tx:
        return [_user_json(person) for person in await search_people(tx, q)]


async def create(ask: Request) -> AdminUser:
    context, body = ask.context, ask.body
    async with context.pool.transaction("read_auth_policy", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    if not is_allowed(body.email, policy):
        raise Problem("email: must have a domain that the sign-in policy allows")
    password = given(body.password)
    hashed = None
    if password is not None:
        broken = rule_broken(password, policy.min_password_len)
        if broken is not None:
            raise Problem(f"password: {broken}")
        hashed = await context.passwords.hash(password)
    async with context.pool.transaction("create_user") as tx:
        row = await create_user(
            tx, ask.who, body.email, body.display_name, hashed, admin=body.is_global_admin
        )
    return _user_json(UserWithRoles(row, []))


async def update(ask: Request) -> User:
    async with ask.context.pool.transaction("update_user") as tx:
        row = await set_global_admin(tx, ask.who, ask.ids["userID"], admin=ask.body.is_global_admin)
    return user_json(row)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_user") as tx:
        await delete_user(tx, ask.who, ask.ids["userID"])


ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=EDIT,
        handler=list_people,
        summary="List all users with their memberships.",
        tag="people",
        query=UsersQuery,
        answer=list[AdminUser],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=EDIT,
        handler=create,
        summary="Create a user; without a password, password sign-in is not possible.",
        tag="people",
        body=CreateUser,
        answer=AdminUser,
        status=201,
        also=(409,),
    ),
    Route(
        method="PATCH",
        path=_ONE,
        action=EDIT,
        handler=update,
        summary="Grant or revoke the global admin right of another user.",
        tag="people",
        body=UpdateAdminUser,
        answer=User,
    ),
    Route(
        method="DELETE",
        path=_ONE,
        action=EDIT,
        handler=delete,
        summary="Delete another user.",
        tag="people",
        status=204,
        also=(400,),
    ),
)
