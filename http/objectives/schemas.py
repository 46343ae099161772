"""Bodies of availability over windows, of objectives and of error budgets."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.objectives.rules import RULES_MOST
from ..services.schemas.services import RunbookText, WindowName
from ..wire.schema import InstantText, RequestSchema, Schema

Seconds = Annotated[int, Meta(ge=1)]
Objective = Annotated[float, Meta(gt=0, lt=100)]


class BurnRule(Schema, frozen=True, kw_only=True):
    """A burn rule. `firing` is its alert state."""

    long_window_seconds: int
    short_window_seconds: int
    threshold: float
    severity: Literal["page", "ticket"]
    runbook_url: str | UnsetType = UNSET
    firing: bool | UnsetType = UNSET


class BurnRuleRequest(RequestSchema, frozen=True, kw_only=True):
    long_window_seconds: Seconds
    short_window_seconds: Seconds
    threshold: Annotated[float, Meta(gt=0, le=100_000)]
    severity: Literal["page", "ticket"]
    runbook_url: RunbookText = ""
    # Accepted and ignored, so that a response can be sent back.
    firing: bool | UnsetType = UNSET


class ErrorBudget(Schema, frozen=True, kw_only=True):
    """An error budget. Ratios are shares of the measured time."""

    objective: float
    allowed_downtime_ratio: float
    actual_downtime_ratio: float
    remaining_ratio: float
    burned_percent: float
    met: bool


class WindowSLA(Schema, frozen=True, kw_only=True):
    """Availability in one window.

    `total` and `up` count results. `uptime_percent` is by time. `withheld_reason` states why
    `uptime_percent` or `error_budget` is absent.
    `data_from` and `latency_from` are present if data begins after the start of the window.
    `window_from` is the start of the window if it is not exactly its length before the watermark.
    """

    window: WindowName
    total: int
    up: int
    uptime_percent: float | UnsetType = UNSET
    coverage: float
    withheld_reason: str | UnsetType = UNSET
    avg_latency_ms: float | UnsetType = UNSET
    p95_latency_ms: float | UnsetType = UNSET
    objective: float | UnsetType = UNSET
    error_budget: ErrorBudget | UnsetType = UNSET
    burn_alert: bool
    burn_firing: bool
    burn_rules: list[BurnRule]
    data_from: InstantText | UnsetType = UNSET
    latency_from: InstantText | UnsetType = UNSET
    window_from: InstantText | UnsetType = UNSET


class MonitorSLA(Schema, frozen=True, kw_only=True):
    monitor_id: UUID
    status: Literal["pending", "up", "down"]
    windows: list[WindowSLA]


class ProjectSLA(Schema, frozen=True, kw_only=True):
    project_id: UUID
    windows: list[WindowSLA]
    sla_report_weekly: bool


class SLATarget(Schema, frozen=True, kw_only=True):
    """An objective of a monitor or of a project."""

    id: UUID
    monitor_id: UUID | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    objective: float
    window: WindowName
    burn_alert_enabled: bool
    burn_rules: list[BurnRule]
    created_at: InstantText
    updated_at: InstantText


class SetMonitorTarget(RequestSchema, frozen=True, kw_only=True):
    """Request for an objective.

    Omitted rules keep those of the window. If the window has none, `burn_alert` creates the
    default rules.
    """

    objective: Objective
    window: WindowName = "30d"
    burn_alert: bool = False
    burn_rules: Annotated[list[BurnRuleRequest], Meta(max_length=RULES_MOST)] | UnsetType = UNSET


class SetProjectTarget(RequestSchema, frozen=True, kw_only=True):
    objective: Objective
    window: WindowName | UnsetType = UNSET


class ReportWeekly(RequestSchema, frozen=True, kw_only=True):
    enabled: bool


class ReportedWeekly(Schema, frozen=True, kw_only=True):
    sla_report_weekly: bool
