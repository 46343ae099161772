"""Import of GoAlert: objects of its GraphQL API in one JSON object.

`users` (with `contactMethods`), `rotations`, `schedules` (with `targets` and their `rules`),
`userOverrides` and `escalationPolicies` (with `steps`). The active user of a rotation is a state:
the first of `nextHandoffTimes` and `activeUserIndex` give the rotation.
"""

from typing import Final

from ....storage.core.instant import Instant, from_text, to_text
from ....storage.oncall.rules.weekly_hours import WeeklyWindow
from ..import_result import CannotImport
from ..source import Source
from .document import OnCallImport, later_wall, layer_of, minute_of_day, minutes_of, person_of
from .roster import add_groups, holder_spans

_LENGTHS: Final = {"hourly": 3_600, "daily": 86_400, "weekly": 604_800}
_KINDS: Final = {"SMS": "sms", "VOICE": "voice", "EMAIL": "email"}
_ALWAYS: Final = [True] * 7
_LISTS: Final = ("users", "rotations", "schedules", "escalationPolicies")


class _Read:
    """Objects of the document by their id."""

    def __init__(self, document: Source) -> None:
        users = document.get("users") or []
        self.emails = {str(one["id"]): str(one["email"]) for one in users}
        self.rotations = {str(one["id"]): one for one in document.get("rotations") or []}
        # Names of the imported parts of each schedule.
        self.parts: dict[str, list[str]] = {}


def read_goalert(document: Source) -> OnCallImport:
    """Raises: CannotImport."""
    if "schedules" not in document and "escalationPolicies" not in document:
        raise CannotImport("is no export of GoAlert: it has no schedules")
    found, read = OnCallImport(), _Read(document)
    overrides = document.get("userOverrides") or []
    found.each("user", document.get("users") or [], lambda one: _person(found, one))
    found.each(
        "schedule",
        document.get("schedules") or [],
        lambda one: _schedule(found, one, read, overrides),
    )
    found.each(
        "escalation policy",
        document.get("escalationPolicies") or [],
        lambda one: _policy(found, one, read),
    )
    found.each("rotation", document.get("rotations") or [], lambda one: one["name"])
    found.not_used(document, _LISTS)
    return found


def _person(found: OnCallImport, one: Source) -> None:
    methods = []
    for method in one.get("contactMethods") or []:
        kind = _KINDS.get(str(method.get("type")))
        if kind is None:
            found.lose(f"user {one['name']}: contact method {method.get('type')}")
            continue
        label = str(method.get("name") or "")
        methods.append({"kind": kind, "address": str(method["value"]), "label": label})
    found.add_person(str(one["email"]), str(one["name"]), methods)


def _schedule(found: OnCallImport, one: Source, read: _Read, overrides: list[Source]) -> None:
    name, zone = str(one["name"]), str(one["timeZone"])
    layers = []
    for target in one.get("targets") or []:
        key, kind = str(target["target"]["id"]), str(target["target"]["type"])
        windows = [window for rule in target["rules"] for window in _windows(rule)]
        if not windows:
            continue
        if kind == "rotation":
            rotation = read.rotations[key]
            title = str(rotation["name"])
            anchor, length, people = _rotation(found, rotation, read)
            if str(rotation["timeZone"]) != zone:
                found.lose(f"schedule {name}: hand-offs of {title} follow the zone {zone}")
        else:
            people, title = [read.emails[key]], read.emails[key]
            anchor, length = Instant(0), _LENGTHS["weekly"]
        layers.append(
            (minutes_of(windows), title, layer_of(title, people, anchor, length, zone, windows))
        )
    if one.get("temporarySchedules"):
        found.lose(f"schedule {name}: temporary schedules")
    made = add_groups(found, name, layers)
    read.parts[str(one["id"])] = [str(part["name"]) for part, _ in made]

    def take(override: Source) -> None:
        if str(override["target"]["id"]) != str(one["id"]):
            return
        added, removed = override.get("addUserID"), override.get("removeUserID")
        if not added or not removed:
            found.lose(f"schedule {name}: an override that only adds or removes a user")
            return
        person = person_of(read.emails, str(added))
        replaced = person_of(read.emails, str(removed))
        span = (from_text(override["start"]), from_text(override["end"]))
        for part, _ in made:
            for from_at, until in holder_spans(part, replaced, *span):
                found.add_override(part, person, to_text(from_at), to_text(until))

    found.each_override(name, overrides, take)


def _rotation(found: OnCallImport, one: Source, read: _Read) -> tuple[Instant, int, list[str]]:
    """Returns anchor, length of a shift and people of a rotation."""
    people = [read.emails[str(user)] for user in one["userIDs"]]
    length = int(one.get("shiftLength") or 1) * _LENGTHS[str(one["type"])]
    next_times = one.get("nextHandoffTimes") or []
    if not next_times:
        found.lose(f"rotation {one['name']}: without nextHandoffTimes the first user is the first")
        return from_text(one["start"]), length, people
    active = int(one.get("activeUserIndex") or 0)
    anchor = later_wall(from_text(next_times[0]), str(one["timeZone"]), -length)
    return anchor, length, people[active:] + people[:active]


def _windows(rule: Source) -> list[WeeklyWindow]:
    """Returns the window of a rule. Its weekdays begin with Sunday."""
    on = list(rule.get("weekdayFilter") or _ALWAYS)
    days = tuple(sorted((number - 1) % 7 for number, is_on in enumerate(on) if is_on))
    if not days:
        return []
    start, end = minute_of_day(str(rule["start"])), minute_of_day(str(rule["end"]))
    return [WeeklyWindow(days, start, end)]


def _policy(found: OnCallImport, one: Source, read: _Read) -> None:
    steps: dict[int, list[dict[str, str]]] = {}
    after = 0
    for step in one["steps"]:
        targets = steps.setdefault(after, [])
        for target in step["targets"]:
            kind, key = str(target["type"]), str(target["id"])
            if kind == "user" and key in read.emails:
                targets.append({"person": read.emails[key]})
            elif kind == "schedule" and read.parts.get(key):
                targets += [{"schedule": part} for part in read.parts[key]]
            else:
                found.lose(f"escalation policy {one['name']}: target {kind} {key}")
        after += int(step["delayMinutes"]) * 60
    if one.get("repeat"):
        found.lose(f"escalation policy {one['name']}: {one['repeat']} repeats of all steps")
    found.add_policy(str(one["name"]), steps)
