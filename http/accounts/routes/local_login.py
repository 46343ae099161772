"""Sign-in with a password, sign-out, and the available sign-in methods."""

from typing import Final

from msgspec import UNSET

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.oidc_settings import select_sign_on_shown
from ....storage.accounts.queries.users import select_user_by_email
from ....storage.accounts.rows import UserRow
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.rules.totp import TotpOutcome
from ....storage.accounts.transactions.edit_totp import pass_second_factor
from ....storage.accounts.transactions.sign_in import UNAUTHORIZED, sign_in, sign_out
from ....storage.core.token import digest
from ...auth.csrf import is_cross_site
from ...wire.errors import Problem
from ...wire.local_credentials import cookie_of
from ...wire.mail_config import mailing_now
from ...wire.route import Request, Response, Route
from ...wire.schema import given
from ...wire.session_cookie import clear_cookie, client_text, new_secret, set_cookie
from ..schemas.accounts import AuthConfig, LoginRequest, SignedIn
from .auth_policy import configured_policy

_NOBODY: Final = Permission(Need.NOBODY)
# OIDC users continue from this page: the policy forbids that a form ends in a redirect to another
# site.
SIGNED_OUT: Final = "/signed-out"
TOTP_REQUIRED: Final = "totp_required"


async def log_in(ask: Request) -> Response:
    """Signs in with a password. A cross-site request is refused.

    The hash is computed outside of transactions. It takes the same time for an unknown account.
    """
    context, body = ask.context, ask.body
    if not context.options.local_enabled:
        raise Problem("not_found")
    if is_cross_site(ask.method, ask.headers, context.options.public_base_url):
        raise Problem("forbidden")
    count_attempt(ask)
    async with context.pool.transaction("find_account", read_only=True) as tx:
        user = await select_user_by_email(tx, body.username)
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    stored = user.password if user else None
    if not await context.passwords.matches(body.password, stored) or user is None:
        raise Problem(UNAUTHORIZED)
    await _expect_second_factor(ask, user)
    secret = new_secret()
    client = client_text(ask.headers.get("user-agent", ""))
    async with context.pool.transaction("sign_in") as tx:
        await sign_in(tx, user, digest(secret), client, policy.session_ttl_seconds)
    cookie = set_cookie(context.options, secret, policy.session_ttl_seconds)
    return Response(body=SignedIn(ok=True), headers={"Set-Cookie": cookie})


async def _expect_second_factor(ask: Request, user: UserRow) -> None:
    """Checks the second factor in its own transaction, so that a failed attempt is stored."""
    context = ask.context
    async with context.pool.transaction("pass_second_factor") as tx:
        verdict = await pass_second_factor(tx, user, given(ask.body.totp), context.keyring)
    if verdict is TotpOutcome.REQUIRED:
        raise Problem(TOTP_REQUIRED)
    if verdict is TotpOutcome.REFUSED:
        raise Problem(UNAUTHORIZED)


def count_attempt(ask: Request) -> None:
    """Counts an attempt of the client. Raises Problem `rate_limited` at the limit per minute."""
    wait_seconds = ask.context.logins.take(
        ask.client, ask.context.options.login_rate_limit_per_minute, ask.context.clock()
    )
    if wait_seconds:
        raise Problem("rate_limited", headers={"Retry-After": str(wait_seconds)})


async def log_out(ask: Request) -> Response:
    """Signs out. Idempotent without a session. A cross-site request is refused."""
    options = ask.context.options
    secret = cookie_of(ask.headers.get("cookie", ""), options.cookie_name)
    to = "/"
    if secret:
        if is_cross_site(ask.method, ask.headers, options.public_base_url):
            raise Problem("forbidden")
        async with ask.context.pool.transaction("sign_out") as tx:
            issuer = await sign_out(tx, digest(secret))
        if issuer:
            to = SIGNED_OUT
    return Response(headers={"Location": to, "Set-Cookie": clear_cookie(options)})


async def read_auth_config(ask: Request) -> AuthConfig:
    local = ask.context.options.local_enabled
    can_mail = (await mailing_now(ask.context)).can_mail
    async with ask.context.pool.statement("read_oidc_settings") as tx:
        sign_on = (await select_sign_on_shown(tx, ask.context.options.sign_on)).settings
    label = sign_on.button_label if sign_on.enabled else ""
    return AuthConfig(
        local=local,
        oidc=sign_on.enabled,
        oidc_button_label=label or UNSET,
        password_reset=local and can_mail,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/auth/local/login",
        action=_NOBODY,
        handler=log_in,
        summary="Sign in with an e-mail address and a password; sets the session's cookie.",
        tag="signin",
        body=LoginRequest,
        answer=SignedIn,
        body_largest=64 << 10,
        also=(401, 403, 404, 429),
    ),
    Route(
        method="GET",
        path="/auth/config",
        action=_NOBODY,
        handler=read_auth_config,
        summary="Read the enabled sign-in methods.",
        tag="signin",
        answer=AuthConfig,
    ),
    Route(
        method="POST",
        path="/auth/logout",
        action=_NOBODY,
        handler=log_out,
        summary="End the session and clear its cookie.",
        tag="signin",
        status=302,
        also=(403,),
    ),
)
