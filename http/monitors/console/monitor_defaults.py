"""What new monitors have where nobody says otherwise."""

from typing import Final

import msgspec

from ....storage.monitors.rules.monitor import NUMBERS
from ...ui.formatting import setting
from ...ui.settings_form import Of, SettingField, SettingForm, Typed, whole_number
from ...wire.route import Route
from ..routes import monitor_defaults as api
from ..schemas.defaults import MonitorDefaults, PutMonitorDefaults


def _bounds(name: str) -> str:
    bound = NUMBERS[name]
    unit = f" {bound.unit}" if bound.unit else ""
    return f"{'0, or ' if bound.or_zero else ''}{bound.least} to {bound.most}{unit}"


_ROWS: Final = (
    SettingField(
        "interval_seconds",
        "Interval",
        Of.NUMBER,
        f"{_bounds('interval_seconds')} from one check to the next.",
    ),
    SettingField(
        "timeout_seconds",
        "Time-out",
        Of.NUMBER,
        f"{_bounds('timeout_seconds')}, not above the interval.",
    ),
    SettingField(
        "retries",
        "Retries",
        Of.NUMBER,
        f"{_bounds('retries')}, within one check, before it counts as a failure.",
    ),
    SettingField(
        "failure_threshold",
        "Failures",
        Of.NUMBER,
        f"{_bounds('failure_threshold')} in a row until it is down.",
    ),
    SettingField(
        "renotify_seconds",
        "Reminders",
        Of.NUMBER,
        f"{_bounds('renotify_seconds')} from one to the next; 0 for none.",
    ),
    SettingField("auto_incident", "Incidents", Of.CHECK, "One is opened when a monitor goes down."),
)


def _typed_of(found: MonitorDefaults) -> Typed:
    numbers = {row.name: str(getattr(found, row.name)) for row in _ROWS if row.of is Of.NUMBER}
    return {**numbers, "auto_incident": "on" if found.auto_incident else ""}


def _parse_form(typed: Typed) -> PutMonitorDefaults:
    numbers = {row.name: whole_number(typed, row.name) for row in _ROWS if row.of is Of.NUMBER}
    return msgspec.convert(
        {**numbers, "auto_incident": typed["auto_incident"] == "on"}, PutMonitorDefaults
    )


def _says(found: MonitorDefaults) -> str:
    every = setting(found.interval_seconds)
    return f"A new monitor is checked every {every} where nobody says otherwise."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/monitor-defaults",
    title="New monitors",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    typed_of=_typed_of,
    given=_parse_form,
    says=_says,
).routes()
