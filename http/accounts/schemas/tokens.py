"""Bodies of API tokens. The secret stands in the answer to its making, and in no other."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ...wire.schema import InstantText, Name, RequestSchema, Schema


class ApiToken(Schema, frozen=True, kw_only=True):
    """`actions` null: the role alone decides."""

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
    """`actions` only narrows what the role grants; left out or null, the role decides."""

    name: Name
    role: Role
    project_id: UUID | UnsetType | None = UNSET
    actions: Annotated[list[str], Meta(max_length=16)] | UnsetType | None = UNSET


class CreatedApiToken(Schema, frozen=True, kw_only=True):
    token: str
    api_token: ApiToken
