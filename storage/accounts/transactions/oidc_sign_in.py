"""Sign-in by single sign-on, as the account of the identity or as a new account.

An account is found only by issuer and subject and never by an address. A local account gets an
identity only from its own session.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.oidc.oidc_settings import OidcSettings
from ...core.instant import SECOND, Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import users as users_queries
from ..queries.principals import select_user_by_identity
from ..rows import INSTANCE, FlowRow, UserRow
from ..rules.access import CredentialKind, Need, Permission, Principal
from ..rules.auth_policy import AuthPolicy, is_allowed
from ..rules.oidc_claim import OidcPerson, is_bootstrap_admin
from ..tables import sessions, user_identities, users
from ..tables import user_identities as identities
from .apply_group_roles import apply_group_roles
from .authorize import NOT_FOUND, audit, demand

IDENTITY_TAKEN: Final = "identity_taken"
NOT_ALLOWED: Final = "domain_not_allowed"
NO_CLAIMS: Final[Mapping[str, Any]] = MappingProxyType({})
OWN: Final = Permission(Need.SESSION)


async def enter(
    tx: Tx,
    person: OidcPerson,
    settings: OidcSettings,
    policy: AuthPolicy,
    token_hash: bytes,
    client: str,
    claims: Mapping[str, Any] = NO_CLAIMS,
) -> None:
    """Creates a session, and an account if the identity has none.

    `claims` are those of the provider; their groups change memberships as `apply_group_roles`.

    Raises:
        Refused domain_not_allowed if a new account cannot have the address.
    """
    user = await select_user_by_identity(tx, person.issuer, person.subject)
    if user is None:
        verified = person.email if person.email_verified else ""
        if not is_allowed(verified, policy):
            raise Refused(NOT_ALLOWED)
        user = await _made(tx, person)
    else:
        await _told(tx, user, person)
    if not user.is_global_admin and is_bootstrap_admin(person, settings.bootstrap_admins):
        await users.set_global_admin(tx, user.id, admin=True)
        target = f"user:{user.uid} is_global_admin=False->True bootstrap"
        await audit(tx, _principal(user), INSTANCE, "user.update", target)
    await apply_group_roles(tx, _principal(user), user, person.issuer, claims)
    expires = Instant(tx.now + policy.session_ttl_seconds * SECOND)
    await sessions.insert_session(
        tx, token_hash, uuid7(), user.id, client, expires, issuer=person.issuer
    )
    await users.record_active(tx, user.id)


async def provision(tx: Tx, person: OidcPerson) -> UserRow:
    """Returns the account of a token's identity. A new account has no memberships."""
    found = await select_user_by_identity(tx, person.issuer, person.subject)
    return found or await _made(tx, person)


async def link(tx: Tx, principal: Principal, user: int, person: OidcPerson) -> None:
    """Links the identity to the principal's account with key `user`.

    Raises:
        Refused identity_taken if another account has it, not_found if the session belongs to
        another account.
    """
    demand(principal, OWN, None)
    assert isinstance(principal.user, UUID), "a session has a person"
    own = await users.select_user(tx, principal.user)
    if own is None or own.id != user:
        raise Refused(NOT_FOUND)
    if await identities.insert_identity(tx, person.issuer, person.subject, own.id):
        target = f"user:{own.uid} issuer={person.issuer}"
        await audit(tx, principal, INSTANCE, "user.link_identity", target)
        return
    holder = await select_user_by_identity(tx, person.issuer, person.subject)
    if holder is None or holder.id != own.id:
        raise Refused(IDENTITY_TAKEN)


async def _made(tx: Tx, person: OidcPerson) -> UserRow:
    """Returns a new account, or that of a concurrent request with the same identity."""
    uid = uuid7()
    key = await _inserted(tx, uid, person, verified=person.email_verified)
    if key is None:
        # Another account has the address: it is stored unverified and not used for lookups.
        key = await _inserted(tx, uid, person, verified=False)
    assert key is not None, "an unverified address belongs to no account"
    if not await identities.insert_identity(tx, person.issuer, person.subject, key):
        await users.delete_user(tx, key)
        found = await select_user_by_identity(tx, person.issuer, person.subject)
        assert found is not None, "the conflicting account exists"
        return found
    user = await users.select_user_by_id(tx, key)
    assert user is not None, "it was just created"
    target = f"user:{uid} issuer={person.issuer}"
    await audit(tx, _principal(user), INSTANCE, "user.provision", target)
    return user


async def _inserted(tx: Tx, uid: UUID, person: OidcPerson, *, verified: bool) -> int | None:
    return await users.insert_user(
        tx, uid, person.email, person.name, None, admin=False, verified=verified
    )


async def _told(tx: Tx, user: UserRow, person: OidcPerson) -> None:
    """Updates an account without a password if the provider sends an address."""
    if user.password is not None or not person.email:
        return
    verified = person.email_verified
    if verified:
        holder = await users_queries.select_user_by_email(tx, person.email)
        verified = holder is None or holder.id == user.id
    name = person.name or user.display_name
    if (user.email, user.email_verified, user.display_name) != (person.email, verified, name):
        await users.update_from_provider(tx, user.id, person.email, name, verified=verified)


def _principal(user: UserRow) -> Principal:
    label = user.display_name or user.email or "somebody"
    return Principal(CredentialKind.SESSION, user=user.uid, label=label, uid=user.uid)


async def begin_flow(
    tx: Tx,
    state_hash: bytes,
    browser_hash: bytes,
    flow: FlowRow,
) -> None:
    await user_identities.begin_flow(tx, state_hash, browser_hash, flow)


async def pop_flow(tx: Tx, state_hash: bytes, browser_hash: bytes) -> FlowRow | None:
    """Deletes a flow and returns it, None if unknown, expired or of another browser."""
    return await user_identities.pop_flow(tx, state_hash, browser_hash)
