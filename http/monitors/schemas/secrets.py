"""Bodies of a project's secrets. A value comes in and never goes out."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.monitors.rules.secret import NAME_PATTERN, VALUE_BYTES_MOST
from ...wire.schema import InstantText, RequestSchema, Schema

SecretName = Annotated[str, Meta(max_length=63, pattern=NAME_PATTERN)]
# The bound counts bytes, which the rule does: a longer text is longer in bytes too.
SecretValue = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=VALUE_BYTES_MOST,
        extra_json_schema={"format": "password", "writeOnly": True},
    ),
]


class UsedBy(Schema, frozen=True, kw_only=True):
    """How many monitors refer to it, and how many of those a file manages."""

    total: int
    file_managed: int


class ProjectSecret(Schema, frozen=True, kw_only=True):
    id: UUID
    name: str
    created_at: InstantText
    rotated_at: InstantText | None
    used_by: UsedBy


class CreateSecretRequest(RequestSchema, frozen=True, kw_only=True):
    name: SecretName
    value: SecretValue


class CreatedSecret(Schema, frozen=True, kw_only=True):
    id: UUID
    name: str
    created_at: InstantText


class UpdateSecretRequest(RequestSchema, frozen=True, kw_only=True):
    """One of both is required."""

    name: SecretName | UnsetType = UNSET
    value: SecretValue | UnsetType = UNSET
