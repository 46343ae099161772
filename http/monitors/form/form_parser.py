"""Conversion of form values to a monitor, and of a monitor to form values.

All faults are reported in one response, each at its field. All submitted values are kept.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from ....probes.check.check import validate
from ....probes.check.monitor_spec import Field, FieldType, Spec
from ....probes.check.registry import FILES, spec_of
from ....storage.monitors.rows import MonitorRow
from ....storage.monitors.rules.fields import BOUNDS, FIELDS, FLAGS, NUMBERS, TEXTS, MonitorFields
from ....storage.monitors.rules.monitor import MonitorDraft, faults
from ....storage.monitors.rules.monitor_defaults import BUILT_IN, MonitorDefaults, completed
from ...ui.pickers.objects import tags_in
from .form_fields import CONFIG, Typed, form_value, own_fields, spelt_default

# Settings of a regional monitor, which a draft does not have.
OF_SPREAD = ("regions", "down_regions")
# Settings without which a stored secret has no use. A blank one removes the secret.
_NEEDS = {
    "proxy_password": ("proxy_url", "proxy_username"),
    "client_key": ("client_cert",),
    "oauth2_client_secret": ("oauth2_token_url",),
}
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_TEXTS = tuple(name for name in TEXTS if name != "region")
# Check boxes of the form. Other controls pause and resume a monitor.
_BOXES = tuple(name for name in FLAGS if FIELDS[name].label)


@dataclass(slots=True)
class ParsedForm:
    """`values` are fields of MonitorDraft. `errors` are by form field."""

    values: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def kinds() -> list[Spec]:
    """Returns the types of this build, in the order of the probes' list."""
    return [spec for kind in FILES if (spec := spec_of(kind)) is not None]


def fresh(
    spec: Spec, typed: Typed | None = None, defaults: MonitorDefaults = BUILT_IN
) -> dict[str, list[str]]:
    """Returns the form of a new monitor: defaults, overlaid by the values of a previous type."""
    values_of = {"name": "", "type": str(spec.type)}
    draft = MonitorDraft(**completed(values_of, spec.type, defaults))
    values = {name: [str(getattr(draft, name))] for name in NUMBERS}
    values["method"] = [draft.method]
    values["region"] = [draft.region]
    values |= _boxes(draft)
    for item in spec.fields:
        values[CONFIG + item.name] = [_spelt(item, item.default)]
    kept = {k: v for k, v in (typed or {}).items() if not k.startswith(CONFIG)}
    if typed is not None and "fields" in typed:
        # A browser does not send an unchecked box, so an absent box is unchecked.
        values |= {name: [] for name in _BOXES}
    return {**values, **kept}


