"""Bodies of bundles: a project's monitors and services as one document, and its changes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ....storage.bundles.rules.bundle_diff import BundleChange
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


class BundlePlan(Schema, frozen=True, kw_only=True):
    """Plan of a bundle, or the result of applying it. `applied` is false for a plan.

    `changes` has an entry for each object of the bundle, and for each orphan of its file.
    """

    changes: list[BundleChange]
    applied: bool
