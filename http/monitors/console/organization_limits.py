"""Screen of the limits of organizations."""

from typing import Final

from ....storage.monitors.rules.organization_limits import LIMIT_BOUNDS
from ....storage.monitors.transactions.put_organization_limits import EDIT
from ...ui.formatting import number, setting
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import organization_limits as api
from ..schemas.organization_limits import OrganizationLimits, PutOrganizationLimits

_LABELS: Final = {
    "monitors": ("Monitors", "Paused and retired ones count too."),
    "shortest_interval_seconds": ("Shortest interval", ""),
    "runs_per_minute": (
        "Runs per minute",
        "Of all enabled monitors, with the confirming runs of failing ones.",
    ),
}


def _hint(name: str) -> str:
    bounds = LIMIT_BOUNDS[name]
    unit = f" {bounds.unit}" if bounds.unit else ""
    numbers = f"{bounds.least} to {number(bounds.most)}{unit}."
    return " ".join(filter(None, (numbers, _LABELS[name][1])))


def _summary(found: OrganizationLimits) -> str:
    every = setting(found.shortest_interval_seconds)
    return (
        f"An organization has at most {number(found.monitors)} monitors and "
        f"{number(found.runs_per_minute)} runs per minute, at intervals of at least {every}."
    )


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/organization-limits",
    title="Organization limits",
    section="limits",
    rows=tuple(
        SettingField(name, label, Of.NUMBER, _hint(name)) for name, (label, _) in _LABELS.items()
    ),
    read=api.read,
    put=api.put,
    body=PutOrganizationLimits,
    action=EDIT,
    says=_summary,
    after_save="Existing monitors above a limit continue.",
).routes()
