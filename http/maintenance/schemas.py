"""Bodies of announced maintenance, and of previews of changes to the past."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.maintenance.rules import DURATION_SECONDS, RRULE_LONGEST
from ...storage.scheduling.rules.maintenance_window import REASON_LONGEST
from ..services.schemas.reliability import ReliabilityDurations
from ..wire.schema import InstantText, RequestSchema, Schema, Words

Reason = Annotated[str, Meta(max_length=REASON_LONGEST)]


class MaintenanceWindow(Schema, frozen=True, kw_only=True):
    """A maintenance, of the whole project if `monitor_id` is absent.

    `cancel_effective_at` is its actual end if it was ended early, and `archived_at` the instant
    when it was annulled or cancelled.
    """

    id: UUID
    project_id: UUID
    monitor_id: UUID | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText
    reason: str
    created_at: InstantText
    archived_at: InstantText | UnsetType = UNSET
    cancel_effective_at: InstantText | UnsetType = UNSET
    series_id: UUID | UnsetType = UNSET
    public_title: str | UnsetType = UNSET


class CreateMaintenance(RequestSchema, frozen=True, kw_only=True):
    """Request for a maintenance. `preview_id` is required if it begins before now.

    With a `public_title`, status pages that show an affected component notify their subscribers:
    scheduled, in progress, and completed or cancelled.
    """

    monitor_id: UUID | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText
    reason: Reason = ""
    preview_id: UUID | UnsetType = UNSET
    public_title: Words = ""


class MaintenanceSeries(Schema, frozen=True, kw_only=True):
    """Windows of equal length that begin by an RRULE (RFC 5545) in the local time of its zone.

    An empty zone is UTC.
    """

    id: UUID
    project_id: UUID
    monitor_id: UUID | UnsetType = UNSET
    rrule: str
    starts_at: InstantText
    duration_seconds: int
    timezone: str
    reason: str
    created_at: InstantText


class CreateMaintenanceSeries(RequestSchema, frozen=True, kw_only=True):
    monitor_id: UUID | UnsetType = UNSET
    rrule: Annotated[str, Meta(max_length=RRULE_LONGEST)]
    starts_at: InstantText
    duration_seconds: Annotated[int, Meta(ge=DURATION_SECONDS[0], le=DURATION_SECONDS[1])]
    timezone: Annotated[str, Meta(max_length=64)] = ""
    reason: Reason = ""


class AnnulMaintenance(RequestSchema, frozen=True, kw_only=True):
    preview_id: UUID | UnsetType = UNSET


class PreviewMaintenance(RequestSchema, frozen=True, kw_only=True):
    """Request for a preview.

    `annul` needs `maintenance_id`, and uses the instants of that maintenance.
    """

    monitor_id: UUID | UnsetType = UNSET
    mutation: Literal["create", "annul"] = "create"
    maintenance_id: UUID | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText


class ReliabilitySplit(ReliabilityDurations, frozen=True, kw_only=True):
    pass


class PreviewedService(Schema, frozen=True, kw_only=True):
    service_id: UUID
    before: ReliabilitySplit
    after: ReliabilitySplit
    projected: bool
    reason: Literal["range_too_long", "wall_budget", "evidence_gone"] | UnsetType = UNSET


class MaintenancePreview(Schema, frozen=True, kw_only=True):
    preview_id: UUID
    expires_at: InstantText
    coverage: Literal["complete", "approximate"]
    earliest_repairable: InstantText
    services: list[PreviewedService]
