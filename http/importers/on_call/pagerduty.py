"""Import of PagerDuty: lists of its REST API, version 2, in one JSON object.

`users` (with `contact_methods`), `schedules` (each from GET /schedules/{id}, with `overrides`) and
`escalation_policies`. The API lists the layers of a schedule from the highest precedence to the
lowest.
"""

from typing import Any, Final

from ....storage.core.instant import from_text
from ....storage.oncall.rules.weekly_hours import WeeklyWindow
from ..import_result import CannotImport
from ..source import Source
from .document import (
    OnCallImport,
    daily_windows,
    layer_of,
    minute_of_day,
    person_of,
    week_windows,
)
from .limits import maybe_instant

_KINDS: Final = {
    "email_contact_method": "email",
    "phone_contact_method": "voice",
    "sms_contact_method": "sms",
}
_LISTS: Final = ("users", "schedules", "escalation_policies")


def read_pagerduty(document: Source) -> OnCallImport:
    """Raises: CannotImport."""
    if "schedules" not in document and "escalation_policies" not in document:
        raise CannotImport("is no export of PagerDuty: it has no schedules")
    found = OnCallImport()
    emails = {str(one["id"]): str(one["email"]) for one in document.get("users") or []}
    found.each("user", document.get("users") or [], lambda one: _person(found, one))
    # Names of the imported schedules by their id.
    names: dict[str, str] = {}
    found.each(
        "schedule",
        document.get("schedules") or [],
        lambda one: _schedule(found, one, emails, names),
    )
    found.each(
        "escalation policy",
        document.get("escalation_policies") or [],
        lambda one: _policy(found, one, emails, names),
    )
    found.not_used(document, _LISTS)
    return found


def _person(found: OnCallImport, one: Source) -> None:
    methods = []
    for method in one.get("contact_methods") or []:
        kind = _KINDS.get(str(method.get("type")))
        if kind is None:
            found.lose(f"user {one['name']}: contact method {method.get('type')}")
            continue
        code = str(method.get("country_code") or "")
        address = f"+{code}{method['address']}" if code else str(method["address"])
        label = str(method.get("label") or "")
        methods.append({"kind": kind, "address": address, "label": label})
    found.add_person(str(one["email"]), str(one["name"]), methods)


def _schedule(
    found: OnCallImport, one: Source, emails: dict[str, str], names: dict[str, str]
) -> None:
    name, zone = str(one["name"]), str(one["time_zone"])
    layers = []
    for layer in reversed(one["schedule_layers"]):
        people = [emails[str(user["user"]["id"])] for user in layer["users"]]
        if not people:
            found.lose(f"schedule {name}: layer {layer['name']} has no users")
            continue
        layers.append(
            layer_of(
                str(layer["name"]),
                people,
                from_text(layer["rotation_virtual_start"]),
                int(layer["rotation_turn_length_seconds"]),
                zone,
                _windows(layer.get("restrictions") or []),
                from_text(layer["start"]),
                maybe_instant(layer.get("end")),
            )
        )
    made = found.add_schedule(name, layers)
    if made is not None:
        names[str(one["id"])] = made["name"]

    def take(override: Source) -> None:
        if made is not None:
            person = person_of(emails, str(override["user"]["id"]))
            found.add_override(made, person, override["start"], override["end"])

    found.each_override(name, one.get("overrides") or [], take)


def _windows(restrictions: list[Any]) -> list[WeeklyWindow]:
    windows = []
    for one in restrictions:
        minute = minute_of_day(str(one["start_time_of_day"]))
        minutes = int(one["duration_seconds"]) // 60
        if one["type"] == "daily_restriction":
            windows += daily_windows(minute, minutes)
        else:
            windows += week_windows(int(one["start_day_of_week"]) - 1, minute, minutes)
    return windows


def _policy(
    found: OnCallImport, one: Source, emails: dict[str, str], names: dict[str, str]
) -> None:
    steps: dict[int, list[dict[str, str]]] = {}
    after = 0
    for rule in one["escalation_rules"]:
        targets = steps.setdefault(after, [])
        for target in rule["targets"]:
            key, kind = str(target["id"]), str(target["type"])
            if kind.startswith("schedule") and key in names:
                targets.append({"schedule": names[key]})
            elif kind.startswith("user") and key in emails:
                targets.append({"person": emails[key]})
            else:
                found.lose(f"escalation policy {one['name']}: target {kind} {key}")
        after += int(rule["escalation_delay_in_minutes"]) * 60
    if one.get("num_loops"):
        found.lose(
            f"escalation policy {one['name']}: {one['num_loops']} further loops of all steps"
        )
    found.add_policy(str(one["name"]), steps)
