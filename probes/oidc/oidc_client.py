"""OpenID Connect client: discovery, keys, token exchange and userinfo.

Every response is bounded and validated. An error reason is a fixed code, possibly with a status,
and contains no text of the provider.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import msgspec
import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.target import BadTarget, Url, read_url
from ..net.egress import Egress
from ..net.egress_httpx import is_whole, send_request
from .oidc_settings import LOOPBACK

ASK_SECONDS: Final = 10.0
ANSWER_BYTES_MOST: Final = 256 * 1024
KEYS_MOST: Final = 100
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


class ProviderFault(Exception):
    """Raised if a request to the provider fails or its response is invalid."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Provider metadata (OpenID Connect Discovery 1.0, section 3), as far as it is used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    userinfo_endpoint: str = ""
    token_methods: tuple[str, ...] = ("client_secret_basic",)
    tells_issuer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Registration of this installation with the provider."""

    id: str
    secret: str
    redirect_url: str


async def discover(reach: Egress, issuer: str) -> Metadata:
    """Returns the metadata of an issuer.

    Raises: `ProviderFault` if the document names another issuer (Discovery 1.0, section 4.3).
    """
    document = await _ask(reach, "GET", issuer.removesuffix("/") + _WELL_KNOWN)
    if document.get("issuer") != issuer:
        raise ProviderFault("issuer_differs")
    methods = document.get("token_endpoint_auth_methods_supported")
    return Metadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint"),
        token_endpoint=_endpoint(document, "token_endpoint"),
        jwks_uri=_endpoint(document, "jwks_uri"),
        end_session_endpoint=_endpoint(document, "end_session_endpoint", needed=False),
        userinfo_endpoint=_endpoint(document, "userinfo_endpoint", needed=False),
        token_methods=tuple(m for m in methods if isinstance(m, str))
        if isinstance(methods, list)
        else ("client_secret_basic",),
        tells_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


async def fetch_keys(reach: Egress, metadata: Metadata) -> list[dict[str, Any]]:
    """Returns the provider's keys as JSON (RFC 7517, section 5)."""
    keys = (await _ask(reach, "GET", metadata.jwks_uri)).get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ProviderFault("bad_keys")
    return keys[:KEYS_MOST]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a sign-in. `access` is "" without an access token."""

    id_token: str
    access: str


async def redeem(
    reach: Egress, metadata: Metadata, client: Client, code: str, verifier: str
) -> Tokens:
    """Exchanges a code for tokens (RFC 6749, section 4.1.3; RFC 7636, section 4.5)."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_url,
        "code_verifier": verifier,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if client.secret and "client_secret_basic" in metadata.token_methods:
        # RFC 6749, section 2.3.1: each part is form-encoded, then the pair is base64-encoded.
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client.id
        if client.secret:
            form["client_secret"] = client.secret
    body = urlencode(form).encode()
    found = await _ask(reach, "POST", metadata.token_endpoint, headers, body)
    token, access = found.get("id_token"), found.get("access_token")
    if not isinstance(token, str):
        raise ProviderFault("no_id_token")
    return Tokens(token, access if isinstance(access, str) else "")


async def ask_about(reach: Egress, metadata: Metadata, tokens: Tokens) -> dict[str, Any]:
    """Returns the userinfo claims (OpenID Connect Core 1.0, section 5.3).

    Returns {} if the provider has no userinfo endpoint or the access token is not usable.
    """
    token = tokens.access
    is_one = bool(token) and token.isascii() and token.isprintable()
    if not metadata.userinfo_endpoint or not is_one:
        return {}
    headers = {"Authorization": f"Bearer {token}"}
    return await _ask(reach, "GET", metadata.userinfo_endpoint, headers)


def authorization_address(
    metadata: Metadata,
    client: Client,
    *,
    scopes: tuple[str, ...],
    state: str,
    nonce: str,
    challenge: str,
) -> str:
    """Returns the authorization URL (OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636)."""
    given = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": client.redirect_url,
        "scope": " ".join(scopes),
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in metadata.authorization_endpoint else "?"
    return metadata.authorization_endpoint + separator + urlencode(given)


def sign_out_address(metadata: Metadata, client_id: str, to: str) -> str:
    """Returns the URL that ends the provider's session (RP-Initiated Logout 1.0, section 2).

    Returns "" if the provider has no such endpoint.
    """
    if not metadata.end_session_endpoint:
        return ""
    given = {"client_id": client_id, **({"post_logout_redirect_uri": to} if to else {})}
    separator = "&" if "?" in metadata.end_session_endpoint else "?"
    return metadata.end_session_endpoint + separator + urlencode(given)


async def _ask(
    reach: Egress,
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> dict[str, Any]:
    """Returns the JSON object of the provider's response.

    Raises: `ProviderFault`.
    """
    with trio.move_on_after(ASK_SECONDS):
        try:
            response = await send_request(
                reach,
                method,
                _url(url),
                headers={"Accept": "application/json", **(headers or {})},
                body=body,
                bytes_most=ANSWER_BYTES_MOST,
                seconds=ASK_SECONDS,
            )
        except TargetFailure as failure:
            raise ProviderFault(failure.failure.value) from None
        except LocalFailure as failure:
            raise ProviderFault(failure.reason.value) from None
        if response.status_code != 200:
            raise ProviderFault(f"http_status {response.status_code}")
        return _document(response)
    raise ProviderFault("timeout")


def _document(response: httpx.Response) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ProviderFault("bad_document") from None
    if not isinstance(found, dict) or not is_whole(response):
        raise ProviderFault("bad_document")
    return found


def _endpoint(document: dict[str, Any], name: str, *, needed: bool = True) -> str:
    text = document.get(name)
    if text is None and not needed:
        return ""
    if not isinstance(text, str):
        raise ProviderFault(f"no_{name}")
    _url(text)
    return text


def _url(text: str) -> Url:
    """Parses an https URL, or an http URL of a loopback host."""
    try:
        url = read_url(text)
    except BadTarget:
        raise ProviderFault("bad_endpoint") from None
    if url.scheme != "https" and url.host not in LOOPBACK:
        raise ProviderFault("not_https")
    return url
