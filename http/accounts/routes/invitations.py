"""Routes of invitations. The answer is the same for known and unknown addresses."""

from typing import Final
from uuid import UUID

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.invitations import (
    select_invitation_by_token,
    select_invitations_of,
)
from ....storage.accounts.queries.principals import SessionPrincipal, select_by_session
from ....storage.accounts.rows import InvitationRow
from ....storage.accounts.rules.access import Need, Permission, Role
from ....storage.accounts.rules.invitation import mail_state
from ....storage.accounts.transactions.edit_invitations import (
    RESENT_TOO_SOON,
    accept_as_new,
    accept_as_user,
    invite,
    new_link,
    resend,
    withdraw,
)
from ....storage.accounts.transactions.edit_members import EDIT
from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.core.token import TokenKind, digest, kind_of
from ...auth.csrf import is_cross_site
from ...auth.passwords import rule_broken
from ...wire.errors import Problem
from ...wire.local_credentials import cookie_of
from ...wire.mail_config import mailing_now
from ...wire.route import PUBLIC_BODY_LARGEST, Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of
from ..schemas.accounts import SignedIn
from ..schemas.invitations import AcceptInvitation, Invitation
from .auth_policy import configured_policy
from .local_login import count_attempt

_NOBODY: Final = Permission(Need.NOBODY)
_ONE: Final = "/api/v1/invitations/{invitationID}"
_RETRY_SECONDS: Final = "60"


def _invitation_json(row: InvitationRow, accept_url: str | None = None) -> Invitation:
    return Invitation(
        id=row.uid,
        email=row.email,
        role=Role(row.role),
        project_id=known(row.project_uid),
        invited_by=known(row.inviter),
        created_at=to_text(row.created_at),
        expires_at=to_text(row.expires_at),
        mail=mail_state(row.mail_due_at, row.mailed_at, row.attempts),
        accept_url=known(accept_url),
    )


async def list_invitations(ask: Request) -> list[Invitation]:
    async with ask.context.pool.transaction("list_invitations", read_only=True) as tx:
        return [_invitation_json(row) for row in await select_invitations_of(tx, org_of(ask))]


async def invite_address(ask: Request, email: str, project: UUID | None, role: Role) -> Invitation:
    """Invites an address to the organization of the path."""
    link, url = await _link(ask)
    async with ask.context.pool.transaction("invite") as tx:
        row = await invite(tx, ask.who, ask.ids["orgID"], email, project, role, link)
    ask.context.on_invited()
    return _invitation_json(row, url)


async def resend_invitation(ask: Request) -> Invitation:
    link, url = await _link(ask)
    try:
        async with ask.context.pool.transaction("resend_invitation") as tx:
            row = await resend(tx, ask.who, ask.ids["invitationID"], link)
    except Refused as refused:
        if refused.code != RESENT_TOO_SOON:
            raise
        raise Problem(RESENT_TOO_SOON, headers={"Retry-After": _RETRY_SECONDS}) from refused
    ask.context.on_invited()
    return _invitation_json(row, url)


async def _link(ask: Request) -> tuple[bytes | None, str | None]:
    """Returns the digest and the URL of a link for the inviter; None with a mail server."""
    mailing = await mailing_now(ask.context)
    if mailing.can_mail:
        return None, None
    token = new_link()
    base = mailing.base_url or ask.base_url
    return digest(token), f"{base}/invitations/{token}"


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("withdraw_invitation") as tx:
        await withdraw(tx, ask.who, ask.ids["invitationID"])


async def open_invitation(ask: Request) -> InvitationRow:
    """Returns the invitation of the path's link. Raises Problem not_found."""
    token = ask.words["token"]
    row = None
    if kind_of(token) is TokenKind.INVITATION:
        async with ask.context.pool.statement("read_invitation") as tx:
            row = await select_invitation_by_token(tx, digest(token))
    if row is None:
        raise Problem("not_found")
    return row


async def session_of(ask: Request) -> SessionPrincipal | None:
    """Returns the session of the browser, None without one."""
    cookie = cookie_of(ask.headers.get("cookie", ""), ask.context.options.cookie_name)
    if not cookie:
        return None
    async with ask.context.pool.transaction("identify", read_only=True) as tx:
        return await select_by_session(tx, digest(cookie))


async def accept(ask: Request) -> SignedIn:
    """Accepts with the session of the request, else with a new account.

    Raises: Problem `not_found`; `unauthorized`, if the address has an account or the body has no
    password; `forbidden`; `rate_limited`.
    """
    context, token = ask.context, ask.words["token"]
    signed_in = await session_of(ask)
    if signed_in is not None:
        if is_cross_site(ask.method, ask.headers, context.options.public_base_url):
            raise Problem("forbidden")
        if signed_in.principal.owes_second_factor:
            raise Problem("forbidden")
        async with context.pool.transaction("accept_invitation") as tx:
            await accept_as_user(tx, signed_in, token)
        return SignedIn(ok=True)
    count_attempt(ask)
    await open_invitation(ask)
    password = given(ask.body.password)
    if password is None or not context.options.local_enabled:
        raise Problem("unauthorized")
    async with context.pool.statement("read_auth_policy") as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    broken = rule_broken(password, policy.min_password_len)
    if broken is not None:
        raise Problem(f"password: {broken}")
    hashed = await context.passwords.hash(password)
    name = (given(ask.body.display_name) or "").strip()
    try:
        async with context.pool.transaction("accept_invitation") as tx:
            await accept_as_new(tx, token, name, hashed)
    except Refused as refused:
        if refused.code == "email_taken":
            raise Problem("unauthorized") from refused
        raise
    return SignedIn(ok=True)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/organizations/{orgID}/invitations",
        action=EDIT,
        scope=("organization", "orgID"),
        handler=list_invitations,
        summary="The open invitations of an organization.",
        tag="members",
        answer=list[Invitation],
    ),
    Route(
        method="POST",
        path=f"{_ONE}/resend",
        action=EDIT,
        scope=("invitation", "invitationID"),
        handler=resend_invitation,
        summary="Send an invitation again, at most once a minute; the earlier link ends.",
        tag="members",
        answer=Invitation,
        status=202,
        also=(429,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        action=EDIT,
        scope=("invitation", "invitationID"),
        handler=delete,
        summary="Withdraw an invitation.",
        tag="members",
        status=204,
    ),
    Route(
        method="POST",
        path="/api/v1/public/invitations/{token}/accept",
        action=_NOBODY,
        handler=accept,
        summary="Accept an invitation with a session, or with the password of a new account.",
        tag="members",
        body=AcceptInvitation,
        answer=SignedIn,
        body_largest=PUBLIC_BODY_LARGEST,
        also=(401, 403, 404, 429),
    ),
)
