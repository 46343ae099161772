"""Bodies of bundles: a project's monitors and services as one document, and what it changes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ....storage.bundles.rules.bundle_diff import BundleChange
from ...wire.schema import RequestSchema, Schema

# What an entry holds, and how it is refused, is storage.bundles.rules.bundle's to say.
Entries = dict[str, dict[str, Any]]
Format = Annotated[int, Meta(ge=1, le=2)]


class BundleRequest(RequestSchema, frozen=True, kw_only=True):
    """`organization` and `project` are slugs or ids, and those of the project that it is applied
    to. Services come with format 2."""

    format: Format
    organization: str
    project: str
    monitors: Entries | None
    services: Entries | UnsetType | None = UNSET


class Bundle(Schema, frozen=True, kw_only=True):
    format: Literal[1, 2]
    organization: str
    project: str
    monitors: Entries
    services: Entries | UnsetType = UNSET


class BundlePlan(Schema, frozen=True, kw_only=True):
    """An entry for each of the bundle, and for each that its file named before and no longer does.
    `applied` is false for a plan."""

    changes: list[BundleChange]
    applied: bool
