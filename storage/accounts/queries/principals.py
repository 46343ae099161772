"""Principals of credentials, read once per request, and again before work in the background."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from .. import rows as accounts_rows
from ..rows import SessionRow, UserRow
from ..rules.access import CredentialKind, Grant, Membership, Principal, Role
from ..rules.auth_policy import RequireTotp, owes_second_factor
from ..tables import api_tokens as tokens
from ..tables import sessions, users
from ..tables import user_identities as identities
from .auth_policy import NAME as AUTH_POLICY


class SessionPrincipal(msgspec.Struct, frozen=True):
    """Session with its user. `stale` states that its last use was recorded over a minute ago."""

    principal: Principal
    user: UserRow
    session: SessionRow
    stale: bool


class TokenUsed(msgspec.Struct, frozen=True):
    principal: Principal
    token: accounts_rows.TokenRow
    stale: bool


MINUTE_US = 60_000_000
_ASKED = f"""
select (select value ->> 'require_totp' from settings where name = '{AUTH_POLICY}'),
  totp_enabled_at is not null, time_zone, hour_clock from users where id = %(user)s
"""


class _Asked(msgspec.Struct, frozen=True):
    """Policy for second factors, whether the account has one, and how it sees times."""

    require: str | None
    has_factor: bool
    time_zone: str
    hour_clock: int


async def select_by_session(tx: Tx, token_hash: bytes) -> SessionPrincipal | None:
    session = await sessions.select_session(tx, token_hash)
    if session is None:
        return None
    user = await users.select_user_by_id(tx, session.user_id)
    if user is None:
        return None
    memberships = await users.select_memberships(tx, user.id)
    is_admin = user.is_global_admin or any(m.role == Role.ORG_ADMIN for m in memberships)
    asked = await tx.one(_Asked, _ASKED, user=user.id)
    if asked is None:
        return None
    principal = Principal(
        CredentialKind.SESSION,
        tuple(Membership(m.org, m.project, Role(m.role)) for m in memberships),
        user=user.uid,
        is_global_admin=user.is_global_admin,
        owes_second_factor=owes_second_factor(
            RequireTotp(asked.require or RequireTotp.NONE),
            is_admin=is_admin,
            has_password=user.password is not None,
            has_factor=asked.has_factor,
        ),
        label=user.display_name or user.email,
        uid=user.uid,
        time_zone=asked.time_zone,
        hour_clock=asked.hour_clock,
    )
    stale = tx.now - session.last_seen_at > MINUTE_US
    return SessionPrincipal(principal, user, session, stale)


async def select_user_by_identity(tx: Tx, issuer: str, subject: str) -> UserRow | None:
    key = await identities.select_identity(tx, issuer, subject)
    return None if key is None else await users.select_user_by_id(tx, key)


async def select_by_identity(tx: Tx, user: UserRow) -> Principal:
    """Returns the principal of a client with a provider token, limited to its memberships."""
    memberships = await users.select_memberships(tx, user.id)
    return Principal(
        CredentialKind.JWT,
        tuple(Membership(m.org, m.project, Role(m.role)) for m in memberships),
        user=user.uid,
        label=user.display_name or user.email or (user.oidc_sub or ""),
        uid=user.uid,
    )


async def select_by_person(tx: Tx, user: int) -> Principal | None:
    """Returns the principal of a person who answers without a session: its memberships only."""
    row = await users.select_user_by_id(tx, user)
    if row is None:
        return None
    memberships = await users.select_memberships(tx, user)
    return Principal(
        CredentialKind.SESSION,
        tuple(Membership(m.org, m.project, Role(m.role)) for m in memberships),
        user=row.uid,
        label=row.display_name or row.email,
        uid=row.uid,
    )


async def select_by_token(tx: Tx, token_hash: bytes) -> TokenUsed | None:
    token = await tokens.select_token_by_hash(tx, token_hash)
    if token is None:
        return None
    principal = _of_token(token)
    stale = token.last_used_at is None or tx.now - token.last_used_at > MINUTE_US
    return TokenUsed(principal, token, stale)


def _of_token(token: accounts_rows.TokenRow) -> Principal:
    return Principal(
        CredentialKind.TOKEN,
        (Membership(token.org, token.project, Role(token.role)),),
        user=token.creator_uid,
        actions=None if token.actions is None else frozenset(Grant(a) for a in token.actions),
        label=token.name,
        uid=token.uid,
    )


async def select_again(tx: Tx, uid: UUID) -> Principal | None:
    """Returns the principal with the rights that it has now, by its `uid`.

    None if its token was revoked or has expired, or its user was deleted.
    """
    token = await tokens.select_token(tx, uid)
    if token is not None:
        return _of_token(token)
    user = await users.select_user(tx, uid)
    if user is None:
        return None
    memberships = await users.select_memberships(tx, user.id)
    return Principal(
        CredentialKind.SESSION,
        tuple(Membership(m.org, m.project, Role(m.role)) for m in memberships),
        user=user.uid,
        is_global_admin=user.is_global_admin,
        label=user.display_name or user.email,
        uid=user.uid,
    )
