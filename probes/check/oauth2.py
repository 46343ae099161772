"""OAuth2 client credentials of a check (RFC 6749, 4.4): settings, rules and the token request.

Pure.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from .check import Check
from .credentials import CredentialEncoding, demanded_secret
from .monitor_spec import SECRET_LONGEST, Config, Field, FieldType, SpecFault
from .proxy import Proxy, proxy_of
from .target import BadTarget, read_url

OAUTH2: Final = "oauth2"
# Section of the form.
GROUP: Final = "OAuth2"
BASIC, POST = "client_secret_basic", "client_secret_post"

OAUTH2_FIELDS: Final = (
    Field(
        name="oauth2_token_url",
        type=FieldType.TEXT,
        help="Token endpoint, for auth_mode oauth2; redirects are not followed.",
        group=GROUP,
    ),
    Field(
        name="oauth2_client_id",
        type=FieldType.TEXT,
        help="Our client id at the token endpoint.",
        group=GROUP,
    ),
    Field(
        name="oauth2_client_secret",
        type=FieldType.TEXT,
        help="Stored encrypted, never shown.",
        secret=True,
        longest=SECRET_LONGEST,
        group=GROUP,
    ),
    Field(
        name="oauth2_client_secret_ref",
        type=FieldType.SECRET_NAME,
        help="The project secret with the client secret.",
        group=GROUP,
    ),
    Field(
        name="oauth2_scopes",
        type=FieldType.TEXT,
        help="Scopes to request, separated by spaces.",
        group=GROUP,
    ),
    Field(
        name="oauth2_audience",
        type=FieldType.TEXT,
        help="Audience to request, for endpoints that have this parameter.",
        group=GROUP,
    ),
    Field(
        name="oauth2_client_auth",
        type=FieldType.CHOICE,
        help="Place of the client secret in the request to the token endpoint.",
        default=BASIC,
        choices=(BASIC, POST),
        group=GROUP,
    ),
)

_SCOPES = re.compile(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*")


@dataclass(frozen=True, slots=True)
class TokenSetup:
    """Settings that determine a token. Checks with the same set-up share a token."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scopes: str
    audience: str
    client_auth: str
    proxy: Proxy | None


def oauth2_faults(config: Config) -> list[SpecFault]:
    """Returns the faults of the settings."""
    url = str(config.get("oauth2_token_url", ""))
    if config.get("auth_mode") != OAUTH2:
        said = "has an effect only with auth_mode oauth2"
        return [SpecFault("config.oauth2_token_url", said)] if url else []
    faults = []
    for name in ("oauth2_token_url", "oauth2_client_id"):
        if not config.get(name):
            said = "is required when auth_mode is oauth2"
            faults.append(SpecFault(f"config.{name}", said))
    try:
        if url:
            read_url(url)
    except BadTarget as bad:
        faults.append(SpecFault("config.oauth2_token_url", str(bad)))
    given = (config.get("oauth2_client_secret"), config.get("oauth2_client_secret_ref"))
    if all(given):
        said = "cannot be combined with oauth2_client_secret_ref"
        faults.append(SpecFault("config.oauth2_client_secret", said))
    elif not any(given):
        said = "or oauth2_client_secret_ref is required when auth_mode is oauth2"
        faults.append(SpecFault("config.oauth2_client_secret", said))
    scopes = str(config.get("oauth2_scopes", ""))
    if scopes and not _SCOPES.fullmatch(scopes):
        said = "must be scopes of visible ASCII characters, separated by single spaces"
        faults.append(SpecFault("config.oauth2_scopes", said))
    return faults


def uses_oauth2(check: Check) -> bool:
    return check.config.get("auth_mode") == OAUTH2


def token_setup(check: Check) -> TokenSetup:
    """Returns the set-up of a check with `uses_oauth2`.

    Raises: `LocalFailure` without the client secret.
    """
    return TokenSetup(
        url=str(read_url(check.text("oauth2_token_url"))),
        client_id=check.text("oauth2_client_id"),
        secret=demanded_secret(check, "oauth2_client_secret", CredentialEncoding.COUNTED),
        scopes=check.text("oauth2_scopes"),
        audience=check.text("oauth2_audience"),
        client_auth=check.text("oauth2_client_auth"),
        proxy=proxy_of(check),
    )
