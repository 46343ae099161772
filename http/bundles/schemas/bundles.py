"""Bodies of bundles: a project's monitors and services as one document."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ...wire.schema import RequestSchema, Schema

# storage.bundles.rules.bundle defines and validates the content of an entry.
Entries = dict[str, dict[str, Any]]
Format = Annotated[int, Meta(ge=1, le=2)]


class BundleRequest(RequestSchema, frozen=True, kw_only=True):
    """A bundle.

    `organization` and `project` are slugs or ids and must name the project of the request. Services
    require format 2.
    """

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


class BundleRelease(RequestSchema, frozen=True, kw_only=True):
    """Objects to release, by their uids in the bundle. Without both lists, all of the bundle."""

    monitors: list[str] | UnsetType = UNSET
    services: list[str] | UnsetType = UNSET


class ReleasedObjects(Schema, frozen=True, kw_only=True):
    """Numbers of objects that people own from now on."""

    monitors: int
    services: int
