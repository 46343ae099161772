"""Bodies of a service's figures: by window with why one cannot be had, and over time."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ....storage.services.rules.service_report import ServiceReportStatus
from ...wire.schema import InstantText, Schema
from .services import WindowName

Coverage = Annotated[float, Meta(ge=0, le=1)]


class ReliabilityDurations(Schema, frozen=True, kw_only=True):
    """Microseconds: good, bad, unknown and excluded are all of a range; healthy, degraded, down and
    health unknown are what of it is not excluded."""

    good_us: int
    bad_us: int
    unknown_us: int
    excluded_us: int
    healthy_us: int
    degraded_us: int
    down_us: int
    health_unknown_us: int


class ReliabilitySegment(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """What of a window lies under one revision and epoch; declared later than it was, it is a
    reconstruction."""

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
    """The ratios are shares of what was measured."""

    objective: float
    objective_updated_at: InstantText
    allowed_downtime_ratio: float
    actual_downtime_ratio: float
    remaining_ratio: float
    burned_percent: float
    met: bool


class ServiceBurnWindow(Schema, frozen=True, kw_only=True):
    """A range that ends where the service is sealed; `rate` 1 uses the budget up exactly."""

    window: str
    status: ServiceReportStatus
    reason: str | UnsetType = UNSET
    expected_buckets: int
    sealed_buckets: int
    storage_continuity: bool
    coverage: Coverage
    rate: float | UnsetType = UNSET


class ServiceWindowReport(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`sealed_through` is null where nothing was ever sealed. Buckets are minutes. Objective and
    burn are there where something is aimed at over the window; a figure that cannot be had is left
    out, and `reason` or `aggregate_withheld` says why."""

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


class ReliabilitySeriesPoint(Schema, frozen=True, kw_only=True):
    """Provisional while it is not wholly sealed, or is being made again."""

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
    """All three are required; at most 90 d."""

    from_: str | None = None
    to: str | None = None
    step: Literal["hour", "day"] | None = None
