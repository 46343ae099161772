"""JSON bodies of API tokens. Only the response to a create or a rotation contains the secret."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ...wire.schema import InstantText, Name, RequestSchema, Schema


class ApiToken(Schema, frozen=True, kw_only=True):
    """If `actions` is null, the role alone defines the rights.

    From `expires_at` on the token is refused. A `rotated` token has a successor. `start` is the
    beginning of the secret.
    """

    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    name: str
    role: Role
    actions: list[str] | None
    created_by: UUID | UnsetType = UNSET
    created_by_email: str | UnsetType = UNSET
    last_used_at: InstantText | UnsetType = UNSET
    expires_at: InstantText | UnsetType = UNSET
    rotated: bool
    start: str | UnsetType = UNSET
    created_at: InstantText


class CreateApiToken(RequestSchema, frozen=True, kw_only=True):
    """`actions` restricts the rights of the role. If absent or null, the role defines them.

    `expires_at` is at most 3,650 days ahead. If absent or null, the token has no end.
    """

    name: Name
    role: Role
    project_id: UUID | UnsetType | None = UNSET
    actions: Annotated[list[str], Meta(max_length=16)] | UnsetType | None = UNSET
    expires_at: InstantText | UnsetType | None = UNSET


class UpdateApiToken(RequestSchema, frozen=True, kw_only=True):
    """New name or end. `expires_at` null removes the end.

    Role, project and actions never change.
    """

    name: Name | UnsetType = UNSET
    expires_at: InstantText | UnsetType | None = UNSET


class RotateApiToken(RequestSchema, frozen=True, kw_only=True):
    """The old token ends after the overlap, at most 7 days; with 0 it ends immediately.

    The successor has the lifetime that was chosen for the old token.
    """

    overlap_seconds: Annotated[int, Meta(ge=0, le=604_800)] = 86_400


class CreatedApiToken(Schema, frozen=True, kw_only=True):
    token: str
    api_token: ApiToken
