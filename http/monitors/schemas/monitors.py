"""JSON bodies of monitors, their results and their ledger."""

from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from ....storage.alerting.rules.paging_delegation import SignalReason
from ....storage.monitors.rows import ProbeErrorReason
from ....storage.monitors.rules.certificate import CertificateUnknown
from ....storage.monitors.rules.fields import (
    MonitorFields,
    changed_fields,
    new_fields,
    required_fields,
)
from ....storage.monitors.rules.monitor import MonitorType
from ...wire.schema import InstantText, RequestSchema, Schema

Status = Literal["pending", "up", "down"]
VerdictWord = Literal["reserved", "covered", "covered_late", "missed", "withheld"]


if TYPE_CHECKING:
    from ....storage.monitors.rules.fields import OptionalFields

    class _NewFields(RequestSchema, MonitorFields, frozen=True, kw_only=True): ...

    class _ChangedFields(RequestSchema, OptionalFields, frozen=True, kw_only=True): ...

    class _ShownFields(Schema, MonitorFields, frozen=True, kw_only=True): ...

else:
    _NewFields = new_fields(RequestSchema)
    _ChangedFields = changed_fields(RequestSchema)

    class _Identity(Schema, frozen=True, kw_only=True):
        id: UUID
        project_id: UUID

    _ShownFields = required_fields(_Identity)


class CreateMonitor(_NewFields, frozen=True, kw_only=True):
    """The bounds are in the documentation of the fields. An error names the field.

    With `regions` it is a regional monitor: Leadline creates a monitor in each region and a
    composite of them, which the answer shows. It is down when `down_regions` of them are down, more
    than half unless stated.
    """

    type: MonitorType
    regions: list[str] | UnsetType = UNSET
    down_regions: int | UnsetType = UNSET
    slug: str | UnsetType = UNSET
    depends_on: list[UUID] = []
    config: dict[str, Any] = {}
    escalation_policy_id: str | UnsetType | None = UNSET


class TestMonitor(CreateMonitor, frozen=True, kw_only=True):
    """A monitor that is tested and not saved; it needs no name.

    With `regions` it is tested in the first one.
    """

    # Not a test class.
    __test__ = False

    name: str = "test"


class UpdateMonitor(_ChangedFields, frozen=True, kw_only=True):
    """Absent fields are unchanged. `regions` and `down_regions` are of a regional monitor."""

    regions: list[str] | UnsetType = UNSET
    down_regions: int | UnsetType = UNSET
    depends_on: list[UUID] | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    escalation_policy_id: str | UnsetType | None = UNSET


class MonitorManagement(Schema, frozen=True, kw_only=True):
    """Origin of a monitor.

    A monitor from a bundle has the provider, its name in the bundle and the path of the file. It is
    read-only while the bundle contains it.
    """

    source: Literal["ui", "file"]
    provider: str | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    path: str | UnsetType = UNSET
    read_only: bool


class OwningService(Schema, frozen=True, kw_only=True):
    id: UUID
    slug: str
    name: str


class MonitorSignalDelegation(Schema, frozen=True, kw_only=True):
    """Services that own the paging of the monitor, or the reason why the monitor pages itself."""

    delegated: bool
    owners: list[OwningService] | UnsetType = UNSET
    reason: SignalReason | UnsetType = UNSET


class MonitorDelegation(Schema, frozen=True, kw_only=True):
    live: MonitorSignalDelegation
    burn: MonitorSignalDelegation


