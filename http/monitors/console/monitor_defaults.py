"""Screen of the defaults of new monitors."""

from typing import Final

from ....storage.monitors.rules.fields import BOUNDS, FIELDS, FLAGS, OF_INSTALLATION
from ....storage.monitors.transactions.put_monitor_defaults import EDIT
from ...ui.formatting import setting
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import monitor_defaults as api
from ..schemas.defaults import MonitorDefaults, PutMonitorDefaults


def _hint(name: str) -> str:
    bounds = BOUNDS[name]
    unit = f" {bounds.unit}" if bounds.unit else ""
    numbers = f"{'0, or ' if bounds.or_zero else ''}{bounds.least} to {bounds.most}{unit}"
    return " ".join(filter(None, (f"{numbers}.", FIELDS[name].hint)))


_ROWS: Final = tuple(
    SettingField(name, FIELDS[name].label, Of.CHECK, FIELDS[name].hint)
    if name in FLAGS
    else SettingField(name, FIELDS[name].label, Of.NUMBER, _hint(name))
    for name in OF_INSTALLATION
)


def _summary(found: MonitorDefaults) -> str:
    every = setting(found.interval_seconds)
    return f"New monitors are checked every {every} by default."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/monitor-defaults",
    title="Monitor defaults",
    section="defaults",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=PutMonitorDefaults,
    action=EDIT,
    says=_summary,
).routes()
