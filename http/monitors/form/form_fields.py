"""Rows of the form: label, unit, default, bounds and submitted value of each field.

The common bounds are defined in storage/monitors/rules/fields.py, the other bounds in the SPEC of
the type. The form repeats no bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ....probes.check.monitor_spec import (
    HEADERS_MOST,
    Field,
    FieldType,
    MonitorType,
    Spec,
    TargetForm,
)
from ....storage.monitors.rules.fields import BOUNDS, FIELDS, FLAGS, NUMBERS, FieldBounds, Group
from ....storage.monitors.rules.monitor import MonitorDraft, bounds_of
from ....storage.monitors.rules.monitor_defaults import BUILT_IN, MonitorDefaults, completed
from ....storage.regional.rules import REGIONS, TYPES
from ...ui.formatting import label, number
from ...ui.pickers.fields import PickerField
from .examples import EXAMPLES

Typed = Mapping[str, list[str]]
CONFIG = "config."


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """`control` is one of input, number, password, lines, select, check, boxes, picker."""

    name: str
    label: str
    control: str = "input"
    value: str = ""
    hint: str = ""
    unit: str = ""
    error: str = ""
    required: bool = False
    checked: bool = False
    mono: bool = False
    tall: bool = False
    # An example exists, and the field is empty.
    example: bool = False
    placeholder: str = ""
    # (value, text, whether it is selected).
    choices: Sequence[tuple[str, str, bool]] = field(default=())
    # Only of a picker.
    picker: PickerField | None = None

    @property
    def is_chosen(self) -> bool:
        """Returns whether a choice is made."""
        if self.picker is not None:
            return self.picker.is_used
        return any(chosen for value, _, chosen in self.choices if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSection:
    title: str
    rows: Sequence[FormField]
    # Collapsed, unless a field in it is set or has an error.
    folded: bool = False

    @property
    def groups(self) -> list[list[FormField]]:
        """Returns the rows, with consecutive numbers in one group: they share a line."""
        found: list[list[FormField]] = []
        for row in self.rows:
            if row.control == "number" and found and found[-1][0].control == "number":
                found[-1].append(row)
            else:
                found.append([row])
        return found


# Hints of fields that have another meaning for a type.
_HINTS_OF_TYPE: Mapping[MonitorType, Mapping[str, str]] = {
    # A canary run is a transaction: it takes longer and costs more than a check.
    MonitorType.ASYNC_CANARY: {
        "interval_seconds": "Runs do not overlap; a run that is due during another one counts as"
        " a failure.",
        "timeout_seconds": "At most the interval. Total of all stages.",
        "retries": "Must be 0: a run makes one transaction.",
    },
    MonitorType.DOMAIN: {"retries": "Must be 0: a registry limits its clients."},
}
_TARGETS = {
    TargetForm.URL: ("Address", ""),
    TargetForm.HOST_PORT: ("Address", "host:port, an IPv6 address in brackets"),
    TargetForm.HOST: ("Host", "host name or IP address"),
    TargetForm.NAME: ("Name to resolve", ""),
}


def form_value(typed: Typed, name: str) -> str:
    return (typed.get(name) or [""])[0]


def own_fields(spec: Spec, typed: Typed) -> list[Field]:
    """Returns the fields of the type, and a field per secret that a document declares."""
    documents = {
        item.name: form_value(typed, CONFIG + item.name)
        for item in spec.fields
        if item.type is FieldType.DOCUMENT
    }
    declared = spec.declared(spec.read(documents)[0]) if documents else []
    return [*spec.fields, *declared]


def sections(
    spec: Spec,
    typed: Typed,
    errors: Mapping[str, str],
    *,
    regions: Sequence[str],
    pickers: Mapping[str, PickerField],
    stored: frozenset[str],
    secrets: Sequence[str] = (),
    ladders: Sequence[tuple[UUID, str]] = (),
    defaults: MonitorDefaults = BUILT_IN,
) -> list[FormSection]:
    """Returns the sections of the form.

    `pickers` are the fields whose choices are searched, by name. `stored` names the settings with a
    stored secret value. `secrets` are the project's secrets that a monitor may refer to. `ladders`
    are the escalation policies of the project.
    """
    fields = own_fields(spec, typed)
    about = [
        *_target(spec, typed, errors),
        _name(typed, errors),
        *_group("schedule", spec, typed, errors, defaults),
    ]
    rows_of: dict[str, list[tuple[Field, FormField]]] = {}
    for item in fields:
        row = _choosing(item, typed, errors, pickers, secrets)
        row = row or _own(spec, item, typed, errors, stored)
        rows_of.setdefault(item.group, []).append((item, row))
    found = [FormSection(title="", rows=about)]
    if spec.placeholders:
        rows = [_conditions(spec, typed, errors)]
        if spec.placeholders & {"BODY", "HEADER", "RESULT"}:
            rows += _group("conditions", spec, typed, errors, defaults)
        found.append(FormSection(title="Conditions", rows=rows))
    for title, own in rows_of.items():
        needed = any(item.required for item, _ in own)
        touched = any(_is_set(item, typed) or row.error for item, row in own)
        section = FormSection(
            title=title or f"{spec.type} settings",
            rows=[row for _, row in own],
            folded=not (touched or needed),
        )
        # Required settings come before optional ones.
        found.insert(1 if needed else len(found), section)
    alerts = _group("alerts", spec, typed, errors, defaults)
    alerts += _paged(typed, errors, ladders, pickers)
    told = any(row.value not in ("", "0") or row.error for row in alerts)
    told = told or any(row.is_chosen for row in alerts)
    told = told or not alerts[0].checked
    found.append(FormSection(title="Alerting", rows=alerts, folded=not told))
    more = _group("more", spec, typed, errors, defaults)
    more += _more(spec, typed, errors, regions, pickers)
    set_ = any(form_value(typed, row.name) for row in more if row.control in ("input", "lines"))
    chosen = any(row.error or (row.picker and row.picker.is_used) for row in more)
    found.append(FormSection(title="More", rows=more, folded=not (set_ or chosen)))
    return found


def _target(spec: Spec, typed: Typed, errors: Mapping[str, str]) -> list[FormField]:
    rows = []
    if spec.target is not TargetForm.NONE:
        called, hint = _TARGETS[spec.target]
        if spec.type is MonitorType.DOMAIN:
            called, hint = "Domain", "registered name, such as example.com"
        if spec.target is TargetForm.URL:
            hint = " or ".join(f"{scheme}://" for scheme in spec.schemes)
        rows.append(
            FormField(
                name="target",
                label=called,
                value=form_value(typed, "target"),
                hint=hint,
                error=errors.get("target", ""),
                required=True,
                mono=True,
            )
        )
    if spec.methods:
        rows.append(_select("method", "Method", spec.methods, form_value(typed, "method"), errors))
    return rows


def _name(typed: Typed, errors: Mapping[str, str]) -> FormField:
    return FormField(
        name="name",
        label="Name",
        value=form_value(typed, "name"),
        hint=f"at most {BOUNDS['name'].most} characters",
        error=errors.get("name", ""),
        required=True,
    )


def _group(
    group: Group, spec: Spec, typed: Typed, errors: Mapping[str, str], defaults: MonitorDefaults
) -> list[FormField]:
    """Returns the rows of the common fields that the type uses, in the order of the fields."""
    kind = MonitorType(str(spec.type))
    usual = MonitorDraft(**completed({"name": "", "type": kind}, kind, defaults))
    return [
        _common(name, kind, typed, errors, getattr(usual, name))
        for name, known in FIELDS.items()
        if known.group == group and known.label and kind in known.types
    ]


def _common(
    name: str, kind: MonitorType, typed: Typed, errors: Mapping[str, str], default: object
) -> FormField:
    known = FIELDS[name]
    if name in FLAGS:
        return FormField(
            name=name,
            label=known.label,
            control="check",
            checked=form_value(typed, name) == "true",
            hint=known.hint,
            error=errors.get(name, ""),
        )
    bounds = bounds_of(name, kind)
    hint = _HINTS_OF_TYPE.get(kind, {}).get(name, known.hint)
    expected = kind is MonitorType.PUSH and name == "interval_seconds"
    return FormField(
        name=name,
        label="Expected interval" if expected else known.label,
        control="number" if name in NUMBERS else "input",
        value=form_value(typed, name),
        hint=" ".join(filter(None, (_range(bounds, default) if name in NUMBERS else "", hint))),
        unit="s" if bounds.unit == "seconds" else "",
        error=errors.get(name, ""),
    )


def _range(bound: FieldBounds, default: object) -> str:
    """Returns bounds and default, empty if the hint of the field names its only value."""
    if bound.least == bound.most:
        return ""
    zero = "0 or " if bound.or_zero else ""
    return f"{zero}{number(bound.least)} to {number(bound.most)}, default {default}."


def _conditions(spec: Spec, typed: Typed, errors: Mapping[str, str]) -> FormField:
    known = ", ".join(f"[{name}]" for name in sorted(spec.placeholders))
    return FormField(
        name="conditions",
        label="Conditions",
        control="lines",
        value=form_value(typed, "conditions"),
        hint=f"One per line; all must be true. Example: [RESPONSE_TIME] < 500. Operands: {known}",
        error=errors.get("conditions", ""),
        mono=True,
    )


def _own(
    spec: Spec, item: Field, typed: Typed, errors: Mapping[str, str], stored: frozenset[str]
) -> FormField:
    name = CONFIG + item.name
    value = form_value(typed, name)
    error = errors.get(name, "")
    common = {"name": name, "label": label(item.name), "hint": _hint(item), "error": error}
    match item.type:
        case FieldType.BOOLEAN:
            return FormField(control="check", checked=value == "true", **common)  # type: ignore[arg-type]
        case FieldType.CHOICE:
            row = _select(
                name, label(item.name), item.choices, value or spelt_default(item), errors
            )
            return FormField(control="select", choices=row.choices, **common)  # type: ignore[arg-type]
        case FieldType.INTEGER:
            return FormField(control="number", value=value, **common)  # type: ignore[arg-type]
        case FieldType.DOCUMENT:
            required = item.required and item.name not in stored
            return FormField(
                control="lines",
                value=value,
                mono=True,
                tall=True,
                example=required and not value.strip() and (spec.type, item.name) in EXAMPLES,
                required=required,
                **common,  # type: ignore[arg-type]
            )
        case FieldType.HEADERS:
            return FormField(control="lines", value=value, mono=True, **common)  # type: ignore[arg-type]
        case _ if item.secret:
            kept = "Stored. Leave blank to keep it." if item.name in stored else ""
            control = "lines" if item.multiline else "password"
            return FormField(control=control, placeholder=kept, **common)  # type: ignore[arg-type]
        case _:
            control = "lines" if item.multiline else "input"
            required = item.required
            return FormField(control=control, value=value, mono=True, required=required, **common)  # type: ignore[arg-type]


def _choosing(
    item: Field,
    typed: Typed,
    errors: Mapping[str, str],
    pickers: Mapping[str, PickerField],
    secrets: Sequence[str],
) -> FormField | None:
    """Returns a field that offers objects of the project, None for other types of item."""
    name = CONFIG + item.name
    chosen = [value for value in typed.get(name, ()) if value]
    common = {
        "name": name,
        "label": label(item.name),
        "hint": _hint(item),
        "error": errors.get(name, ""),
        "required": item.required,
    }
    if item.type is FieldType.IDS:
        return FormField(control="picker", picker=pickers[name], **common)  # type: ignore[arg-type]
    if item.type is FieldType.SECRET_NAME:
        names = sorted({*secrets, *chosen})
        offered = [("", "none", not chosen), *((n, n, n in chosen) for n in names)]
        return FormField(control="select", choices=offered, **common)  # type: ignore[arg-type]
    return None


def _hint(item: Field) -> str:
    told = [item.help.rstrip(".")]
    match item.type:
        case FieldType.INTEGER:
            told.append(f"{number(item.least)} to {number(item.most)}")
        case FieldType.HEADERS:
            told.append(f"Name: value, one per line; at most {HEADERS_MOST}")
            told.append("stored credentials are not shown, leave blank to keep them")
        case FieldType.TEXT:
            told.append(f"at most {number(item.longest)} characters")
        case _:
            pass
    if item.default is not None and item.type is not FieldType.CHOICE:
        default = {True: "on", False: "off"}.get(item.default is True, "")
        told.append(f"default {default if item.type is FieldType.BOOLEAN else item.default}")
    return "; ".join(told)


def spelt_default(item: Field) -> str:
    return "" if item.default is None else str(item.default)


def _is_set(item: Field, typed: Typed) -> bool:
    value = form_value(typed, CONFIG + item.name)
    if item.type is FieldType.BOOLEAN:
        return (value == "true") != (item.default is True)
    return value not in ("", spelt_default(item))


def _select(
    name: str, label: str, values: Sequence[str], chosen: str, errors: Mapping[str, str]
) -> FormField:
    return FormField(
        name=name,
        label=label,
        control="select",
        error=errors.get(name, ""),
        choices=[(str(value), str(value), str(value) == chosen) for value in values],
    )


def _paged(
    typed: Typed,
    errors: Mapping[str, str],
    ladders: Sequence[tuple[UUID, str]],
    pickers: Mapping[str, PickerField],
) -> list[FormField]:
    rows = []
    if ladders:
        chosen = form_value(typed, "escalation_policy_id")
        offered = [("", "none", not chosen)]
        offered += [(str(uid), text, str(uid) == chosen) for uid, text in ladders]
        rows.append(
            FormField(
                name="escalation_policy_id",
                label="Escalation policy",
                control="select",
                hint="Pages sent for its incidents.",
                error=errors.get("escalation_policy_id", ""),
                choices=offered,
            )
        )
    if pickers["channels"].is_needed:
        rows.append(
            FormField(
                name="channels",
                label="Notify channels",
                control="picker",
                hint="Notified on down and recovery, in addition to the escalation policy.",
                error=errors.get("channels", ""),
                picker=pickers["channels"],
            )
        )
    return rows


def _spread(typed: Typed, errors: Mapping[str, str], regions: Sequence[str]) -> list[FormField]:
    chosen = set(typed.get("regions", ()))
    return [
        FormField(
            name="regions",
            label="Regions",
            control="boxes",
            hint=f"With 2 to {REGIONS.most} regions, each checks it, and they decide together.",
            error=errors.get("regions", ""),
            choices=[(name, name, name in chosen) for name in regions],
        ),
        FormField(
            name="down_regions",
            label="Down regions",
            control="number",
            value=form_value(typed, "down_regions"),
            hint="With several regions: it is down when this many are. Default: more than half.",
            error=errors.get("down_regions", ""),
        ),
    ]


def _most_tags() -> int:
    entries = FIELDS["tags"].entries
    assert entries is not None
    return entries.most


def _more(
    spec: Spec,
    typed: Typed,
    errors: Mapping[str, str],
    regions: Sequence[str],
    pickers: Mapping[str, PickerField],
) -> list[FormField]:
    rows = [
        FormField(
            name="tags",
            label="Tags",
            control="picker",
            hint=f"Known or new; at most {_most_tags()} of {BOUNDS['tags'].most} characters."
            " Separate several by commas.",
            error=errors.get("tags", ""),
            picker=pickers["tags"],
        ),
        FormField(
            name="description",
            label="Description",
            control="lines",
            value=form_value(typed, "description"),
            hint=f"at most {BOUNDS['description'].most} characters",
            error=errors.get("description", ""),
        ),
        FormField(
            name="runbook_url",
            label=FIELDS["runbook_url"].label,
            value=form_value(typed, "runbook_url"),
            hint=FIELDS["runbook_url"].hint,
            error=errors.get("runbook_url", ""),
        ),
    ]
    if len(regions) > 1 and spec.type in TYPES and typed.get("regions"):
        rows += _spread(typed, errors, regions)
    elif len(regions) > 1:
        rows.append(_select("region", "Region", regions, form_value(typed, "region"), errors))
    if pickers["depends_on"].is_needed:
        rows.append(
            FormField(
                name="depends_on",
                label="Depends on",
                control="picker",
                hint="No alerts while a dependency is down.",
                error=errors.get("depends_on", ""),
                picker=pickers["depends_on"],
            )
        )
    return rows
