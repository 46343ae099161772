"""Common base of all JSON bodies: format of instants, ids and texts, and optional fields.

A field that a schema declares with UNSET is omitted if it is unknown; a field of type `T | None` is
always present. Request bodies refuse unknown fields.
"""

from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...storage.core.instant import Instant, to_text

T = TypeVar("T")

InstantText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
# storage.core.naming contains the further rules for names, addresses and slugs.
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Words = Annotated[str, Meta(max_length=200)]
SlugText = Annotated[str, Meta(max_length=63, pattern="^[a-z][a-z0-9-]{0,62}$")]
Email = Annotated[str, Meta(min_length=3, max_length=254, extra_json_schema={"format": "email"})]
# Never returned, and never part of an error.
SecretText = Annotated[
    str, Meta(max_length=4_096, extra_json_schema={"format": "password", "writeOnly": True})
]


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """Body of a response."""


class RequestSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a request. Its repr shows no values, because it can contain a secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Error(Schema, frozen=True, kw_only=True):
    """Body of every refusal: one field with a stable code, or with a field and its rule."""

    error: str


def known(value: T | None) -> T | UnsetType:
    """Returns the value, or UNSET for None."""
    return UNSET if value is None else value


def given(value: T | UnsetType) -> T | None:
    """Returns the value, or None for UNSET."""
    return None if isinstance(value, UnsetType) else value


def instant_text(value: Instant | None) -> str | UnsetType:
    return UNSET if value is None else to_text(value)
