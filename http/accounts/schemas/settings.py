"""JSON bodies of settings of the installation."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.auth_policy import RequireTotp
from ....storage.accounts.rules.group_roles import CLAIM_LONGEST, VALUE_LONGEST
from ...wire.schema import InstantText, RequestSchema, Schema, SecretText


class AuthPolicy(Schema, frozen=True, kw_only=True):
    """Sign-in policy.

    `configured` is true if an administrator has set it. If `allowed_email_domains` is empty, all
    domains are allowed.
    """

    configured: bool
    min_password_len: int
    session_ttl_seconds: int
    require_totp: RequireTotp
    allowed_email_domains: list[str]


class PutAuthPolicy(RequestSchema, frozen=True, kw_only=True):
    """Complete sign-in policy.

    An absent length or lifetime gets the value of the configuration file. `configured` is ignored.
    """

    configured: bool | UnsetType = UNSET
    min_password_len: int | UnsetType = UNSET
    session_ttl_seconds: int | UnsetType = UNSET
    require_totp: RequireTotp = RequireTotp.NONE
    allowed_email_domains: list[str] = []


class OIDCSettingsView(Schema, frozen=True, kw_only=True):
    """OIDC settings.

    `configured` is true if an administrator has set them, and `active` if users can sign in with
    them now. `reload_error` is the reason why the last request to the provider failed. The secret
    is never returned.
    """

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
    # Reason why the stored redirect URL is ignored.
    redirect_url_fault: str | UnsetType = UNSET


class SetOIDCSettings(RequestSchema, frozen=True, kw_only=True):
    """OIDC settings to store.

    Absent fields are unchanged. An absent or empty secret keeps the stored one. If the issuer or
    the client id changes, the secret must be given again.
    """

    enabled: bool
    issuer: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    client_secret: SecretText | UnsetType = UNSET
    redirect_url: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    post_logout_url: str | UnsetType = UNSET
    button_label: str | UnsetType = UNSET
    bootstrap_admins: list[str] | UnsetType = UNSET


class GroupRole(Schema, frozen=True, kw_only=True):
    """Role of a group of the identity provider in an organization, or in one of its projects.

    `active` is false if single sign-on uses another issuer now.
    """

    id: UUID
    issuer: str
    claim: str
    value: str
    org_id: UUID
    org_name: str
    project_id: UUID | UnsetType = UNSET
    project_name: str | UnsetType = UNSET
    role: Role
    active: bool
    created_at: InstantText


class CreateGroupRole(RequestSchema, frozen=True, kw_only=True):
    """Rule for the present issuer of single sign-on."""

    claim: Annotated[str, Meta(max_length=CLAIM_LONGEST)] = "groups"
    value: Annotated[str, Meta(max_length=VALUE_LONGEST)]
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    role: Role