class Monitor(_ShownFields, frozen=True, kw_only=True):
    """Monitor.

    `push_token` and `push_url` of a push monitor are present for callers who can write it.
    `last_probe_error_reason` is the reason why no check was possible. It is absent once a newer
    result exists. A regional monitor has `regions` and `down_regions`; the monitor of one of its
    regions has `regional_monitor_id`.
    """

    id: UUID
    project_id: UUID
    slug: str
    type: MonitorType
    regions: list[str] | UnsetType = UNSET
    down_regions: int | UnsetType = UNSET
    regional_monitor_id: UUID | UnsetType = UNSET
    depends_on: list[UUID]
    config: dict[str, Any]
    escalation_policy_id: UUID | UnsetType = UNSET
    status: Status
    # Due instant of the next run or report; absent while the monitor is paused.
    next_due_at: InstantText | UnsetType = UNSET
    consecutive_failures: int
    # Present while the monitor is flapping, see `flap_threshold`.
    flapping_since: InstantText | UnsetType = UNSET
    # Present while the monitor is slow, see `slow_above_ms`.
    slow_since: InstantText | UnsetType = UNSET
    # Present while the certificate ends soon, see `warn_certificate_days`.
    certificate_warning_since: InstantText | UnsetType = UNSET
    # End of the certificate that counts, and when a check saw it, up to 20 minutes late.
    certificate_expires_at: InstantText | UnsetType = UNSET
    certificate_seen_at: InstantText | UnsetType = UNSET
    # Present if no certificate is known, for types that can use TLS.
    certificate_unknown_reason: CertificateUnknown | UnsetType = UNSET
    push_token: str | UnsetType = UNSET
    push_url: str | UnsetType = UNSET
    last_probe_error_reason: ProbeErrorReason | UnsetType = UNSET
    last_probe_error_at: InstantText | UnsetType = UNSET
    management: MonitorManagement
    delegation: MonitorDelegation
    superseded_by_service_id: UUID | UnsetType = UNSET
    retired_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class TestResult(Schema, frozen=True, kw_only=True):
    """Result of a test. `reason` is present if the test could not run, which is no target failure.

    `no_worker`: no worker or agent of the region took the test. `conditions` as in a heartbeat.
    """

    up: bool
    latency_ms: int
    code: int | UnsetType = UNSET
    msg: str
    reason: str | UnsetType = UNSET
    conditions: list[str] | UnsetType = UNSET


class Heartbeat(Schema, frozen=True, kw_only=True):
    """Result of a run.

    `conditions` has the failed condition with its measured value, `[STATUS] == 200 (503)`. It is
    absent if no condition failed. The value of a body, a header or a text result is present only if
    the monitor sets `show_values`.
    """

    monitor_id: UUID
    ts: InstantText
    up: bool
    latency_ms: int
    code: int | UnsetType = UNSET
    msg: str
    conditions: list[str] | UnsetType = UNSET


class LatencyPoint(Schema, frozen=True, kw_only=True):
    start: InstantText
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class LatencyTotal(Schema, frozen=True, kw_only=True):
    """`relative_error` is the largest error of a percentile as a fraction of it, 0 if exact."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    relative_error: float


class Latency(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`total` has the figures of the whole range, absent without a good result."""

    from_: InstantText
    to: InstantText
    step: Literal["minute", "hour", "day"]
    points: list[LatencyPoint]
    total: LatencyTotal | UnsetType = UNSET


class DailyAvailability(Schema, frozen=True, kw_only=True):
    """`uptime_percent` is absent if no time was measured.

    `data_from` and `latency_from` are present on the first item if the data, or the stored latency,
    starts later than the window.
    """

    day: InstantText
    up: int
    total: int
    uptime_percent: float | UnsetType = UNSET
    coverage: float
    data_from: InstantText | UnsetType = UNSET
    latency_from: InstantText | UnsetType = UNSET


class ExpectedRun(Schema, frozen=True, kw_only=True):
    due_at: InstantText
    verdict: VerdictWord
    reason: str | UnsetType = UNSET
    settled_at: InstantText | None


class ExpectedRuns(Schema, frozen=True, kw_only=True):
    ledger_from: InstantText | None
    items: list[ExpectedRun]
    next_cursor: str | None


class CheckRequested(Schema, frozen=True, kw_only=True):
    job_id: UUID
