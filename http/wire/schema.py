"""What all bodies on the wire share: how an instant, an id and a text are spelt, and what may lack.

A field that `shapes` of a family declares with UNSET is left out when it is unknown; one of type
`T | None` is always there. Request bodies refuse what they do not know.
"""

from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...storage.core.instant import Instant, to_text

T = TypeVar("T")

InstantText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
# What a name, an address and a slug may further be is storage.core.naming's to say, in words.
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Words = Annotated[str, Meta(max_length=200)]
SlugText = Annotated[str, Meta(max_length=63, pattern="^[a-z][a-z0-9-]{0,62}$")]
Email = Annotated[str, Meta(min_length=3, max_length=254, extra_json_schema={"format": "email"})]
# Never given back, and never part of an error.
SecretText = Annotated[
    str, Meta(max_length=4_096, extra_json_schema={"format": "password", "writeOnly": True})
]


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """A body that we send."""


class RequestSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body that we are sent. It may hold a secret, so that it is never spelt out."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Error(Schema, frozen=True, kw_only=True):
    """Every refusal, with exactly this one field: a stable code, or a field and what to mend."""

    error: str


def known(value: T | None) -> T | UnsetType:
    """The value, or nothing where it is unknown."""
    return UNSET if value is None else value


def given(value: T | UnsetType) -> T | None:
    """What was given, or None where nothing was."""
    return None if isinstance(value, UnsetType) else value


def instant_text(value: Instant | None) -> str | UnsetType:
    return UNSET if value is None else to_text(value)
