"""Entries of format 3 about objectives, gate policies, maintenance and settings of the project."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from ...core.instant import SECOND, Instant
from ...gate.rules.gate import GateClause, GateClauseAssignment, UnknownBehavior
from ...gate.rules.gate_policy import (
    SEAL_LAG_LEAST_SECONDS,
    SEAL_LAG_MOST_SECONDS,
    Document,
    WindowMode,
    fault,
)
from ...maintenance.rules import Recurrence
from ...objectives.rules import RULES_MOST
from .bundle_oncall import OnCallEntry, instant_of

# The only uid of the settings of a project, which are one object.
SETTINGS_UID: Final = "project"
SERIES_MOST: Final = 50

WindowText = Literal["24h", "7d", "30d", "90d"]


class BurnRuleEntry(OnCallEntry, frozen=True, kw_only=True):
    long_window_seconds: int
    short_window_seconds: int
    threshold: float
    severity: Literal["page", "ticket"]
    runbook_url: str = ""


class TargetEntry(OnCallEntry, frozen=True, kw_only=True):
    """SLO of a bundle entry. Without `burn_rules` it has no rules."""

    objective: float
    burn_alert_enabled: bool = False
    burn_rules: list[BurnRuleEntry] = []


class GatePolicyEntry(OnCallEntry, frozen=True, kw_only=True):
    """Gate policy. Without `window` all windows with an objective count; the worst one decides."""

    schema_version: Literal[1, 2] = 2
    window: WindowText | None = None
    clauses: dict[GateClause, GateClauseAssignment]
    budget_consumed_percent: Annotated[int, Meta(ge=1, le=100)]
    max_seal_lag_seconds: Annotated[int, Meta(ge=SEAL_LAG_LEAST_SECONDS, le=SEAL_LAG_MOST_SECONDS)]
    unknown_behavior: UnknownBehavior = UnknownBehavior.WARN


class SettingsEntry(OnCallEntry, frozen=True, kw_only=True):
    """Settings of the project: its objectives in percent by window, its gate policy, its report."""

    objectives: dict[WindowText, float] = {}
    gate_policy: GatePolicyEntry | None = None
    weekly_report: bool = False


class MaintenanceEntry(OnCallEntry, frozen=True, kw_only=True):
    """Recurring maintenance of the project, or of one monitor by uid, slug or id."""

    monitor: str = ""
    rrule: str
    starts_at: str
    duration_seconds: int
    timezone: str = ""
    reason: str = ""


def policy_document(entry: GatePolicyEntry) -> Document:
    return Document(
        schema_version=entry.schema_version,
        window_mode=WindowMode.ALL if entry.window is None else WindowMode.ONE,
        window=entry.window,
        clauses=entry.clauses,
        budget_consumed_percent=entry.budget_consumed_percent,
        max_seal_lag_seconds=entry.max_seal_lag_seconds,
        unknown_behavior=entry.unknown_behavior,
    )


def policy_in_words(document: Document | None) -> dict[str, Any] | None:
    """Returns a gate policy as in a bundle, None without one."""
    if document is None:
        return None
    return {
        "schema_version": document.schema_version,
        "window": document.window,
        "clauses": {
            clause.value: document.clauses[clause].value
            for clause in GateClause
            if clause in document.clauses
        },
        "budget_consumed_percent": document.budget_consumed_percent,
        "max_seal_lag_seconds": document.max_seal_lag_seconds,
        "unknown_behavior": document.unknown_behavior.value,
    }


def gate_fault(path: str, entry: GatePolicyEntry | UnsetType | None) -> tuple[str, str] | None:
    """Returns the wrong field of a gate policy below the path, and its rule."""
    if entry is None or entry is UNSET:
        return None
    wrong = fault(policy_document(entry))
    if wrong is None:
        return None
    field, rule = wrong
    # An entry has no `window_mode`: it follows from the window.
    field = "window" if field == "window_mode" else field
    return f"{path}.{field}", "is required in schema 1" if field == "window" else rule


def settings_fault(entry: SettingsEntry) -> tuple[str, str] | None:
    return gate_fault("gate_policy", entry.gate_policy)


def maintenance_fault(entry: MaintenanceEntry) -> tuple[str, str] | None:
    if instant_of(entry.starts_at) is None:
        return "starts_at", "must be an instant such as 2026-01-31T09:00:00.000Z"
    return None


def targets_fault(path: str, targets: dict[Any, TargetEntry]) -> tuple[str, str] | None:
    """Returns the first list of burn rules that is too long, and its rule."""
    for window, target in targets.items():
        if len(target.burn_rules) > RULES_MOST:
            return f"{path}.{window}.burn_rules", f"must have at most {RULES_MOST} entries"
    return None


def recurrence_of(entry: MaintenanceEntry) -> Recurrence:
    """Returns the recurrence. The form of its instant was checked."""
    starts_at = instant_of(entry.starts_at)
    assert starts_at is not None, "the instant was checked"
    return Recurrence(
        entry.rrule, Instant(starts_at), entry.duration_seconds * SECOND, entry.timezone
    )


def brief_policy(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns a gate policy of an export: without defaults."""
    if settings is None:
        return None
    defaults = {"schema_version": 2, "window": None, "unknown_behavior": "warn"}
    return {
        name: value
        for name, value in settings.items()
        if name not in defaults or value != defaults[name]
    }


def brief_targets(targets: dict[str, Any]) -> dict[str, Any]:
    """Returns the objectives of an export: without defaults."""
    defaults = {"burn_alert_enabled": False, "burn_rules": []}
    return {
        window: {
            name: value
            for name, value in target.items()
            if name not in defaults or value != defaults[name]
        }
        for window, target in targets.items()
    }
