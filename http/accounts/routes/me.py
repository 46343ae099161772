"""Routes of the caller's own account: profile, password, second factor and sessions."""

from typing import Final
from uuid import UUID

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.own_account import (
    OwnMembership,
    select_own_memberships,
    select_own_sessions,
    select_own_user,
)
from ....storage.accounts.queries.totp_factors import is_enabled
from ....storage.accounts.rows import SessionRow, UserRow
from ....storage.accounts.rules.access import Need, Permission, Role
from ....storage.accounts.rules.totp import enrolment_uri, spelt_secret
from ....storage.accounts.transactions import edit_totp as second_factor
from ....storage.accounts.transactions.change_password import CHANGE_PASSWORD, change_password
from ....storage.accounts.transactions.put_time_preference import OWN as OWN_PREFERENCE
from ....storage.accounts.transactions.put_time_preference import put_time_preference
from ....storage.accounts.transactions.sign_in import END_SESSION, end_session
from ....storage.core.instant import to_text
from ....storage.status_pages.queries.branding import shown_branding
from ...auth.passwords import rule_broken
from ...wire.errors import Problem
from ...wire.route import Request, Route, setting_routes
from ...wire.schema import instant_text, known
from ..schemas.accounts import (
    ChangePasswordRequest,
    Me,
    PutTimePreference,
    Session,
    TimePreference,
    TOTPDisableRequest,
    TOTPEnableRequest,
    TOTPEnableResponse,
    TOTPEnrollResponse,
    User,
)
from ..schemas.organizations import Membership
from .auth_policy import configured_policy
from .local_login import count_attempt

_ME: Final = "/api/v1/me"
# Issuer in the authenticator app, unless branding renames the product.
ISSUER: Final = "Leadline"


