"""Text values of service forms, and the conversion of refusals to field faults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...storage.core.refusal import Refused
from ..wire.errors import Problem
from ..wire.route import Request

_LABELS: Final = {
    "name": "Name",
    "slug": "Slug",
    "description": "Description",
    "runbook_url": "Runbook",
    "monitors": "Members",
    "sli": "SLI members",
    "policies.aggregation.healthy_min": "Members for healthy",
    "policies.aggregation.degraded_min": "Members for degraded",
    "policies.region.healthy_min_regions": "Regions for healthy",
    "policies.region.degraded_min_regions": "Regions for degraded",
    "policies.freshness.active_multiplier": "Intervals",
    "policies.freshness.active_floor": "Minimum",
    "backfill_from": "Backfill history from",
    "objective": "Objective",
    "window": "Window",
    "confirm_evaluations": "Confirm after",
    "renotify_seconds": "Re-notify every",
    "depends_on": "Needs",
}
_SAID: Final = {
    "slug_taken": ("slug", "Slug is already in use."),
    "service_quota": ("", "The service limit of the project is reached."),
    "sli_not_in_monitors": ("sli", "SLI members: must also be members."),
    "managed_by_file": ("", "Managed by a bundle; edit it there."),
    "revision_conflict": (
        "",
        "Another user saved a revision. Your input is kept: compare it with the current"
        " revision, then save again.",
    ),
    "retroactive_not_first_revision": (
        "backfill_from",
        "Backfill history from: only allowed for the first revision.",
    ),
    "graph_generation_stale": ("", "Another user changed dependencies. Save again."),
    "too_many_dependencies": ("depends_on", "Dependencies: too many."),
    "dependency_not_in_project": (
        "depends_on",
        "Dependencies: one is not a service of this project.",
    ),
    "owner_not_in_project": ("policy", "Escalation policy: not in this project."),
    "escalation_policy_not_in_project": ("policy", "Escalation policy: not in this project."),
}
_CIRCLES: Final = {
    "dependency_cycle": "Dependencies: cycle",
    "dependency_depth": "Dependencies: chain too long",
}


@dataclass(frozen=True, slots=True)
class FieldFault:
    field: str = ""
    text: str = ""


NONE: Final = FieldFault()


def fault_of(refused: Refused) -> FieldFault:
    """Returns the fault with its field. Raises the refusal if it concerns no form field."""
    if refused.code in ("forbidden", "not_found"):
        raise refused
    if refused.code in _CIRCLES:
        way = f": {refused.message}" if refused.message else ""
        return FieldFault("depends_on", f"{_CIRCLES[refused.code]}{way}.")
    if refused.code in _SAID:
        return FieldFault(*_SAID[refused.code])
    if not refused.field:
        raise refused
    field = refused.field.partition("[")[0]
    label = _LABELS.get(field, "Rules" if field == "burn_rules" else field)
    return FieldFault(field, f"{label}: {refused.message}.")


def decimal(field: str, text: str) -> float:
    """Returns a number from text with a decimal point or comma."""
    try:
        return float(text.removesuffix("%").strip().replace(",", "."))
    except ValueError:
        raise Refused("invalid", field, "must be a number") from None


def uuids(texts: list[str]) -> list[UUID]:
    try:
        return list(dict.fromkeys(UUID(text) for text in texts))
    except ValueError:
        raise Problem("Unknown action") from None


def typed_of(ask: Request) -> dict[str, str]:
    return {name: values[0].strip() for name, values in ask.form.items() if values}


def get(typed: Mapping[str, str], name: str, otherwise: str = "") -> str:
    return typed.get(name) or otherwise
