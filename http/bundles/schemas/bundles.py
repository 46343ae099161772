"""Bodies of bundles: a project's monitors, services and on-call objects as one document."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ...wire.schema import RequestSchema, Schema

# storage.bundles.rules.bundle defines and validates the content of an entry.
Entries = dict[str, dict[str, Any]]
Format = Annotated[int, Meta(ge=1, le=3)]


class BundleRequest(RequestSchema, frozen=True, kw_only=True):
    """A bundle.

    `organization` and `project` are slugs or ids and must name the project of the request. Services
    require format 2, and on-call objects format 3. A bundle of format 3 leaves the objects of an
    absent section alone.
    """

    format: Format
    organization: str
    project: str
    people: Entries | UnsetType | None = UNSET
    channels: Entries | UnsetType | None = UNSET
    schedules: Entries | UnsetType | None = UNSET
    escalation_policies: Entries | UnsetType | None = UNSET
    monitors: Entries | UnsetType | None = UNSET
    services: Entries | UnsetType | None = UNSET
    routes: dict[str, Any] | UnsetType | None = UNSET
    maintenance: Entries | UnsetType | None = UNSET
    status_pages: Entries | UnsetType | None = UNSET
    webhooks: Entries | UnsetType | None = UNSET
    project_settings: dict[str, Any] | UnsetType | None = UNSET


class Bundle(Schema, frozen=True, kw_only=True):
    format: Literal[1, 2, 3]
    organization: str
    project: str
    people: Entries | UnsetType = UNSET
    channels: Entries | UnsetType = UNSET
    schedules: Entries | UnsetType = UNSET
    escalation_policies: Entries | UnsetType = UNSET
    monitors: Entries
    services: Entries | UnsetType = UNSET
    routes: dict[str, Any] | UnsetType = UNSET
    maintenance: Entries | UnsetType = UNSET
    status_pages: Entries | UnsetType = UNSET
    webhooks: Entries | UnsetType = UNSET
    project_settings: dict[str, Any] | UnsetType = UNSET


class BundleRelease(RequestSchema, frozen=True, kw_only=True):
    """Objects to release, by their uids in the bundle. Without a list, all of the bundle.

    The uid of the alert routes is `routes`, and that of the settings of the project is `project`.
    """

    people: list[str] | UnsetType = UNSET
    monitors: list[str] | UnsetType = UNSET
    services: list[str] | UnsetType = UNSET
    channels: list[str] | UnsetType = UNSET
    schedules: list[str] | UnsetType = UNSET
    escalation_policies: list[str] | UnsetType = UNSET
    routes: list[str] | UnsetType = UNSET
    maintenance: list[str] | UnsetType = UNSET
    status_pages: list[str] | UnsetType = UNSET
    webhooks: list[str] | UnsetType = UNSET
    project_settings: list[str] | UnsetType = UNSET


class ReleasedObjects(Schema, frozen=True, kw_only=True):
    """Numbers of objects that people own from now on. The bundle forgets its `people`."""

    people: int
    monitors: int
    services: int
    channels: int
    schedules: int
    escalation_policies: int
    routes: int
    maintenance: int
    status_pages: int
    webhooks: int
    project_settings: int
