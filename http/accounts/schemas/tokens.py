"""JSON bodies of API tokens. Only the response to a create contains the secret."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ...wire.schema import InstantText, Name, RequestSchema, Schema


class ApiToken(Schema, frozen=True, kw_only=True):
    """If `actions` is null, the role alone defines the rights."""

    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    name: str
    role: Role
    actions: list[str] | None
    created_by: UUID | UnsetType = UNSET
    created_by_email: str | UnsetType = UNSET
    last_used_at: InstantText | UnsetType = UNSET
    created_at: InstantText


class CreateApiToken(RequestSchema, frozen=True, kw_only=True):
    """`actions` restricts the rights of the role. If absent or null, the role defines them."""

    name: Name
    role: Role
    project_id: UUID | UnsetType | None = UNSET
    actions: Annotated[list[str], Meta(max_length=16)] | UnsetType | None = UNSET


class CreatedApiToken(Schema, frozen=True, kw_only=True):
    token: str
    api_token: ApiToken
