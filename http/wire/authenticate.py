"""Authentication by any credential: our cookie or token, else a client's JWT access token.

The provider of single sign-on signs the JWT (RFC 9068 and its predecessors). Its subject gets an
account at the first request. A request has the memberships of this account.
"""

import logging
from collections.abc import Mapping

from ...probes.oidc.oidc_client import ProviderFault
from ...storage.accounts.queries.oidc_settings import select_sign_on_shown
from ...storage.accounts.queries.principals import select_by_identity, select_user_by_identity
from ...storage.accounts.rules.oidc_claim import access_token_fault, client_of
from ...storage.accounts.transactions import record_use
from ...storage.accounts.transactions.oidc_sign_in import provision
from ...storage.core.instant import SECOND
from ...storage.core.token import claims_to_be_ours
from ..auth.jws import NotSigned, looks_signed
from .app_context import AppContext
from .errors import Problem
from .local_credentials import AuthenticatedCaller, bearer_of, identify_in

log = logging.getLogger("leadline.http")


async def authenticate(
    context: AppContext, headers: Mapping[str, str]
) -> AuthenticatedCaller | None:
    """Returns the authenticated caller; None if no credential is valid.

    Raises: Problem internal_error if the keys of the token's issuer cannot be fetched, since the
    token can then be neither accepted nor refused.
    """
    found = await identify_in(context.pool, headers, context.options.cookie_name, context.tokens)
    bearer = bearer_of(headers.get("authorization", ""))
    if found is not None or claims_to_be_ours(bearer) or not looks_signed(bearer):
        return found
    return await _identify_client(context, bearer)


async def _identify_client(context: AppContext, token: str) -> AuthenticatedCaller | None:
    async with context.pool.statement("read_oidc_settings") as tx:
        settings = (await select_sign_on_shown(tx, context.options.sign_on)).settings
    if not settings.enabled:
        return None
    try:
        claims = await context.providers.claims(settings.issuer, token)
    except NotSigned:
        return None
    except ProviderFault as failure:
        log.error("keys of the issuer cannot be fetched", extra={"cause": failure.reason})
        raise Problem("internal_error") from None
    fault = access_token_fault(
        claims,
        issuer=settings.issuer,
        audience=context.options.jwt_audience,
        now=context.clock() / SECOND,
    )
    if fault is not None:
        return None
    person = client_of(claims, issuer=settings.issuer)
    async with context.pool.transaction("identify_client") as tx:
        user = await select_user_by_identity(tx, person.issuer, person.subject)
        if user is not None:
            await record_use.record_user_active(tx, user.id)
            return AuthenticatedCaller(await select_by_identity(tx, user))
    user = await context.pool.transact("provision_jwt_user", lambda tx: provision(tx, person))
    async with context.pool.transaction("identify_client", read_only=True) as tx:
        return AuthenticatedCaller(await select_by_identity(tx, user))
