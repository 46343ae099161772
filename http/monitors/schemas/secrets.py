"""JSON bodies of a project's secrets. No response contains a value."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.monitors.rules.secret import NAME_PATTERN, VALUE_BYTES_MOST
from ...wire.schema import InstantText, RequestSchema, Schema

SecretName = Annotated[str, Meta(max_length=63, pattern=NAME_PATTERN)]
# The rule limits bytes. A text over this limit in characters exceeds it in bytes too.
SecretValue = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=VALUE_BYTES_MOST,
        extra_json_schema={"format": "password", "writeOnly": True},
    ),
]


class UsedBy(Schema, frozen=True, kw_only=True):
    """Number of monitors, channels and webhooks that refer to the secret.

    `file_managed` are those that a bundle or a file provider manages.
    """

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
    """At least one field is required."""

    name: SecretName | UnsetType = UNSET
    value: SecretValue | UnsetType = UNSET
