"""Bodies of signing in, of one's own account, and of the instance's people."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.rules.access import Role
from .base import Email, Given, InstantText, SecretText, Shape, Words
from .organizations import Membership


class LoginRequest(Given, frozen=True, kw_only=True):
    """`username` is the account's e-mail address."""

    username: Annotated[str, Meta(max_length=254)]
    password: SecretText
    totp: Words | UnsetType = UNSET


class SignedIn(Shape, frozen=True, kw_only=True):
    ok: bool


class AuthConfig(Shape, frozen=True, kw_only=True):
    """Which ways of signing in there are."""

    local: bool
    oidc: bool
    oidc_button_label: str | UnsetType = UNSET
    password_reset: bool


class ChangePasswordRequest(Given, frozen=True, kw_only=True):
    current_password: SecretText
    new_password: SecretText


class User(Shape, frozen=True, kw_only=True):
    id: UUID
    oidc_sub: str | UnsetType = UNSET
    email: str
    display_name: str
    is_global_admin: bool
    created_at: InstantText
    updated_at: InstantText


class AdminUserMembership(Shape, frozen=True, kw_only=True):
    org_id: UUID
    org_name: str
    project_id: UUID | UnsetType = UNSET
    project_name: str | UnsetType = UNSET
    role: Role


class AdminUser(User, frozen=True, kw_only=True):
    auth_type: Literal["local", "oidc", "both", "none"]
    last_active_at: InstantText | UnsetType = UNSET
    memberships: list[AdminUserMembership]


class CreateUser(Given, frozen=True, kw_only=True):
    email: Email
    display_name: Words = ""
    password: SecretText | UnsetType = UNSET
    is_global_admin: bool = False


class UpdateAdminUser(Given, frozen=True, kw_only=True):
    is_global_admin: bool


class Me(Shape, frozen=True, kw_only=True):
    """`user` is null for a token, which has one membership."""

    user: User | None
    memberships: list[Membership]
    totp_enabled: bool


class Session(Shape, frozen=True, kw_only=True):
    id: UUID
    created_at: InstantText
    last_seen_at: InstantText
    expires_at: InstantText
    client: str
    current: bool


class BuildInfo(Shape, frozen=True, kw_only=True):
    version: str
    commit: str | UnsetType = UNSET
    python_version: str
