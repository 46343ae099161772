"""Bodies of what is set for the whole installation."""

from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.auth_policy import RequireTotp
from ...wire.schema import RequestSchema, Schema, SecretText


class AuthPolicy(Schema, frozen=True, kw_only=True):
    """`configured` says that somebody has set it. No domain is named where any may be."""

    configured: bool
    min_password_len: int
    session_ttl_seconds: int
    require_totp: RequireTotp
    allowed_email_domains: list[str]


class PutAuthPolicy(RequestSchema, frozen=True, kw_only=True):
    """The whole of it: what is left out is as the configuration has it. `configured` is passed
    over."""

    configured: bool | UnsetType = UNSET
    min_password_len: int | UnsetType = UNSET
    session_ttl_seconds: int | UnsetType = UNSET
    require_totp: RequireTotp = RequireTotp.NONE
    allowed_email_domains: list[str] = []


class OIDCSettingsView(Schema, frozen=True, kw_only=True):
    """`configured` says that somebody has set it, `active` that people can sign in this way now;
    `reload_error` is why the provider could not be asked the last time. The secret is told to
    nobody."""

    configured: bool
    active: bool
    enabled: bool
    issuer: str
    client_id: str
    client_secret_set: bool
    redirect_url: str
    scopes: list[str]
    post_logout_url: str
    button_label: str
    bootstrap_admins: list[str]
    reload_error: str


class SetOIDCSettings(RequestSchema, frozen=True, kw_only=True):
    """What is left out stays as it is. A secret that is left out or blank stays, unless it would go
    to another issuer or be another client's."""

    enabled: bool
    issuer: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    client_secret: SecretText | UnsetType = UNSET
    redirect_url: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    post_logout_url: str | UnsetType = UNSET
    button_label: str | UnsetType = UNSET
    bootstrap_admins: list[str] | UnsetType = UNSET
