"""Roles of groups of the identity provider, for global admins."""

from dataclasses import replace
from functools import partial
from typing import Final
from uuid import UUID

from msgspec import UNSET

from ....storage.accounts.queries.group_roles import select_places
from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.group_roles import CLAIM_LONGEST, VALUE_LONGEST
from ....storage.accounts.transactions.edit_group_roles import EDIT
from ....storage.core.refusal import Refused
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, uuid_given, value_of
from ...ui.formatting import count
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ..routes import group_roles as api
from ..schemas.settings import CreateGroupRole
from .role_text import ROLE_WORDS

PATH: Final = "/admin/group-roles"


async def render_group_roles(ask: Request) -> Response:
    return await _render(ask)


async def submit_group_roles(ask: Request) -> Response:
    try:
        match value_of(ask, "act"):
            case "create":
                await api.create(replace(ask, body=_body(ask)))
            case "delete":
                await _delete(ask)
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        text = f"{refused.field} {refused.message or refused.code}".strip()
        return await _render(ask, f"{text[:1].upper()}{text[1:]}.")
    return redirect(PATH)


async def _delete(ask: Request) -> None:
    """Deletes a rule. Idempotent: an absent rule is not an error."""
    try:
        await api.delete(replace(ask, ids={"ruleID": uuid_given(value_of(ask, "uid"))}))
    except Refused as refused:
        if refused.code != "not_found":
            raise


def _body(ask: Request) -> CreateGroupRole:
    """Reads the form. A place is an organization, or an organization and a project."""
    organization, _, project = value_of(ask, "place").partition("/")
    return CreateGroupRole(
        claim=stripped(ask, "claim"),
        value=stripped(ask, "value"),
        org_id=uuid_given(organization),
        project_id=uuid_given(project) if project else UNSET,
        role=_role(value_of(ask, "role")),
    )


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise Refused("invalid", "role", "choose one from the list") from None


async def _render(ask: Request, error: str = "") -> Response:
    rules = await api.list_group_roles(ask)
    async with ask.context.pool.transaction("console_group_roles", read_only=True) as tx:
        places = await select_places(tx)
    typed = {name: value_of(ask, name) for name in ("claim", "value", "place", "role")}
    if not error:
        typed = {"claim": "groups", "value": "", "place": "", "role": ""}
    return page(
        "accounts/console/group_roles.html",
        frame=await outer_frame_of(ask),
        status=400 if error else 200,
        path=PATH,
        first=count(len(rules), "rule"),
        rules=rules,
        places=[(_key(org, project), words) for org, project, words in places],
        roles=ROLE_WORDS,
        typed=typed,
        error=error,
        claim_longest=CLAIM_LONGEST,
        value_longest=VALUE_LONGEST,
    )


def _key(organization: UUID, project: UUID | None) -> str:
    return f"{organization}/{project}" if project else str(organization)


_route: Final = partial(form_route, path=PATH, action=EDIT, scope=None)

ROUTES: Final[tuple[Route, ...]] = (
    _route(
        method="GET",
        handler=render_group_roles,
        summary="The roles of groups of the identity provider.",
    ),
    _route(
        method="POST",
        handler=submit_group_roles,
        summary="Add or delete a role of a group.",
    ),
)