async def read_me(ask: Request) -> Me:
    async with ask.context.pool.transaction("read_me", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
        memberships = await select_own_memberships(tx, ask.who, user)
        has_factor = user is not None and await is_enabled(tx, user.id)
    return Me(
        user=user_json(user) if user else None,
        memberships=[_membership(m) for m in memberships],
        totp_enabled=has_factor,
    )


def user_json(row: UserRow) -> User:
    return User(
        id=row.uid,
        oidc_sub=known(row.oidc_sub),
        email=row.email,
        display_name=row.display_name,
        is_global_admin=row.is_global_admin,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


def _membership(own: OwnMembership) -> Membership:
    return Membership(
        id=known(own.uid),
        user_id=known(own.user_uid),
        org_id=own.org_uid,
        project_id=known(own.project_uid),
        role=Role(own.role),
        created_at=instant_text(own.created_at),
    )


async def read_preferences(ask: Request) -> TimePreference:
    return TimePreference(time_zone=ask.who.time_zone, hour_clock=ask.who.hour_clock)


async def write_preferences(ask: Request) -> TimePreference:
    body = ask.body
    async with ask.context.pool.transaction("put_preferences") as tx:
        await put_time_preference(tx, ask.who, body.time_zone, body.hour_clock)
    return TimePreference(time_zone=body.time_zone, hour_clock=body.hour_clock)


async def write_password(ask: Request) -> None:
    context, body = ask.context, ask.body
    async with context.pool.transaction("read_auth_policy", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    broken = rule_broken(body.new_password, policy.min_password_len)
    if broken is not None:
        raise Problem(f"new_password: {broken}")
    user = await _checked(ask, body.current_password, "current_password")
    hashed = await context.passwords.hash(body.new_password)
    assert ask.session_hash is not None, "only a session comes here"
    async with context.pool.transaction("change_password") as tx:
        await change_password(tx, ask.who, user, hashed, ask.session_hash)


async def enrol_factor(ask: Request) -> TOTPEnrollResponse:
    context = ask.context
    async with context.pool.transaction("enrol_totp") as tx:
        user, secret = await second_factor.enrol(tx, ask.who, context.keyring)
        product = (await shown_branding(tx)).product_name or ISSUER
    uri = enrolment_uri(secret, product, user.email)
    return TOTPEnrollResponse(secret=spelt_secret(secret), uri=uri)


async def enable_factor(ask: Request) -> TOTPEnableResponse:
    """Enables the second factor. Attempts count toward the sign-in limit."""
    context = ask.context
    count_attempt(ask)
    async with context.pool.transaction("enable_totp") as tx:
        codes = await second_factor.enable(tx, ask.who, ask.body.code, context.keyring)
    return TOTPEnableResponse(recovery_codes=codes)


async def disable_factor(ask: Request) -> None:
    user = await _checked(ask, ask.body.password, "password")
    async with ask.context.pool.transaction("disable_totp") as tx:
        await second_factor.disable(tx, ask.who, user)


async def _checked(ask: Request, password: str, field: str) -> UserRow:
    """Returns the caller's account after a check of its password.

    Attempts count toward the sign-in limit, so that a stolen session cannot guess passwords.
    """
    context = ask.context
    count_attempt(ask)
    async with context.pool.transaction("read_own_user", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
    if user is None:
        raise Problem("unauthorized")
    if not await context.passwords.matches(password, user.password):
        raise Problem(f"{field}: is not the password of this account")
    return user


async def list_sessions(ask: Request) -> list[Session]:
    assert ask.session_hash is not None, "only a session comes here"
    async with ask.context.pool.transaction("list_sessions", read_only=True) as tx:
        rows, current = await select_own_sessions(tx, ask.who, ask.session_hash)
    return [_session(row, current) for row in rows]


def _session(row: SessionRow, current: UUID | None) -> Session:
    return Session(
        id=row.uid,
        created_at=to_text(row.created_at),
        last_seen_at=to_text(row.last_seen_at),
        expires_at=to_text(row.expires_at),
        client=row.client,
        current=row.uid == current,
    )


async def delete_session(ask: Request) -> None:
    async with ask.context.pool.transaction("end_session") as tx:
        await end_session(tx, ask.who, ask.ids["sessionID"])


ROUTES: Final = (
    Route(
        method="GET",
        path=_ME,
        action=Permission(Need.ANYONE, basic=True, enrolling=True),
        handler=read_me,
        summary="Current principal and memberships.",
        tag="me",
        answer=Me,
    ),
    *setting_routes(
        f"{_ME}/preferences",
        read_preferences,
        write_preferences,
        OWN_PREFERENCE,
        tag="me",
        body=PutTimePreference,
        answer=TimePreference,
        summaries=(
            "Read how the console shows times to the user.",
            "Set the time zone and the clock of the console.",
        ),
    ),
    Route(
        method="POST",
        path=f"{_ME}/password",
        action=CHANGE_PASSWORD,
        handler=write_password,
        summary="Change the own password; ends all other sessions.",
        tag="me",
        body=ChangePasswordRequest,
        status=204,
        also=(409, 429),
    ),
    Route(
        method="POST",
        path=f"{_ME}/totp/enroll",
        action=second_factor.OWN,
        handler=enrol_factor,
        summary="Start the enrolment of a second factor; a first code enables it.",
        tag="me",
        answer=TOTPEnrollResponse,
        also=(400, 409),
    ),
    Route(
        method="POST",
        path=f"{_ME}/totp/enable",
        action=second_factor.OWN,
        handler=enable_factor,
        summary="Enable the second factor; returns the recovery codes once.",
        tag="me",
        body=TOTPEnableRequest,
        answer=TOTPEnableResponse,
        also=(409, 429),
    ),
    Route(
        method="POST",
        path=f"{_ME}/totp/disable",
        action=second_factor.OWN,
        handler=disable_factor,
        summary="Disable the second factor; needs the password.",
        tag="me",
        body=TOTPDisableRequest,
        status=204,
        also=(409, 429),
    ),
    Route(
        method="GET",
        path=f"{_ME}/sessions",
        action=Permission(Need.SESSION),
        handler=list_sessions,
        summary="List the own sessions, newest first.",
        tag="me",
        answer=list[Session],
    ),
    Route(
        method="DELETE",
        path=f"{_ME}/sessions/{{sessionID}}",
        action=END_SESSION,
        handler=delete_session,
        summary="End an own session.",
        tag="me",
        status=204,
    ),
)
