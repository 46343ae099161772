"""Import of Opsgenie: lists of its REST API in one JSON object.

`users`, `schedules` (with `rotations`, and `overrides` of the override API), and `escalations`. All
rotations of a schedule are on call at the same time. Rotations whose hours overlap become schedules
of their own, and a step that names the schedule names all of them.
"""

from typing import Final

from ....storage.core.instant import from_text
from ....storage.oncall.rules.weekly_hours import WeeklyWindow
from ..import_result import CannotImport
from ..source import Source
from .document import (
    NotAPerson,
    OnCallImport,
    daily_windows,
    layer_of,
    minutes_of,
    week_windows,
)
from .limits import maybe_instant
from .roster import add_groups

_LENGTHS: Final = {"hourly": 3_600, "daily": 86_400, "weekly": 604_800}
# Seconds of the units of a delay.
_UNITS: Final = {
    "seconds": 1,
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
}
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LISTS: Final = ("users", "schedules", "escalations")


def read_opsgenie(document: Source) -> OnCallImport:
    """Raises: CannotImport."""
    if "schedules" not in document and "escalations" not in document:
        raise CannotImport("is no export of Opsgenie: it has no schedules")
    found = OnCallImport()
    parts: dict[str, list[str]] = {}
    found.each("user", document.get("users") or [], lambda one: _person(found, one))
    found.each(
        "schedule", document.get("schedules") or [], lambda one: _schedule(found, one, parts)
    )
    found.each(
        "escalation", document.get("escalations") or [], lambda one: _policy(found, one, parts)
    )
    found.not_used(document, _LISTS)
    return found


def _person(found: OnCallImport, one: Source) -> None:
    methods = []
    for method in one.get("userContacts") or one.get("contacts") or []:
        kind = str(method.get("method") or method.get("contactMethod"))
        if kind not in ("email", "sms", "voice"):
            found.lose(f"user {one['username']}: contact method {kind}")
            continue
        address = str(method["to"])
        # A phone number is written as COUNTRY-NUMBER.
        if kind != "email" and address[:1].isdigit() and "-" in address:
            address = f"+{address}"
        methods.append({"kind": kind, "address": address, "label": ""})
    found.add_person(str(one["username"]), str(one.get("fullName") or one["username"]), methods)


def _schedule(found: OnCallImport, one: Source, parts: dict[str, list[str]]) -> None:
    name, zone = str(one["name"]), str(one.get("timezone") or "UTC")
    layers = []
    # Titles of the rotations by their id: an override can name them by the id alone.
    by_id: dict[str, str] = {}
    for rotation in one.get("rotations") or []:
        title = str(rotation.get("name") or "Rotation")
        if rotation.get("id"):
            by_id[str(rotation["id"])] = title
        people = _people(found, f"schedule {name}: rotation {title}", rotation)
        if not people:
            continue
        windows = _windows(rotation.get("timeRestriction"))
        starts_at = from_text(rotation["startDate"])
        length = int(rotation.get("length") or 1) * _LENGTHS[str(rotation["type"])]
        ends_at = maybe_instant(rotation.get("endDate"))
        layer = layer_of(title, people, starts_at, length, zone, windows, starts_at, ends_at)
        layers.append((minutes_of(windows), title, layer))
    made = add_groups(found, name, layers)
    parts[name] = [str(part["name"]) for part, _ in made]

    every = {title for _, titles in made for title in titles}

    def take(override: Source) -> None:
        named = {
            str(of.get("name") or by_id.get(str(of.get("id"))))
            for of in override.get("rotations") or []
        }
        person = _username(override["user"])
        if not named <= every:
            found.lose(f"schedule {name}: an override of a rotation that is not imported")
        for part, titles in made:
            if not named or titles <= named:
                found.add_override(part, person, override["startDate"], override["endDate"])
            elif titles & named:
                found.lose(f"schedule {part['name']}: an override of some of its rotations")

    found.each_override(name, one.get("overrides") or [], take)


def _username(user: Source) -> str:
    """Raises: NotAPerson."""
    if not user.get("username"):
        raise NotAPerson(str(user.get("id")))
    return str(user["username"])


def _people(found: OnCallImport, where: str, rotation: Source) -> list[str]:
    """Returns the participants, none if one of them is no user: its shift would move."""
    people = []
    for participant in rotation.get("participants") or []:
        kind = str(participant["type"])
        if kind != "user":
            found.lose(f"{where} has a participant of type {kind}, and is not imported")
            return []
        people.append(str(participant["username"]))
    return people


def _windows(given: Source | None) -> list[WeeklyWindow]:
    if not given:
        return []
    if str(given["type"]) == "time-of-day":
        one = given["restriction"]
        start, end = _minute(one, "start"), _minute(one, "end")
        return daily_windows(start, (end - start) % 1_440 or 1_440)
    windows = []
    for one in given["restrictions"]:
        start_day, end_day = (_DAYS.index(str(one[key]).lower()) for key in ("startDay", "endDay"))
        start, end = _minute(one, "start"), _minute(one, "end")
        minutes = ((end_day - start_day) % 7 * 1_440 + end - start) % (7 * 1_440)
        windows += week_windows(start_day, start, minutes or 7 * 1_440)
    return windows


def _minute(one: Source, edge: str) -> int:
    return int(one[f"{edge}Hour"]) * 60 + int(one.get(f"{edge}Min") or 0)


def _policy(found: OnCallImport, one: Source, parts: dict[str, list[str]]) -> None:
    steps: dict[int, list[dict[str, str]]] = {}
    for rule in one["rules"]:
        recipient = rule["recipient"]
        delay = rule["delay"]
        unit = str(delay.get("timeUnit") or "minutes").lower()
        if unit not in _UNITS:
            found.lose(f"escalation {one['name']}: a rule with a delay in {unit}")
            continue
        after = int(delay["timeAmount"]) * _UNITS[unit]
        targets = steps.setdefault(after, [])
        kind = str(recipient["type"])
        if kind == "user":
            targets.append({"person": str(recipient["username"])})
        elif kind == "schedule" and parts.get(str(recipient["name"])):
            targets += [{"schedule": part} for part in parts[str(recipient["name"])]]
        else:
            found.lose(f"escalation {one['name']}: recipient {kind} {recipient.get('name')}")
        if rule.get("condition") not in (None, "if-not-acked"):
            found.lose(f"escalation {one['name']}: condition {rule['condition']}")
        if rule.get("notifyType") not in (None, "default"):
            found.lose(f"escalation {one['name']}: notifyType {rule['notifyType']}")
    found.add_policy(str(one["name"]), steps)
