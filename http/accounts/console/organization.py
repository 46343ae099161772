"""Members and API tokens of an organization, for its admins.

Only the response to a create contains the secret of a token. A reload does not show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.queries.visible_projects import select_visible_projects
from ....storage.accounts.rules.access import Grant, Role
from ....storage.accounts.transactions.edit_members import EDIT
from ....storage.accounts.transactions.edit_tokens import CREATE
from ....storage.core.instant import Instant, from_text
from ....storage.core.refusal import Refused
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, value_of
from ...ui.formatting import Moment, count, moment
from ...ui.render import page, redirect
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..routes import members, tokens
from ..schemas.organizations import AddMember, Member, UpdateMember
from ..schemas.tokens import ApiToken, CreateApiToken

ROLE_WORDS: Final[Mapping[str, str]] = {
    "viewer": "Viewer",
    "editor": "Editor",
    "project_admin": "Project admin",
    "org_admin": "Organization admin",
}
_SAID: Final = {
    "last_org_admin": "This is the last admin of the organization. Add another admin first.",
    "member_exists": "This user already has a role in that scope.",
    "not_found": "It was deleted.",
    "action_not_granted": "A viewer cannot record changes. Choose a higher role.",
}
GRANT_WORDS: Final[Mapping[str, str]] = {
    Grant.GATE_EVALUATE.value: "ask the release gate",
    Grant.CHANGE_RECORD.value: "record changes",
}


@dataclass(frozen=True, slots=True)
class OrganizationMemberItem:
    uid: UUID
    name: str
    email: str
    role: str
    place: str
    active: Moment | None


@dataclass(frozen=True, slots=True)
class ApiTokenItem:
    uid: UUID
    name: str
    role: str
    place: str
    may: str
    maker: str
    used: Moment | None


@dataclass(frozen=True, slots=True)
class OrganizationFormResult:
    """Result of a form: the error with its form, or the secret of a new token."""

    form: str = ""
    error: str = ""
    secret: str = ""


async def render_organization(ask: Request) -> Response:
    return await _render(ask, OrganizationFormResult())


async def submit_organization(ask: Request) -> Response:
    """Calls the API handler of the button."""
    verb = value_of(ask, "act")
    try:
        match verb:
            case "add":
                await members.add(replace(ask, body=_new_member(ask)))
            case "role":
                body = UpdateMember(role=_role(ask))
                await members.update(_about(ask, "membershipID", body))
            case "remove":
                await members.remove(_about(ask, "membershipID"))
            case "token":
                made = await tokens.create(replace(ask, body=_new_token(ask)))
                return await _render(ask, OrganizationFormResult(secret=made.token))
            case "revoke":
                await tokens.delete(_about(ask, "tokenID"))
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        form = "token" if verb in ("token", "revoke") else "member"
        return await _render(ask, OrganizationFormResult(form=form, error=_sentence(refused)))
    return redirect(_path(ask))


def _sentence(refused: Refused) -> str:
    said = _SAID.get(refused.code)
    if said is not None:
        return said
    text = f"{refused.field} {refused.message or refused.code}".strip()
    return f"{text[:1].upper()}{text[1:]}."


def _path(ask: Request) -> str:
    return f"/organizations/{ask.ids['orgID']}/people"


def _about(ask: Request, name: str, body: object = None) -> Request:
    return replace(ask, ids={**ask.ids, name: uuid_given(value_of(ask, "uid"))}, body=body)


def _new_member(ask: Request) -> AddMember:
    project = _place(ask)
    return AddMember(
        email=stripped(ask, "email"),
        role=_role(ask),
        project_id=msgspec.UNSET if project is None else project,
    )


def _new_token(ask: Request) -> CreateApiToken:
    actions = [one for one in ask.form.get("action", []) if one]
    return CreateApiToken(
        name=stripped(ask, "name"),
        role=_role(ask),
        project_id=_place(ask),
        actions=actions or None,
    )


def _role(ask: Request) -> Role:
    try:
        return Role(value_of(ask, "role"))
    except ValueError:
        raise Refused("invalid", "role", "does not exist") from None


def _place(ask: Request) -> UUID | None:
    text = value_of(ask, "project")
    return uuid_given(text) if text else None


async def _render(ask: Request, said: OrganizationFormResult) -> Response:
    async with ask.context.pool.transaction("console_organization", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        projects = await select_visible_projects(tx, ask.who, org_of(ask))
        now = tx.now
    assert organization is not None, "its scope was found"
    places = {row.uid: row.name for row in projects}
    people = [_member(one, places, now) for one in await members.list_members(ask)]
    made = [_token(one, places, now) for one in await tokens.list_tokens(ask)]
    return page(
        "accounts/console/organization.html",
        status=400 if said.error else 200,
        path=_path(ask),
        organization=organization.name,
        first=f"{count(len(people), 'member')}, {count(len(made), 'API token')}",
        people=people,
        tokens=made,
        places=places,
        roles=ROLE_WORDS,
        grants=GRANT_WORDS,
        said=said,
        is_person=not ask.who.via_token,
    )


def _member(one: Member, places: Mapping[UUID, str], now: Instant) -> OrganizationMemberItem:
    assert isinstance(one.id, UUID), "a person's membership has an id"
    return OrganizationMemberItem(
        one.id,
        one.display_name or one.email,
        one.email,
        one.role.value,
        _names_by_id(one.project_id, places),
        _when(one.last_active_at, now),
    )


def _token(one: ApiToken, places: Mapping[UUID, str], now: Instant) -> ApiTokenItem:
    actions = one.actions
    may = "all of the role"
    if actions is not None:
        may = "only " + ", ".join(GRANT_WORDS.get(name, name) for name in actions)
    maker = one.created_by_email if isinstance(one.created_by_email, str) else "a deleted user"
    return ApiTokenItem(
        one.id,
        one.name,
        ROLE_WORDS[one.role.value],
        _names_by_id(one.project_id, places),
        may,
        maker,
        _when(one.last_used_at, now),
    )


def _names_by_id(project: UUID | msgspec.UnsetType, places: Mapping[UUID, str]) -> str:
    return places.get(project, "a project") if isinstance(project, UUID) else "all projects"


def _when(text: str | msgspec.UnsetType, now: Instant) -> Moment | None:
    return moment(from_text(text), now) if isinstance(text, str) else None


_IN_ORG: Final = ("organization", "orgID")
PATH: Final = "/organizations/{orgID}/people"

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=render_organization,
        summary="Members and tokens of an organization.",
    ),
    page_route(
        method="POST",
        path=PATH,
        action=CREATE,
        scope=_IN_ORG,
        handler=submit_organization,
        summary="Add, change or remove members and tokens.",
    ),
)
