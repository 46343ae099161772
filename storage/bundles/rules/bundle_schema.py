"""JSON Schema of bundles for editors, generated from the types and tables of the parser."""

import json
from typing import Any, Final

import msgspec

from ....probes.check.monitor_spec import Field, FieldType, Spec
from ....probes.check.registry import spec_of
from ...monitors.rules.fields import BOUNDS
from ...monitors.rules.monitor import MonitorType
from ...services.rules.service_report import WINDOWS
from .bundle import FORMATS, SECTIONS, SINGLE, MonitorEntry, ServiceEntry
from .bundle_oncall import ChannelEntry, PolicyEntry, RoutesEntry, ScheduleEntry
from .bundle_page import PageEntry
from .bundle_people import PROPOSED_MOST, PersonEntry
from .bundle_settings import MaintenanceEntry, SettingsEntry
from .bundle_webhook import WebhookEntry

ID: Final = "https://json-schema.org/draft/2020-12/schema"
# Settings by window of (definition, field).
_BY_WINDOW: Final = (
    ("MonitorEntry", "sla_targets"),
    ("ServiceEntry", "sla_targets"),
    ("SettingsEntry", "objectives"),
)
_DURATION: Final = {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d))+$"}
_TYPES: Final[dict[FieldType, dict[str, Any]]] = {
    FieldType.TEXT: {"type": "string"},
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.HEADERS: {"type": "object", "additionalProperties": {"type": "string"}},
    FieldType.SECRET_NAME: {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$"},
    FieldType.DOCUMENT: {"type": ["object", "string"]},
    FieldType.IDS: {"type": "array", "items": {"type": "string"}},
}


def schema_text() -> str:
    return json.dumps(bundle_schema(), indent=2, ensure_ascii=False)


def bundle_schema() -> dict[str, Any]:
    entries = [
        PersonEntry,
        ChannelEntry,
        ScheduleEntry,
        PolicyEntry,
        MonitorEntry,
        ServiceEntry,
        RoutesEntry,
        MaintenanceEntry,
        PageEntry,
        WebhookEntry,
        SettingsEntry,
    ]
    of_entries, definitions = msgspec.json.schema_components(entries, ref_template="#/$defs/{name}")
    shapes = dict(zip(SECTIONS, of_entries, strict=True))
    for definition in definitions.values():
        _allow_durations(definition)
    definitions["MonitorEntry"]["allOf"] = [_of_kind(kind) for kind in MonitorType]
    for name, field in _BY_WINDOW:
        definitions[name]["properties"][field]["propertyNames"] = {"enum": list(WINDOWS)}
    definitions["PersonEntry"]["properties"]["contact_methods"]["maxItems"] = PROPOSED_MOST
    uid = {"pattern": "^[a-z][a-z0-9-]{0,62}$"}
    return {
        "$schema": ID,
        "title": "Leadline bundle",
        "type": "object",
        "required": ["format", "organization", "project"],
        "additionalProperties": False,
        "properties": {
            "format": {
                "enum": list(FORMATS),
                "description": "Services need format 2, and on-call objects format 3.",
            },
            "organization": {"type": "string", "description": "Its slug or id."},
            "project": {"type": "string", "description": "Its slug or id."},
            **{
                section: _entries(shapes[section], uid, most)
                for section, (_, _, most) in SECTIONS.items()
                if section not in SINGLE
            },
            **{section: {"anyOf": [shapes[section], {"type": "null"}]} for section in SINGLE},
        },
        "allOf": [_of_format(form) for form in FORMATS[:-1]],
        "$defs": definitions,
    }


def _of_format(form: int) -> dict[str, Any]:
    """Returns the condition on the sections of an earlier format."""
    later = {section: False for section, (_, since, _) in SECTIONS.items() if since > form}
    return {
        "if": {"properties": {"format": {"const": form}}, "required": ["format"]},
        "then": {"properties": later, "required": ["monitors"]},
    }


def _entries(entry: dict[str, Any], uid: dict[str, Any], most: int) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "propertyNames": uid,
        "maxProperties": most,
        "additionalProperties": entry,
    }


def _allow_durations(definition: dict[str, Any]) -> None:
    for name, given in definition.get("properties", {}).items():
        if not name.endswith("_seconds"):
            continue
        number = {key: value for key, value in given.items() if key != "default"}
        bound = BOUNDS.get(name)
        if bound is not None:
            number |= {"minimum": 0 if bound.or_zero else bound.least, "maximum": bound.most}
        default = {"default": given["default"]} if "default" in given else {}
        definition["properties"][name] = {"anyOf": [number, _DURATION], **default}


def _of_kind(kind: MonitorType) -> dict[str, Any]:
    """Returns the condition on the config of a monitor type."""
    spec = spec_of(kind)
    config: dict[str, Any] = {} if spec is None else _config(spec)
    return {
        "if": {"properties": {"type": {"const": kind.value}}, "required": ["type"]},
        "then": {"properties": {"config": config}},
    }


def _config(spec: Spec) -> dict[str, Any]:
    found: dict[str, Any] = {
        "properties": {field.name: _setting(field) for field in spec.fields},
        "additionalProperties": False,
    }
    if spec.bindings:
        reference = _TYPES[FieldType.SECRET_NAME]
        found["patternProperties"] = {f"^{spec.bindings}_[a-z][a-z0-9_-]*_ref$": reference}
    required = [field.name for field in spec.fields if field.required]
    return {**found, "required": required} if required else found


def _setting(field: Field) -> dict[str, Any]:
    said: dict[str, Any] = {"description": field.help}
    if field.default is not None:
        said["default"] = field.default
    if field.secret and field.type is FieldType.TEXT:
        return {**said, "const": "", "description": f"{field.help} A bundle contains no secrets."}
    if field.type is FieldType.CHOICE:
        return {**said, "enum": [*field.choices, ""]}
    if field.type is FieldType.INTEGER:
        number = {"type": "integer", "minimum": field.least, "maximum": field.most}
        if field.name.endswith("_seconds"):
            return {**said, "anyOf": [number, _DURATION]}
        return {**said, **number}
    return {**said, **_TYPES[field.type]}
