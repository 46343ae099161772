"""Members of an organization, for its admins: roles, invitations and their result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.queries.visible_projects import select_visible_projects
from ....storage.accounts.rules.access import Role
from ....storage.accounts.transactions.edit_members import EDIT
from ....storage.core.instant import Instant, from_text
from ....storage.core.refusal import Refused
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, uuid_in, value_of
from ...ui.formatting import Moment, ago, count, moment
from ...ui.render import page, redirect
from ...ui.shell.page_layout import initials, outer_frame_of
from ...wire.errors import Problem
from ...wire.mail_config import mailing_now
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..routes import invitations, members
from ..schemas.invitations import Invitation
from ..schemas.organizations import AddMember, Member, UpdateMember
from .role_text import ABILITIES, ROLE_WORDS, sign_in_words

_SAID: Final = {
    "in_use": "On call: remove the person from escalation policies, schedules and overrides first.",
    "last_org_admin": "This is the last admin of the organization. Add another admin first.",
    "member_exists": "This user already has a role in that scope.",
    "not_found": "The member or invitation no longer exists.",
    "rate_limited": "An invitation is sent at most once a minute. Try again later.",
}
_LABELS: Final = {"email": "E-mail", "role": "Role", "project_id": "Scope"}
_MAIL_WORDS: Final[Mapping[str, str]] = {
    "none": "by a link",
    "waiting": "e-mail waiting",
    "sent": "e-mail sent",
    "failed": "e-mail not delivered",
}
_INVITATION: Final = "invitationID"
_DONE: Final = {
    "added": "The member was added.",
    "removed": "The member was removed.",
    "invited": "The invitation is being sent.",
    "withdrawn": "The invitation was withdrawn.",
}


@dataclass(frozen=True, slots=True)
class MemberItem:
    uid: UUID
    name: str
    initials: str
    email: str
    role: str
    place: str
    sign_in: str
    active: Moment | None

    @property
    def detail(self) -> str:
        """Returns the line under the name: the address, unless it is the name, and the scope."""
        return self.place if self.name == self.email else f"{self.email}, {self.place}"


@dataclass(frozen=True, slots=True)
class InvitationItem:
    uid: UUID
    email: str
    role: str
    place: str
    inviter: str
    mail: str
    is_failed: bool
    ends: Moment


@dataclass(frozen=True, slots=True)
class MembersResult:
    """Result of a form: an error, a message with the role to restore, or a link to pass on."""

    error: str = ""
    text: str = ""
    undo: UUID | None = None
    undo_role: str = ""
    link: str = ""
    invited: str = ""


class MembersQuery(msgspec.Struct, frozen=True):
    """`show` is the step: empty for the list, invite, remove, withdraw or roles. `uid` names the
    object. `done` is the result of an action, `was` the role before it.
    """

    show: str = ""
    uid: str = ""
    done: str = ""
    was: str = ""


async def render_organization(ask: Request) -> Response:
    query = ask.query
    match query.show:
        case "invite":
            return await _step(ask, "invite")
        case "remove" | "withdraw":
            return await _confirm(ask, query.show)
        case "roles":
            return await _step(ask, "roles")
    return await _list(ask, await _done(ask))


async def submit_organization(ask: Request) -> Response:
    """Calls the API handler of the button."""
    verb = value_of(ask, "act")
    try:
        return await _apply(ask, verb)
    except (Refused, Problem) as refused:
        if isinstance(refused, Refused) and refused.code == "invalid":
            said = f"{_LABELS.get(refused.field, 'The form')}: {refused.message}."
        elif refused.code in _SAID:
            said = _SAID[refused.code]
        else:
            raise
        if verb == "add":
            return await _step(ask, "invite", error=said)
        return await _list(ask, MembersResult(error=said))


async def _apply(ask: Request, verb: str) -> Response:
    match verb:
        case "add":
            answer = await members.add(replace(ask, body=_new_member(ask)))
            if isinstance(answer, Response):
                return await _sent(ask, answer.body)
            return redirect(f"{_path(ask)}?done=added")
        case "role":
            uid = uuid_given(value_of(ask, "uid"))
            found = await members.list_members(ask)
            was = next((one.role.value for one in found if one.id == uid), "")
            await members.update(_about(ask, "membershipID", UpdateMember(role=_role(ask))))
            return redirect(f"{_path(ask)}?done=role&uid={uid}&was={was}")
        case "remove":
            await members.remove(_about(ask, "membershipID"))
            return redirect(f"{_path(ask)}?done=removed")
        case "resend":
            return await _sent(ask, await invitations.resend_invitation(_about(ask, _INVITATION)))
        case "withdraw":
            await invitations.delete(_about(ask, _INVITATION))
            return redirect(f"{_path(ask)}?done=withdrawn")
        case _:
            raise Problem("Unknown action")


async def _sent(ask: Request, made: Invitation) -> Response:
    """Shows the link if no mail server sends it."""
    if isinstance(made.accept_url, str):
        return await _list(ask, MembersResult(link=made.accept_url, invited=made.email))
    return redirect(f"{_path(ask)}?done=invited")


async def _done(ask: Request) -> MembersResult:
    """Returns the message of the query. Undo restores the role before a change."""
    query = ask.query
    if query.done != "role":
        return MembersResult(text=_DONE.get(query.done, ""))
    found = next((m for m in await members.list_members(ask) if str(m.id) == query.uid), None)
    if found is None:
        return MembersResult()
    text = f"{found.display_name or found.email} is now {ROLE_WORDS[found.role.value]}."
    if query.was not in ROLE_WORDS or query.was == found.role.value:
        return MembersResult(text=text)
    return MembersResult(text=text, undo=uuid_in(query.uid), undo_role=query.was)


def _path(ask: Request) -> str:
    return f"/organizations/{ask.ids['orgID']}/people"


def _about(ask: Request, name: str, body: object = None) -> Request:
    return replace(ask, ids={**ask.ids, name: uuid_given(value_of(ask, "uid"))}, body=body)


def _new_member(ask: Request) -> AddMember:
    project = value_of(ask, "project")
    return AddMember(
        email=stripped(ask, "email"),
        role=_role(ask),
        project_id=uuid_given(project) if project else msgspec.UNSET,
    )


def _role(ask: Request) -> Role:
    try:
        return Role(value_of(ask, "role"))
    except ValueError:
        raise Refused("invalid", "role", "does not exist") from None


async def _common(ask: Request) -> tuple[dict[str, Any], dict[UUID, str], Instant]:
    """Returns the values of every step, the projects, and the current instant."""
    async with ask.context.pool.transaction("console_organization", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        projects = await select_visible_projects(tx, ask.who, org_of(ask))
        now = tx.now
    assert organization is not None, "its scope was found"
    places = {row.uid: row.name for row in projects}
    values = {
        "frame": await outer_frame_of(ask, organization=ask.ids["orgID"]),
        "path": _path(ask),
        "organization": organization.name,
        "places": places,
        "roles": ROLE_WORDS,
    }
    return values, places, now


async def _list(ask: Request, said: MembersResult) -> Response:
    values, places, now = await _common(ask)
    people = [_member(one, places, now) for one in await members.list_members(ask)]
    waiting = [_invitation(one, places, now) for one in await invitations.list_invitations(ask)]
    return page(
        "accounts/console/organization.html",
        status=400 if said.error else 200,
        people=people,
        waiting=waiting,
        said=said,
        caption=count(len(people), "member"),
        waiting_caption=count(len(waiting), "invitation"),
        can_mail=(await mailing_now(ask.context)).can_mail,
        **values,
    )


async def _step(ask: Request, what: str, error: str = "") -> Response:
    """Shows the form of an invitation, or the table of what each role may do."""
    values, _, _ = await _common(ask)
    order = list(ROLE_WORDS)
    return page(
        "accounts/console/member_step.html",
        status=400 if error else 200,
        what=what,
        error=error,
        typed={name: value_of(ask, name) for name in ("email", "role", "project")},
        abilities=[
            (text, [order.index(role) >= order.index(least) for role in order])
            for text, least in ABILITIES
        ],
        can_mail=(await mailing_now(ask.context)).can_mail,
        name="",
        place="",
        uid="",
        **values,
    )


async def _confirm(ask: Request, what: str) -> Response:
    values, places, _ = await _common(ask)
    uid = uuid_in(ask.query.uid)
    name, project = "", None
    if what == "remove":
        for one in await members.list_members(ask):
            if one.id == uid:
                name, project = one.display_name or one.email, one.project_id
    else:
        for open_ in await invitations.list_invitations(ask):
            if open_.id == uid:
                name, project = open_.email, open_.project_id
    if not name or project is None:
        raise Problem("not_found")
    return page(
        "accounts/console/member_step.html",
        what=what,
        error="",
        typed={},
        abilities=(),
        can_mail=False,
        name=name,
        place=_names_by_id(project, places),
        uid=uid,
        **values,
    )


def _member(one: Member, places: Mapping[UUID, str], now: Instant) -> MemberItem:
    assert isinstance(one.id, UUID), "a person's membership has an id"
    active = one.last_active_at
    name = one.display_name or one.email
    return MemberItem(
        one.id,
        name,
        initials(name),
        one.email,
        one.role.value,
        _names_by_id(one.project_id, places),
        sign_in_words(one.auth_type, has_factor=one.totp_enabled),
        ago(from_text(active), now) if isinstance(active, str) else None,
    )


def _invitation(one: Invitation, places: Mapping[UUID, str], now: Instant) -> InvitationItem:
    return InvitationItem(
        one.id,
        one.email,
        ROLE_WORDS[one.role.value],
        _names_by_id(one.project_id, places),
        one.invited_by if isinstance(one.invited_by, str) else "a deleted user",
        _MAIL_WORDS[one.mail],
        one.mail == "failed",
        moment(from_text(one.expires_at), now),
    )


def _names_by_id(project: UUID | msgspec.UnsetType, places: Mapping[UUID, str]) -> str:
    return places.get(project, "a project") if isinstance(project, UUID) else "all projects"


_IN_ORG: Final = ("organization", "orgID")
PATH: Final = "/organizations/{orgID}/people"

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=render_organization,
        summary="Members of an organization and open invitations.",
        query=MembersQuery,
    ),
    page_route(
        method="POST",
        path=PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=submit_organization,
        summary="Invite, change or remove members.",
    ),
)
