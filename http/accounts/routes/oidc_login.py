"""OIDC sign-in (OpenID Connect Core 1.0, section 3.1; PKCE, RFC 7636).

State, nonce and verifier are valid once, for ten minutes, in the browser that began. Every error
except 429 leads to the sign-in page with an error code, never to another site.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ....probes.oidc.oidc_client import (
    Client,
    Metadata,
    ProviderFault,
    Tokens,
    ask_about,
    authorization_address,
    redeem,
)
from ....probes.oidc.oidc_settings import OidcSettings
from ....probes.senders.public_address import redirect_outside_base_path, used_address
from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.group_roles import select_rules_of
from ....storage.accounts.queries.oidc_settings import select_sign_on
from ....storage.accounts.rows import FLOW_US, FlowRow
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.rules.oidc_claim import (
    OidcPerson,
    id_token_fault,
    merged,
    person_of,
)
from ....storage.accounts.transactions.oidc_sign_in import begin_flow, enter, link, pop_flow
from ....storage.core.instant import SECOND
from ....storage.core.refusal import Refused
from ....storage.core.token import digest
from ....storage.engine.keyring import CannotOpen
from ...auth.jws import NotSigned
from ...wire.app_context import AppContext
from ...wire.errors import Problem
from ...wire.local_credentials import cookie_of, identify_in
from ...wire.mail_config import mailing_now
from ...wire.own_paths import local_path
from ...wire.route import Request, Response, Route
from ...wire.session_cookie import client_text, new_secret, set_cookie
from .auth_policy import configured_policy

LOGIN: Final = "/auth/login"
CALLBACK: Final = "/auth/callback"
FLOWS_PER_MINUTE: Final = 30
FLOW_COOKIE: Final = "leadline_flow"
LINKED: Final = "/profile?done=link"


class LoginQuery(msgspec.Struct, frozen=True):
    """`redirect` is the local path after the sign-in."""

    redirect: str = "/"


class CallbackQuery(msgspec.Struct, frozen=True):
    code: str = ""
    state: str = ""
    error: str = ""
    iss: str = ""


class Stopped(Exception):
    """Ends an OIDC sign-in. `word` is the error code for the sign-in page."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


@dataclass(frozen=True, slots=True)
class Begun:
    """URL of the provider, and the cookie that identifies the browser at the callback."""

    address: str
    cookie: str


async def log_in(ask: Request) -> Response:
    try:
        begun = await begin(ask, local_path(ask.query.redirect))
    except Stopped as stopped:
        return _to_sign_in(stopped.word)
    return Response(headers={"Location": begun.address, "Set-Cookie": begun.cookie})


