"""Bodies of signing in, of one's own account, and of the instance's people."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.totp import CODE_LONGEST
from ...wire.schema import Email, InstantText, RequestSchema, Schema, SecretText, Words
from .organizations import Membership

Code = Annotated[str, Meta(max_length=CODE_LONGEST)]


class LoginRequest(RequestSchema, frozen=True, kw_only=True):
    """`username` is the account's e-mail address, `totp` what the generator of its second factor
    shows, or one of its recovery codes."""

    username: Annotated[str, Meta(max_length=254)]
    password: SecretText
    totp: Code | UnsetType = UNSET


class SignedIn(Schema, frozen=True, kw_only=True):
    ok: bool


class ResetRequest(RequestSchema, frozen=True, kw_only=True):
    """Whether anybody has the address is told to nobody."""

    email: Email


class ResetConfirm(RequestSchema, frozen=True, kw_only=True):
    """`token` stands in the letter's link. It is good once, for 30 minutes."""

    token: Annotated[str, Meta(max_length=200)]
    new_password: SecretText


class AuthConfig(Schema, frozen=True, kw_only=True):
    """Which ways of signing in there are."""

    local: bool
    oidc: bool
    oidc_button_label: str | UnsetType = UNSET
    password_reset: bool


class ChangePasswordRequest(RequestSchema, frozen=True, kw_only=True):
    current_password: SecretText
    new_password: SecretText


class TOTPEnrollResponse(Schema, frozen=True, kw_only=True):
    """`secret` in base32, and the address of it that generators read from a QR code."""

    secret: str
    uri: str


class TOTPEnableRequest(RequestSchema, frozen=True, kw_only=True):
    """`code` is what the generator shows now."""

    code: Code


class TOTPEnableResponse(Schema, frozen=True, kw_only=True):
    """Each is good once in the place of a code. They are told here and never again."""

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
    auth_type: Literal["local", "oidc", "both", "none"]
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


class Session(Schema, frozen=True, kw_only=True):
    id: UUID
    created_at: InstantText
    last_seen_at: InstantText
    expires_at: InstantText
    client: str
    current: bool
