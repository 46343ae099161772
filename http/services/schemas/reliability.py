"""JSON bodies of a service's figures, by window and over time."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ....storage.services.rules.service_report import ServiceReportStatus
from ...wire.schema import InstantText, Schema
from .services import WindowName

Coverage = Annotated[float, Meta(ge=0, le=1)]


class ReliabilityDurations(Schema, frozen=True, kw_only=True):
    """Durations in microseconds.

    Good, bad, unknown and excluded add up to the range. Healthy, degraded, down and health unknown
    add up to the part that is not excluded.
    """

    good_us: int
    bad_us: int
    unknown_us: int
    excluded_us: int
    healthy_us: int
    degraded_us: int
    down_us: int
    health_unknown_us: int


class ReliabilitySegment(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Part of a window under one revision and epoch.

    It is a reconstruction if the revision was declared later.
    """

    revision_id: UUID
    revision: int
    epoch_id: UUID
    epoch_seq: int
    from_: InstantText
    to: InstantText
    buckets: int
    durations: ReliabilityDurations
    availability: float | UnsetType = UNSET
    coverage: Coverage
    declared_reconstruction: bool


class RepairingInterval(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: InstantText
    to: InstantText


class ServiceBudget(Schema, frozen=True, kw_only=True):
    """Error budget. The ratios are shares of the measured time."""

    objective: float
    objective_updated_at: InstantText
    allowed_downtime_ratio: float
    actual_downtime_ratio: float
    remaining_ratio: float
    burned_percent: float
    met: bool


class ServiceBurnWindow(Schema, frozen=True, kw_only=True):
    """Window that ends at the seal of the service.

    At a `rate` of 1 the budget is used up exactly at the end of the objective's window.
    """

    window: str
    status: ServiceReportStatus
    reason: str | UnsetType = UNSET
    expected_buckets: int
    sealed_buckets: int
    storage_continuity: bool
    coverage: Coverage
    rate: float | UnsetType = UNSET


class ServiceWindowReport(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Report of one window. Buckets are minutes.

    `sealed_through` is null if no time was sealed. Objective and burn are present if the window has
    an objective. A figure that cannot be computed is absent; `reason` or `aggregate_withheld`
    states why. `retracted_at` and `retracted_to` are absent, as in ServiceMaterialization.
    """

    service_id: UUID
    window: WindowName
    as_of: InstantText
    sealed_through: InstantText | None
    from_: InstantText
    to: InstantText
    status: ServiceReportStatus
    reason: str | UnsetType = UNSET
    storage_continuity: bool
    expected_buckets: int
    sealed_buckets: int
    coverage: Coverage
    durations: ReliabilityDurations
    availability: float | UnsetType = UNSET
    aggregate_withheld: str | UnsetType = UNSET
    objective: float | UnsetType = UNSET
    objective_updated_at: InstantText | UnsetType = UNSET
    budget: ServiceBudget | UnsetType = UNSET
    burn: list[ServiceBurnWindow] | UnsetType = UNSET
    segments: list[ReliabilitySegment]
    repairing: list[RepairingInterval]
    retracted_at: InstantText | UnsetType = UNSET
    retracted_to: InstantText | UnsetType = UNSET


class ReliabilitySeriesPoint(Schema, frozen=True, kw_only=True):
    """Point of a series. Provisional until it is fully sealed, and while it is repaired."""

    start: InstantText
    epoch_id: UUID
    revision_id: UUID
    provisional: bool
    buckets: int
    durations: ReliabilityDurations


class ServiceSeries(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: InstantText
    to: InstantText
    step: Literal["hour", "day"]
    points: list[ReliabilitySeriesPoint]


class WindowQuery(msgspec.Struct, frozen=True):
    window: WindowName = "30d"


class SeriesQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """All three fields are required. The range is at most 90 d."""

    from_: str | None = None
    to: str | None = None
    step: Literal["hour", "day"] | None = None