async def begin(ask: Request, to: str, link_user: int | None = None) -> Begun:
    """Begins a sign-in.

    Raises: Stopped, if OIDC is disabled or the provider does not answer; Problem `rate_limited`.
    """
    context = ask.context
    wait_seconds = context.flows.take(ask.client, FLOWS_PER_MINUTE, context.clock())
    if wait_seconds:
        raise Problem("rate_limited", headers={"Retry-After": str(wait_seconds)})
    settings = await settings_in_force(context)
    try:
        metadata = await context.providers.metadata(settings.issuer)
    except ProviderFault:
        raise Stopped("provider_unavailable") from None
    browser, state, nonce, verifier = (new_secret() for _ in range(4))
    flow = FlowRow(settings.issuer, nonce, verifier, to, link_user)
    async with context.pool.transaction("begin_oidc_sign_in") as tx:
        await begin_flow(tx, digest(state), digest(browser), flow)
    address = authorization_address(
        metadata,
        _client(settings),
        scopes=settings.scopes,
        state=state,
        nonce=nonce,
        challenge=_challenge(verifier),
    )
    return Begun(address, _flow_cookie(ask, browser, FLOW_US // SECOND))


async def handle_callback(ask: Request) -> Response:
    try:
        flow = await _taken(ask)
        settings = await settings_in_force(ask.context)
        if settings.issuer != flow.issuer:
            raise Stopped("expired")
        if ask.query.error or not ask.query.code:
            raise Stopped("refused")
        claims = await _vouched(ask, settings, flow)
        person = person_of(claims, issuer=settings.issuer)
        if flow.link_user is not None:
            return await _link(ask, flow.link_user, person)
        return await _enter(ask, settings, flow, person, claims)
    except Stopped as stopped:
        return _to_sign_in(stopped.word, _flow_cookie(ask, "", 0))


async def settings_in_force(context: AppContext) -> OidcSettings:
    """Returns the OIDC settings. Raises Stopped if OIDC is disabled."""
    async with context.pool.transaction("read_oidc_settings", read_only=True) as tx:
        try:
            found = await select_sign_on(tx, context.keyring, context.options.sign_on)
        except CannotOpen:
            raise Stopped("provider_unavailable") from None
    if not found.enabled:
        raise Stopped("off")
    return await _redirecting_here(context, found)


async def _redirecting_here(context: AppContext, found: OidcSettings) -> OidcSettings:
    """Returns the settings with a redirect URL below the path prefix of the installation."""
    fault = redirect_outside_base_path(found.redirect_url, context.options.base_path)
    if fault is None:
        return found
    configured = context.options.sign_on.redirect_url
    if not configured and (base := (await mailing_now(context)).base_url):
        configured = base + CALLBACK
    if redirect := used_address("redirect_url", found.redirect_url, configured, fault):
        return msgspec.structs.replace(found, redirect_url=redirect)
    raise Stopped("off")


async def _taken(ask: Request) -> FlowRow:
    """Returns the flow that this browser began, and deletes it."""
    browser = cookie_of(ask.headers.get("cookie", ""), FLOW_COOKIE)
    state = ask.query.state
    if not browser or not state:
        raise Stopped("expired")
    async with ask.context.pool.transaction("pop_oidc_sign_in") as tx:
        flow = await pop_flow(tx, digest(state), digest(browser))
    if flow is None:
        raise Stopped("expired")
    return flow


async def _vouched(ask: Request, settings: OidcSettings, flow: FlowRow) -> dict[str, Any]:
    """Returns the claims of the person that the provider authenticated. Raises Stopped."""
    providers = ask.context.providers
    try:
        metadata = await providers.metadata(settings.issuer)
        if (ask.query.iss or metadata.tells_issuer) and ask.query.iss != settings.issuer:
            # RFC 9207: the response is from another provider.
            raise Stopped("refused")
        tokens = await redeem(
            providers.reach, metadata, _client(settings), ask.query.code, flow.verifier
        )
        claims = await providers.claims(settings.issuer, tokens.id_token)
    except ProviderFault as fault:
        refused = fault.reason.startswith("http_status 4")
        raise Stopped("refused" if refused else "provider_unavailable") from None
    except NotSigned:
        raise Stopped("refused") from None
    fault_found = id_token_fault(
        claims,
        issuer=settings.issuer,
        client_id=settings.client_id,
        nonce=flow.nonce,
        now=ask.context.clock() / SECOND,
    )
    if fault_found is not None:
        raise Stopped("refused")
    async with ask.context.pool.transaction("read_group_roles", read_only=True) as tx:
        rules = await select_rules_of(tx, settings.issuer)
    if not {"email", *(rule.claim for rule in rules)} <= claims.keys():
        claims = merged(await _more(ask, metadata, tokens, claims["sub"]), claims)
    return claims


async def _more(ask: Request, metadata: Metadata, tokens: Tokens, subject: str) -> dict[str, Any]:
    """Returns the UserInfo claims of the same subject (Core 1.0, section 5.3.2).

    Returns no claims if the request fails. The address and the groups then stay unknown.
    """
    try:
        found = await ask_about(ask.context.providers.reach, metadata, tokens)
    except ProviderFault:
        return {}
    return found if found.get("sub") == subject else {}


async def _enter(
    ask: Request,
    settings: OidcSettings,
    flow: FlowRow,
    person: OidcPerson,
    claims: Mapping[str, Any],
) -> Response:
    context = ask.context
    secret = new_secret()
    client = client_text(ask.headers.get("user-agent", ""))
    async with context.pool.transaction("read_auth_policy", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    try:
        await context.pool.transact(
            "sign_on",
            lambda tx: enter(tx, person, settings, policy, digest(secret), client, claims),
        )
    except Refused:
        raise Stopped("not_allowed") from None
    cookie = set_cookie(context.options, secret, policy.session_ttl_seconds)
    return Response(headers={"Location": local_path(flow.redirect), "Set-Cookie": cookie})


async def _link(ask: Request, user: int, person: OidcPerson) -> Response:
    """Links the identity to the account whose session requested it and still exists."""
    context = ask.context
    identified = await identify_in(context.pool, ask.headers, context.options.cookie_name)
    if identified is None or not identified.by_cookie:
        raise Stopped("expired")
    principal = identified.principal
    try:
        await context.pool.transact("link", lambda tx: link(tx, principal, user, person))
    except Refused as refused:
        raise Stopped(refused.code) from None
    return Response(headers={"Location": LINKED, "Set-Cookie": _flow_cookie(ask, "", 0)})


def _client(settings: OidcSettings) -> Client:
    return Client(
        id=settings.client_id, secret=settings.client_secret, redirect_url=settings.redirect_url
    )


def _challenge(verifier: str) -> str:
    """Returns the code challenge (RFC 7636, section 4.2)."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()


def _flow_cookie(ask: Request, value: str, seconds: int) -> str:
    secure = "; Secure" if ask.context.options.cookie_secure else ""
    return f"{FLOW_COOKIE}={value}; Path=/auth; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _to_sign_in(word: str, cookie: str = "") -> Response:
    headers = {"Location": f"/sign-in?problem={quote(word, safe='')}"}
    return Response(headers={**headers, **({"Set-Cookie": cookie} if cookie else {})})


_NOBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    Route(
        method="GET",
        path=LOGIN,
        action=_NOBODY,
        handler=log_in,
        summary="Start the sign-in at the OIDC provider.",
        tag="single_sign_on",
        query=LoginQuery,
        status=302,
        head=False,
        also=(429,),
    ),
    Route(
        method="GET",
        path=CALLBACK,
        action=_NOBODY,
        handler=handle_callback,
        summary="Complete the OIDC sign-in: a session, or the sign-in page with an error.",
        tag="single_sign_on",
        query=CallbackQuery,
        status=302,
        head=False,
    ),
)