def of_row(
    row: MonitorRow, spec: Spec, waits_for: list[UUID], config: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Returns the form of a stored monitor.

    `config` contains the settings that a user with write access sees. Secrets are empty.
    """
    values = {name: [str(getattr(row, name))] for name in (*NUMBERS, *_TEXTS, "method", "region")}
    values["conditions"] = ["\n".join(row.conditions)]
    values["tags"] = list(row.tags)
    values |= _boxes(row)
    values["depends_on"] = [str(uid) for uid in waits_for]
    for item in spec.fields:
        value = config.get(item.name, item.default)
        values[CONFIG + item.name] = (
            id_list(value) if item.type is FieldType.IDS else [_spelt(item, value)]
        )
    for name in spec.bindings_of(config).values():
        values[CONFIG + name] = [str(config[name])]
    return values


def _boxes(monitor: MonitorFields) -> dict[str, list[str]]:
    return {name: ["true"] if getattr(monitor, name) else [] for name in _BOXES}


def id_list(value: object) -> list[str]:
    """Returns the ids of a list or of a comma-separated text. The config can contain either."""
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(item).strip().lower() for item in given]


def stored_secrets(row: MonitorRow, spec: Spec) -> frozenset[str]:
    """Returns the names of the settings with a stored secret. Such a setting is empty text."""
    config = msgspec.json.decode(row.config)
    kept = {item.name for item in spec.fields if item.secret and config.get(item.name) == ""}
    return frozenset(kept)


def read(
    spec: Spec,
    typed: Typed,
    stored: frozenset[str] = frozenset(),
    defaults: MonitorDefaults = BUILT_IN,
) -> ParsedForm:
    found = ParsedForm()
    values = found.values
    stored = frozenset(name for name in stored if _is_kept(name, typed))
    for name in _TEXTS:
        values[name] = form_value(typed, name).replace("\r\n", "\n").strip()
    if spec.methods:
        values["method"] = form_value(typed, "method") or spec.methods[0]
    _read_numbers(typed, found, defaults)
    values["conditions"] = [line.strip() for line in _lines(form_value(typed, "conditions"))]
    values["tags"] = tags_in(typed.get("tags", ()))
    values |= {name: form_value(typed, name) == "true" for name in _BOXES}
    if "escalation_policy_id" in typed:
        values["escalation_policy_id"] = form_value(typed, "escalation_policy_id") or None
    if form_value(typed, "region"):
        values["region"] = form_value(typed, "region")
    if "regions" in typed:
        _read_spread(typed, found)
    _read_dependencies(typed, found)
    values["config"] = {}
    for item in own_fields(spec, typed):
        if item.type is FieldType.IDS:
            chosen = [uid for uid in typed.get(CONFIG + item.name, ()) if uid]
            values["config"] |= {item.name: chosen} if chosen else {}
        else:
            _read_own(item, form_value(typed, CONFIG + item.name), found, stored)
    for name, message in _faults(spec, found.values, stored):
        found.errors.setdefault(name, message)
    return found


def _is_kept(secret: str, typed: Typed) -> bool:
    """Returns whether the form keeps a stored secret."""
    # A reference to a project secret replaces the stored value.
    if form_value(typed, f"{CONFIG}{secret}_ref").strip():
        return False
    return all(form_value(typed, CONFIG + name).strip() for name in _NEEDS.get(secret, ()))


def _read_numbers(typed: Typed, found: ParsedForm, defaults: MonitorDefaults) -> None:
    for name in NUMBERS:
        text = form_value(typed, name).strip()
        if _WHOLE.fullmatch(text):
            found.values[name] = int(text)
        elif text or name == "interval_seconds":
            found.errors[name] = "must be a whole number"
    if "timeout_seconds" not in found.values and "timeout_seconds" not in found.errors:
        found.values["timeout_seconds"] = completed(found.values, "", defaults)["timeout_seconds"]


def _read_spread(typed: Typed, found: ParsedForm) -> None:
    """Reads the boxes of regions. One box is the region of an ordinary monitor."""
    chosen, text = [name for name in typed["regions"] if name], form_value(typed, "down_regions")
    if not chosen:
        found.errors["regions"] = "must have at least 1 entry"
    elif len(chosen) == 1 and not form_value(typed, "is_regional"):
        found.values["region"] = chosen[0]
    else:
        found.values["regions"] = chosen
        if _WHOLE.fullmatch(text.strip()):
            found.values["down_regions"] = int(text)
        elif text.strip():
            found.errors["down_regions"] = "must be a whole number"


def _read_dependencies(typed: Typed, found: ParsedForm) -> None:
    try:
        found.values["depends_on"] = [UUID(text) for text in typed.get("depends_on", ())]
    except ValueError:
        found.errors["depends_on"] = "is not a monitor of this project"


def _read_own(item: Field, text: str, found: ParsedForm, stored: frozenset[str]) -> None:
    config: dict[str, Any] = found.values["config"]
    match item.type:
        case FieldType.BOOLEAN:
            value = text == "true"
            if value != (item.default is True):
                config[item.name] = value
        case FieldType.HEADERS:
            headers, wrong = _headers(text)
            if headers:
                config[item.name] = headers
            if wrong:
                found.errors[CONFIG + item.name] = wrong
        case _:
            text = text.replace("\r\n", "\n")
            if item.type is not FieldType.TEXT:
                text = text.strip()
            kept = item.secret and item.name in stored
            if kept or (text and text != spelt_default(item)):
                config[item.name] = text


def _headers(text: str) -> tuple[dict[str, str], str]:
    found: dict[str, str] = {}
    for number, line in enumerate(_lines(text), 1):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            return found, f"line {number} is not of the form Name: value"
        if name.strip() in found:
            return found, f"line {number} repeats a header"
        found[name.strip()] = value.strip()
    return found, ""


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _faults(spec: Spec, values: Mapping[str, Any], stored: frozenset[str]) -> list[tuple[str, str]]:
    """Returns the faults of form fields. The transaction checks all rules again."""
    left = ("config", "escalation_policy_id", *OF_SPREAD)
    given = {k: v for k, v in values.items() if k not in left}
    # A stored secret is not in the form.
    config = {k: v or ("stored" if k in stored else v) for k, v in values["config"].items()}
    found = [
        (fault.field, fault.rule) for fault in faults(MonitorDraft(type=str(spec.type), **given))
    ]
    unread = {f"{CONFIG}{name}" for name in stored if not values["config"].get(name)}
    found += [
        (fault.field, fault.message)
        for fault in validate(
            spec.type,
            values["target"],
            values.get("method"),
            config,
            values["conditions"],
            timeout_seconds=values.get("timeout_seconds", 1),
            interval_seconds=values.get("interval_seconds", BOUNDS["interval_seconds"].most),
        )
        if fault.field not in unread
    ]
    return found


def _spelt(item: Field, value: object) -> str:
    if item.type is FieldType.BOOLEAN:
        return "true" if value is True else ""
    if item.type is FieldType.HEADERS and isinstance(value, Mapping):
        return "\n".join(f"{name}: {text}" for name, text in value.items())
    if item.type is FieldType.DOCUMENT:
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""
    return "" if value is None or item.secret else str(value)
