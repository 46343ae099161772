"""Users of the installation, for global admins: search, create, promote and delete."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta

from ....storage.accounts.transactions.edit_users import EDIT
from ....storage.core.instant import Instant, from_text
from ....storage.core.refusal import Refused
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import Moment, count, moment
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ..routes import users as api
from ..schemas.accounts import AdminUser, CreateUser, UpdateAdminUser
from .role_text import ROLE_WORDS

PATH: Final = "/admin/people"
_SAID: Final = {
    "email_taken": "This e-mail is in use.",
    "last_global_admin": "This is the last global admin. Add another global admin first.",
    "in_use": "On call: remove the user from escalation policies, schedules and overrides first.",
    "last_org_admin": "This user is the last admin of an organization. Add another admin"
    " there first.",
    "own_account": "You cannot change your own account here.",
    "not_found": "User was deleted.",
}
_WAYS: Final = {
    "local": "password",
    "oidc": "single sign-on",
    "both": "password or single sign-on",
    "none": "no password set",
}


class UserListQuery(msgspec.Struct, frozen=True):
    q: Annotated[str, Meta(max_length=200)] = ""


@dataclass(frozen=True, slots=True)
class UserItem:
    uid: UUID
    name: str
    email: str
    is_admin: bool
    is_self: bool
    way: str
    places: list[str]
    active: Moment | None


async def render_users(ask: Request) -> Response:
    return await _render(ask, ask.query.q)


async def submit_users(ask: Request) -> Response:
    try:
        match value_of(ask, "act"):
            case "create":
                await api.create(replace(ask, body=_parse_form(ask)))
            case "promote" | "demote" as verb:
                body = UpdateAdminUser(is_global_admin=verb == "promote")
                await api.update(_about(ask, body))
            case "delete":
                await api.delete(_about(ask))
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        text = f"{refused.field} {refused.message or refused.code}".strip()
        return await _render(ask, error=_SAID.get(refused.code) or f"{text[:1].upper()}{text[1:]}.")
    except Problem as problem:
        if problem.status != 400 or ":" not in problem.code:
            raise
        field, _, said = problem.code.partition(": ")
        return await _render(ask, error=f"{field.capitalize()} {said}.")
    return redirect(PATH)


def _parse_form(ask: Request) -> CreateUser:
    password = value_of(ask, "password")
    return CreateUser(
        email=stripped(ask, "email"),
        display_name=stripped(ask, "display_name"),
        password=password or UNSET,
        is_global_admin=bool(value_of(ask, "admin")),
    )


def _about(ask: Request, body: object = None) -> Request:
    try:
        uid = UUID(value_of(ask, "uid"))
    except ValueError:
        raise Refused("not_found") from None
    return replace(ask, ids={"userID": uid}, body=body)


async def _render(ask: Request, q: str = "", *, error: str = "") -> Response:
    found = await api.list_people(replace(ask, query=UserListQuery(q=q)))
    now = ask.context.clock()
    return page(
        "accounts/console/users.html",
        frame=await outer_frame_of(ask),
        status=400 if error else 200,
        path=PATH,
        first=f"{count(len(found), 'user')}{' found' if q else ''}",
        lines=[_item(one, ask.who.user, now) for one in found],
        q=q,
        error=error,
        typed=value_of(ask, "email") if error else "",
    )


def _item(one: AdminUser, own: object, now: Instant) -> UserItem:
    active = one.last_active_at
    return UserItem(
        one.id,
        one.display_name or one.email,
        one.email,
        one.is_global_admin,
        one.id == own,
        _WAYS[one.auth_type],
        [
            f"{ROLE_WORDS[each.role.value]} in {each.org_name}"
            + (f" / {each.project_name}" if isinstance(each.project_name, str) else "")
            for each in one.memberships
        ],
        moment(from_text(active), now) if isinstance(active, str) else None,
    )


_route: Final = partial(form_route, action=EDIT)

ROUTES: Final[tuple[Route, ...]] = (
    _route("GET", PATH, None, render_users, "Users of the installation.", UserListQuery),
    _route("POST", PATH, None, submit_users, "Add, promote or delete users."),
)
