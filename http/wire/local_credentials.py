"""Resolution of a request's session cookie or bearer token to a principal.
An invalid cookie is ignored and the next credential is tried. A token with our prefix is never
interpreted as another kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...storage.accounts.queries.principals import TokenUsed, select_by_session, select_by_token
from ...storage.accounts.rules.access import CredentialKind, Principal
from ...storage.accounts.transactions import record_use
from ...storage.core.token import TokenKind, digest, kind_of
from ...storage.engine.pools import Pool, Tx
from ..auth.rights_cache import RightsCache

BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    principal: Principal
    # Digest of the session cookie, if the session is the credential.
    session_hash: bytes | None = None

    @property
    def by_cookie(self) -> bool:
        return self.principal.kind is CredentialKind.SESSION


async def identify(
    tx: Tx, headers: Mapping[str, str], cookie_name: str
) -> AuthenticatedCaller | None:
    """Returns the authenticated caller; None if no credential is valid."""
    cookie = cookie_of(headers.get("cookie", ""), cookie_name)
    if cookie:
        hashed = digest(cookie)
        signed_in = await select_by_session(tx, hashed)
        if signed_in is not None:
            if signed_in.stale:
                await record_use.record_session_seen(tx, hashed)
                await record_use.record_user_active(tx, signed_in.user.id)
            return AuthenticatedCaller(signed_in.principal, hashed)
    bearer = bearer_of(headers.get("authorization", ""))
    if kind_of(bearer) is TokenKind.API:
        used = await select_by_token(tx, digest(bearer))
        if used is not None:
            if used.stale:
                await record_use.record_token_used(tx, used.token.org, used.token.id)
            return AuthenticatedCaller(used.principal)
    return None


async def identify_in(
    pool: Pool,
    headers: Mapping[str, str],
    cookie_name: str,
    tokens: RightsCache[TokenUsed] | None = None,
) -> AuthenticatedCaller | None:
    """Returns the same with a connection of its own.

    A bearer token alone, as scripts send it, is resolved in one round trip, or from `tokens`. A
    second one records its use once a minute. Sessions are always read.
    """
    bearer = bearer_of(headers.get("authorization", ""))
    if "cookie" in headers:
        async with pool.transaction("identify") as tx:
            return await identify(tx, headers, cookie_name)
    if kind_of(bearer) is not TokenKind.API:
        return None
    hashed = digest(bearer)

    async def read() -> TokenUsed | None:
        async with pool.statement("identify_token") as tx:
            used = await select_by_token(tx, hashed)
        if used is not None and used.stale:
            async with pool.statement("record_token_use") as tx:
                await record_use.record_token_used(tx, used.token.org, used.token.id)
        return used

    used = await (read() if tokens is None else tokens.get(hashed, read))
    return None if used is None else AuthenticatedCaller(used.principal)


def bearer_of(header: str) -> str:
    if header[: len(BEARER)].lower() != BEARER:
        return ""
    return header[len(BEARER) :].strip()


def cookie_of(header: str, name: str) -> str:
    """Returns the first cookie with the name; empty without one.

    Browsers send the cookie with the longest path first (RFC 6265, section 5.4), so that of the
    installation precedes one of the whole host.
    """
    for pair in header.split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip().strip('"')
    return ""
