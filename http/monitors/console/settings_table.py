"""Read-only table of a monitor's settings, without secrets for every user."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from ....probes.check.monitor_spec import FieldType, is_credential_header
from ....probes.check.registry import spec_of
from ....storage.monitors.rows import MonitorRow
from ....storage.monitors.rules.fields import CONFIRMED, DEFAULTS, FIELDS, FLAGS, NUMBERS, TEXTS
from ....storage.monitors.rules.monitor import MonitorType
from ...ui.form_values import uuid_or_none
from ...ui.formatting import count, label, rhythm, setting

Line = tuple[str, str, bool]
# Fields that have their own line, here or next to the status.
_SHOWN = {
    "interval_seconds",
    "schedule",
    "timezone",
    "grace_seconds",
    "timeout_seconds",
    "failure_threshold",
    "recovery_threshold",
    "confirm_interval_seconds",
    "retries",
    "auto_incident",
    "renotify_seconds",
}


def monitors_named(row: MonitorRow) -> set[UUID]:
    """Returns the monitors whose names `settings` shows: the members of a composite."""
    spec = spec_of(row.type)
    wanted = [item.name for item in spec.fields if item.type is FieldType.IDS] if spec else []
    config: dict[str, Any] = msgspec.json.decode(row.config) if wanted else {}
    uids = (uuid_or_none(text) for name in wanted for text in config.get(name) or ())
    return {uid for uid in uids if uid is not None}


def settings(row: MonitorRow, names: Mapping[str, str]) -> list[Line]:
    """Returns lines of (name, value, whether the value is code).

    `names` maps ids to names for `monitors_named`.
    """
    found: list[Line] = [("Kind", row.type, True)]
    if row.target:
        found.append(("Target", row.target, True))
    spec = spec_of(row.type)
    if spec is not None and spec.methods:
        found.append(("Method", row.method, True))
    found += _schedule(row)
    found += [("Condition", text, True) for text in row.conditions]
    if spec is not None:
        config: dict[str, Any] = msgspec.json.decode(row.config)
        for field in spec.fields:
            value = config.get(field.name)
            if field.type is FieldType.IDS:
                told = [names.get(uid, uid) for uid in value or ()]
                found.append((label(field.name), ", ".join(told), False))
            elif value not in (None, "", {}) and value != field.default and not field.secret:
                found.append((label(field.name), _text(value), True))
            elif field.type is FieldType.HEADERS and isinstance(value, dict):
                shown = [f"{k}: {v}" for k, v in value.items() if not is_credential_header(k)]
                found += [(label(field.name), text, True) for text in shown]
        for name in spec.bindings_of(config).values():
            found.append((label(name), str(config[name]), True))
    found += _others(row)
    found.append(("Region", row.region, False))
    if row.tags:
        found.append(("Tags", ", ".join(row.tags), False))
    return found


def _schedule(row: MonitorRow) -> list[Line]:
    every = rhythm(row.interval_seconds, row.schedule, row.timezone)
    name = "Schedule" if row.schedule else "Interval"
    if row.type == MonitorType.PUSH:
        name = "Schedule" if row.schedule else "Expected interval"
        found = [(name, f"{every}, grace {setting(row.grace_seconds)}", False)]
    elif row.type == MonitorType.COMPOSITE:
        found = [(name, every, False)]
    else:
        found = [(name, f"{every}, timeout {setting(row.timeout_seconds)}", False)]
        if row.retries:
            found.append(("Retries", f"{row.retries} within one check", False))
    down = count(row.failure_threshold, "failure")
    in_a_row = " consecutive failures" if row.failure_threshold > 1 else ""
    found.append(("Failures before down", f"{down}{in_a_row}", False))
    if row.recovery_threshold > 1:
        up = f"{row.recovery_threshold} consecutive successes"
        found.append(("Successes before up", up, False))
    is_confirmed = row.type in CONFIRMED
    if row.failure_threshold > 1 and row.confirm_interval_seconds and is_confirmed:
        found.append(("Recheck delay", setting(row.confirm_interval_seconds), False))
    return found


def _others(row: MonitorRow) -> list[Line]:
    """Returns the fields that have no line above, if they differ from the default."""
    return [
        (FIELDS[name].label, _text(getattr(row, name)), False)
        for name in (*NUMBERS, *FLAGS, *TEXTS)
        if name not in _SHOWN
        and FIELDS[name].label
        and row.type in FIELDS[name].types
        and getattr(row, name) != DEFAULTS[name]
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
