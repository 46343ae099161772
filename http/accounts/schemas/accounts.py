"""JSON bodies of sign-in, of the caller's account, and of the users of the installation."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.totp import CODE_LONGEST
from ...wire.schema import Email, InstantText, RequestSchema, Schema, SecretText, Words
from .organizations import AuthType, Membership

Code = Annotated[str, Meta(max_length=CODE_LONGEST)]


class LoginRequest(RequestSchema, frozen=True, kw_only=True):
    """Sign-in request.

    `username` is the e-mail address of the account. `totp` is a code of the authenticator app, or a
    recovery code.
    """

    username: Annotated[str, Meta(max_length=254)]
    password: SecretText
    totp: Code | UnsetType = UNSET


class SignedIn(Schema, frozen=True, kw_only=True):
    ok: bool


class ResetRequest(RequestSchema, frozen=True, kw_only=True):
    """Request for a password reset. The response does not reveal whether the account exists."""

    email: Email


class ResetConfirm(RequestSchema, frozen=True, kw_only=True):
    """`token` is part of the link in the e-mail. It is valid once, for 30 minutes."""

    token: Annotated[str, Meta(max_length=200)]
    new_password: SecretText


class AuthConfig(Schema, frozen=True, kw_only=True):
    """Available sign-in methods."""

    local: bool
    oidc: bool
    oidc_button_label: str | UnsetType = UNSET
    password_reset: bool


class ChangePasswordRequest(RequestSchema, frozen=True, kw_only=True):
    current_password: SecretText
    new_password: SecretText


class TOTPEnrollResponse(Schema, frozen=True, kw_only=True):
    """`secret` is in base32. `uri` contains it for the QR code of authenticator apps."""

    secret: str
    uri: str


class TOTPEnableRequest(RequestSchema, frozen=True, kw_only=True):
    """`code` is the current code of the authenticator app."""

    code: Code


class TOTPEnableResponse(Schema, frozen=True, kw_only=True):
    """Recovery codes, returned once. Each replaces one TOTP code."""

    recovery_codes: list[str]


class TOTPDisableRequest(RequestSchema, frozen=True, kw_only=True):
    password: SecretText


class User(Schema, frozen=True, kw_only=True):
    id: UUID
    oidc_sub: str | UnsetType = UNSET
    email: str
    display_name: str
    is_global_admin: bool
    created_at: InstantText
    updated_at: InstantText


class AdminUserMembership(Schema, frozen=True, kw_only=True):
    org_id: UUID
    org_name: str
    project_id: UUID | UnsetType = UNSET
    project_name: str | UnsetType = UNSET
    role: Role


class AdminUser(User, frozen=True, kw_only=True):
    auth_type: AuthType
    last_active_at: InstantText | UnsetType = UNSET
    memberships: list[AdminUserMembership]


class CreateUser(RequestSchema, frozen=True, kw_only=True):
    email: Email
    display_name: Words = ""
    password: SecretText | UnsetType = UNSET
    is_global_admin: bool = False


class UpdateAdminUser(RequestSchema, frozen=True, kw_only=True):
    is_global_admin: bool


class Me(Schema, frozen=True, kw_only=True):
    """`user` is null for a token, which has one membership."""

    user: User | None
    memberships: list[Membership]
    totp_enabled: bool


class TimePreference(Schema, frozen=True, kw_only=True):
    """Format of times in the console: a zone of the IANA database, and 12 or 24 hours."""

    time_zone: str
    hour_clock: int


class PutTimePreference(RequestSchema, frozen=True, kw_only=True):
    """Complete preference. The API itself has instants in UTC only."""

    time_zone: Annotated[str, Meta(max_length=64)]
    hour_clock: int


class Session(Schema, frozen=True, kw_only=True):
    id: UUID
    created_at: InstantText
    last_seen_at: InstantText
    expires_at: InstantText
    client: str
    current: bool
