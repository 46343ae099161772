"""API tokens of an organization, for its admins: create, edit, rotate and revoke.

Only the response to a create or a rotation contains the secret of a token. A reload does not show
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.queries.visible_projects import select_visible_projects
from ....storage.accounts.rules.access import Grant, Role
from ....storage.accounts.rules.token_expiry import LIFETIME_DAYS_MOST
from ....storage.accounts.transactions.edit_tokens import CREATE, DELETE
from ....storage.core.instant import DAY, Instant, from_text, to_text
from ....storage.core.refusal import Refused
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, uuid_in, value_of
from ...ui.formatting import Moment, ago, ahead, count, moment
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...ui.time_inputs import day_field, end_of_day
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..routes import tokens
from ..schemas.tokens import (
    ApiToken,
    CreateApiToken,
    CreatedApiToken,
    RotateApiToken,
    UpdateApiToken,
)
from .role_text import ROLE_WORDS

GRANT_WORDS: Final[Mapping[str, str]] = {
    Grant.GATE_EVALUATE.value: "ask the release gate",
    Grant.CHANGE_RECORD.value: "record changes",
}
# Overlaps of a rotation in seconds, with their words.
OVERLAPS: Final = {
    "0": "Now",
    "3600": "In 1 hour",
    "86400": "In 1 day",
    "604800": "In 7 days",
}
# Lifetimes in days, with their words.
LIFETIMES: Final = {
    "30": "In 30 days",
    "90": "In 90 days",
    "365": "In 1 year",
    "never": "Never",
    "date": "On a date",
}
_USUAL: Final = "90"
_KEPT: Final = "kept"
_SAID: Final = {
    "action_not_granted": ("action", "A viewer cannot record changes. Choose a higher role."),
}
_LABELS: Final = {
    "name": "Name",
    "role": "Role",
    "project_id": "Scope",
    "expires_at": "Expires",
}
_ROTATED: Final = "The token was rotated meanwhile. Its end cannot be changed."
_DONE: Final = {
    "revoked": "The token was revoked.",
    "saved": "The token was saved.",
    "gone": "The token no longer exists. Nothing was changed.",
}


@dataclass(frozen=True, slots=True)
class TokenItem:
    uid: UUID
    name: str
    # The beginning of the secret, empty for tokens of earlier versions.
    start: str
    role: str
    place: str
    may: str
    maker: str
    used: Moment | None
    ends: Moment | None
    is_soon: bool
    is_rotated: bool


@dataclass(frozen=True, slots=True)
class NewToken:
    """New token. `old` is the token that it replaces, None without one or if it has ended."""

    secret: str
    name: str
    is_rotated: bool = False
    old: UUID | None = None
    old_ends: Moment | None = None


class TokenQuery(msgspec.Struct, frozen=True):
    """`show` is the step: empty for the list, new, edit, rotate or revoke. `uid` is the token."""

    show: str = ""
    uid: str = ""
    done: str = ""


async def render_tokens(ask: Request) -> Response:
    query = ask.query
    if query.show == "new":
        return await _form(ask)
    if query.show in ("edit", "rotate", "revoke"):
        return await _confirm(ask, query.show, query.uid)
    return await _list(ask, done=_DONE.get(query.done, ""))


async def submit_tokens(ask: Request) -> Response:
    """Calls the API handler of the button."""
    act = value_of(ask, "act")
    try:
        match act:
            case "create":
                return await _created(ask)
            case "update":
                return await _updated(ask)
            case "rotate":
                return await _rotated(ask)
            case "revoke":
                await tokens.delete(_about(ask))
                return redirect(f"{_path(ask)}?done=revoked")
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "not_found":
            return redirect(f"{_path(ask)}?done=gone")
        raise


async def _created(ask: Request) -> Response:
    try:
        made: CreatedApiToken = await tokens.create(replace(ask, body=_new_token(ask)))
    except Refused as refused:
        return await _form(ask, _wrong(refused))
    return await _list(ask, new=NewToken(made.token, made.api_token.name))


async def _updated(ask: Request) -> Response:
    """Saves the name and the end. A token without a field for its end keeps it."""
    try:
        ends: str | msgspec.UnsetType | None = msgspec.UNSET
        if value_of(ask, "expires") not in ("", _KEPT):
            ends = _end_of(ask)
        given = UpdateApiToken(name=stripped(ask, "name"), expires_at=ends)
        await tokens.update(_about(ask, given))
    except Refused as refused:
        is_rotated = refused.code == "token_rotated"
        wrong = {"name": _ROTATED} if is_rotated else _wrong(refused)
        return await _confirm(ask, "edit", value_of(ask, "uid"), wrong)
    return redirect(f"{_path(ask)}?done=saved")


def _wrong(refused: Refused) -> Mapping[str, str]:
    """Returns the error of a field. Raises the refusal if no field can repair it."""
    if refused.code not in ("invalid", *_SAID):
        raise refused
    label = _LABELS.get(refused.field, "")
    said = f"{label}: {refused.message}." if label else f"{refused.message}."
    field, text = _SAID.get(refused.code, (refused.field, said))
    return {field if field in _LABELS or field == "action" else "role": text}


def _end_of(ask: Request) -> str | None:
    """Returns the end that the form states, None for a token without an end.

    A date that is not chosen is refused, because the token would end on another day than it shows.
    """
    choice, date = value_of(ask, "expires") or "never", value_of(ask, "date")
    if choice not in LIFETIMES:
        raise Refused("invalid", "expires_at", "does not exist")
    if choice == "date":
        return to_text(end_of_day("expires_at", date))
    if date:
        raise Refused("invalid", "expires_at", "choose “On a date”, or clear the date")
    if choice == "never":
        return None
    return to_text(Instant(ask.context.clock() + int(choice) * DAY))


async def _rotated(ask: Request) -> Response:
    overlap = value_of(ask, "overlap")
    if overlap not in OVERLAPS:
        raise Problem("overlap: choose a value from the list")
    about = _about(ask, RotateApiToken(overlap_seconds=int(overlap)))
    old = about.ids["tokenID"]
    made = await tokens.rotate(about)
    rows = await tokens.list_tokens(ask)
    ends = next((one.expires_at for one in rows if one.id == old), None)
    new = NewToken(made.token, made.api_token.name, is_rotated=True)
    if isinstance(ends, str):
        now = ask.context.clock()
        new = replace(new, old=old, old_ends=moment(from_text(ends), now))
    return await _list(ask, new=new)


def _about(ask: Request, body: object = None) -> Request:
    """Returns the request for the token of the form. Refused not_found for another organization."""
    return replace(ask, ids={**ask.ids, "tokenID": uuid_given(value_of(ask, "uid"))}, body=body)


def _new_token(ask: Request) -> CreateApiToken:
    project = value_of(ask, "project")
    actions = [one for one in ask.form.get("action", []) if one]
    try:
        role = Role(value_of(ask, "role"))
    except ValueError:
        raise Refused("invalid", "role", "does not exist") from None
    return CreateApiToken(
        name=stripped(ask, "name"),
        role=role,
        project_id=uuid_given(project) if project else None,
        actions=actions or None,
        expires_at=_end_of(ask),
    )


def _path(ask: Request) -> str:
    return f"/organizations/{ask.ids['orgID']}/tokens"


async def _places(ask: Request) -> tuple[str, dict[UUID, str], Instant]:
    """Returns the name of the organization, its projects and the current instant."""
    async with ask.context.pool.transaction("console_tokens", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        projects = await select_visible_projects(tx, ask.who, org_of(ask))
        now = tx.now
    assert organization is not None, "its scope was found"
    return organization.name, {row.uid: row.name for row in projects}, now


async def _list(ask: Request, *, new: NewToken | None = None, done: str = "") -> Response:
    organization, places, now = await _places(ask)
    found = [_item(one, places, now) for one in await tokens.list_tokens(ask)]
    base = ask.base_url
    return page(
        "accounts/console/token_list.html",
        frame=await outer_frame_of(ask, organization=ask.ids["orgID"]),
        path=_path(ask),
        organization=organization,
        tokens=found,
        caption=count(len(found), "token"),
        new=new,
        done=done,
        call=f'curl -H "Authorization: Bearer $LEADLINE_TOKEN" {base}/api/v1/me',
        is_person=not ask.who.via_token,
    )


async def _form(ask: Request, wrong: Mapping[str, str] | None = None) -> Response:
    organization, places, _ = await _places(ask)
    return page(
        "accounts/console/token_step.html",
        what="new",
        status=400 if wrong else 200,
        frame=await outer_frame_of(ask, organization=ask.ids["orgID"]),
        path=_path(ask),
        organization=organization,
        places=places,
        roles=ROLE_WORDS,
        grants=GRANT_WORDS,
        typed=_typed(ask),
        lifetimes=LIFETIMES,
        **_edited(ask, wrong),
    )


def _edited(ask: Request, wrong: Mapping[str, str] | None) -> Mapping[str, Any]:
    """Returns the values of the fields for name and end: their errors and the range of dates."""
    now = ask.context.clock()
    return {
        "wrong": {**dict.fromkeys((*_LABELS, "action"), ""), **(wrong or {})},
        "first_day": day_field(now),
        "last_day": day_field(Instant(now + (LIFETIME_DAYS_MOST - 1) * DAY)),
    }


def _typed(ask: Request) -> Mapping[str, Any]:
    return {
        "expires": value_of(ask, "expires") or _USUAL,
        "date": value_of(ask, "date"),
        "name": value_of(ask, "name"),
        "role": value_of(ask, "role") or Role.VIEWER.value,
        "project": value_of(ask, "project"),
        "actions": ask.form.get("action", []),
    }


async def _confirm(
    ask: Request, what: str, given: str, wrong: Mapping[str, str] | None = None
) -> Response:
    """Shows a step of one token. `given` is its id, `wrong` the errors of an edit."""
    _, places, now = await _places(ask)
    uid = uuid_in(given)
    found = next((one for one in await tokens.list_tokens(ask) if one.id == uid), None)
    if found is None:
        raise Problem("not_found")
    token = _item(found, places, now)
    return page(
        "accounts/console/token_step.html",
        status=400 if wrong else 200,
        frame=await outer_frame_of(ask, organization=ask.ids["orgID"]),
        path=_path(ask),
        what=what,
        token=token,
        overlaps=OVERLAPS,
        lifetimes={_KEPT: "Unchanged", **LIFETIMES},
        typed={
            "name": stripped(ask, "name") if wrong else token.name,
            "expires": value_of(ask, "expires") if wrong else _KEPT,
            "date": value_of(ask, "date"),
        },
        **_edited(ask, wrong),
    )


def _item(one: ApiToken, places: Mapping[UUID, str], now: Instant) -> TokenItem:
    may = f"all of {ROLE_WORDS[one.role.value]}"
    if one.actions is not None:
        may = " and ".join(GRANT_WORDS.get(name, name) for name in one.actions)
    ends = from_text(one.expires_at) if isinstance(one.expires_at, str) else None
    project = one.project_id
    return TokenItem(
        one.id,
        one.name,
        one.start if isinstance(one.start, str) else "",
        ROLE_WORDS[one.role.value],
        places.get(project, "a project") if isinstance(project, UUID) else "all projects",
        may,
        one.created_by_email if isinstance(one.created_by_email, str) else "a deleted user",
        ago(from_text(one.last_used_at), now) if isinstance(one.last_used_at, str) else None,
        ahead(ends, now) if ends is not None else None,
        ends is not None and ends - now < 7 * DAY,
        one.rotated,
    )


PATH: Final = "/organizations/{orgID}/tokens"
_IN_ORG: Final = ("organization", "orgID")

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=DELETE,
        scope=_IN_ORG,
        handler=render_tokens,
        summary="API tokens of an organization.",
        query=TokenQuery,
    ),
    page_route(
        method="POST",
        path=PATH,
        action=CREATE,
        scope=_IN_ORG,
        handler=submit_tokens,
        summary="Create, edit, rotate or revoke an API token.",
    ),
)
