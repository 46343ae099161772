"""Imported on-call: schedules and policies for a bundle, and what they lose.

People are named by their e-mail address, schedules and policies by their name. Layers have the
fields of the API.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast
from zoneinfo import ZoneInfoNotFoundError

import msgspec

from ....storage.bundles.rules.bundle_people import (
    PEOPLE_MOST,
    PROPOSED_MOST,
    ProposedMethod,
    method_fault,
    plain_method,
)
from ....storage.core.instant import Instant, from_datetime, from_text, to_text
from ....storage.core.naming import email_fault, name_fault, words_fault
from ....storage.notifications.rules.contact_method import LABEL_LONGEST
from ....storage.oncall.rules.oncall_schedule import override_fault
from ....storage.oncall.rules.weekly_hours import (
    DAY_MINUTES,
    WEEKDAYS,
    WeeklyWindow,
    clock_text,
    first_instant,
    zone_of_name,
)
from ..import_result import NAME_LONGEST, printable
from ..source import Source
from .limits import layers_fault, steps_fault

_WEEK: Final = 7 * DAY_MINUTES
# Keys that identify an object or repeat others.
_NAMES: Final = ("id", "type", "name", "summary", "self", "html_url")
_UNKNOWN_FORMS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_UNKNOWN: Final = "has a structure that the importer does not know"


class NotAPerson(LookupError):
    """The file has no person with this id. The text is the id."""


@dataclass(slots=True)
class OnCallImport:
    """`unused` names every key that is not imported, and `lost` every object or part."""

    people: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    policies: list[dict[str, Any]] = field(default_factory=list)
    routes: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def lose(self, text: str) -> None:
        self.lost.append(printable(text))

    def each(self, kind: str, items: Iterable[Any], take: Callable[[Any], object]) -> None:
        """Calls `take` for each item. An item with an unexpected structure is lost alone."""
        for one in items:
            try:
                take(one)
            except ZoneInfoNotFoundError:
                self.lose(f"{kind} {_called(one)}: has a time zone that is not an IANA time zone")
                continue
            except _UNKNOWN_FORMS:
                self.lose(f"{kind} {_called(one)}: {_UNKNOWN}")
                continue
            if isinstance(one, Source):
                name = str(one.get("name") or one.get("username") or one.get("id") or "unnamed")
                self.unused += [
                    printable(f"{kind} {name}: {key} is not carried over")
                    for key in one.unread(_NAMES)
                ]

    def each_override(self, name: str, items: Iterable[Any], take: Callable[[Any], object]) -> None:
        """Calls `take` for each override of a schedule. One that cannot be imported is lost alone.

        Their unread keys are those of the schedule.
        """
        for number, one in enumerate(items, 1):
            where = f"schedule {name}: override {number}"
            try:
                take(one)
            except NotAPerson as error:
                self.lose(f"{where} names a person who is not in the file: {error}")
            except _UNKNOWN_FORMS:
                self.lose(f"{where} {_UNKNOWN}")

    def add_override(self, made: dict[str, Any], person: str, starts_at: str, ends_at: str) -> None:
        """Adds an override to a schedule. Raises: ValueError."""
        from_at, until = from_text(starts_at), from_text(ends_at)
        fault = override_fault(from_at, until)
        if fault is not None:
            self.lose(f"schedule {made['name']}: an override from {starts_at}: {' '.join(fault)}")
            return
        span = {"starts_at": to_text(from_at), "ends_at": to_text(until)}
        made["overrides"].append({"person": person, **span})

    def not_used(self, document: Source, lists: Sequence[str]) -> None:
        """Reports the keys of the document. Those of the items of `lists` are reported already."""
        keys = document.unread(lists)
        self.unused += [printable(f"{key} is not carried over") for key in keys]

    def add_person(self, email: str, name: str, methods: Sequence[dict[str, str]]) -> None:
        """Adds a person. One or a contact method that the API would refuse is lost."""
        known = {one["email"].lower() for one in self.people}
        fault = "has the address of another user" if email.lower() in known else email_fault(email)
        if fault is None and len(known) == PEOPLE_MOST:
            fault = f"is beyond the first {PEOPLE_MOST} people"
        if fault is not None:
            self.lose(f"user {name}: {email} {fault}")
            return
        kept: list[ProposedMethod] = []
        for given in methods:
            one = proposed_method(given)
            wrong = method_fault(one)
            is_known = any((one.kind, one.address) == (each.kind, each.address) for each in kept)
            if wrong is None and not is_known and len(kept) == PROPOSED_MOST:
                wrong = "contact_methods", f"has more than {PROPOSED_MOST}"
            if wrong is not None:
                self.lose(f"user {name}: {given['kind']} {given['address']} {wrong[1]}")
            elif not is_known:
                kept.append(one)
        made = [msgspec.structs.asdict(one) for one in kept]
        said = name if words_fault(name) is None else ""
        self.people.append({"email": email, "name": said, "contact_methods": made})

    def add_schedule(self, name: str, layers: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """Adds a schedule of layers from the lowest precedence to the highest.

        Its name is unique, because steps name it. One that the API would refuse is lost.
        """
        if not layers:
            self.lose(f"schedule {name}: has no layer that can be imported")
            return None
        fault = name_fault(name[:NAME_LONGEST]) or layers_fault(layers)
        if fault is not None:
            self.lose(f"schedule {name}: is not imported: {fault}")
            return None
        first, *further = layers
        known = {one["name"] for one in self.schedules}
        made = {**first, "name": _unique(name, known), "layers": further, "overrides": []}
        self.schedules.append(made)
        return made

    def add_policy(self, name: str, steps: dict[int, list[dict[str, str]]]) -> None:
        """Adds an escalation policy of targets by their delay in seconds."""
        made = [
            {"after_seconds": after, "targets": steps[after]}
            for after in sorted(steps)
            if steps[after]
        ]
        if not made:
            self.lose(f"escalation policy {name}: has no target that can be imported")
            return
        fault = name_fault(name[:NAME_LONGEST]) or steps_fault(made)
        if fault is not None:
            self.lose(f"escalation policy {name}: is not imported: {fault}")
            return
        known = {one["name"] for one in self.policies}
        self.policies.append({"name": _unique(name, known), "steps": made})


def proposed_method(given: Mapping[str, str]) -> ProposedMethod:
    """Returns a contact method as the API has it. A long label is cut."""
    label = printable(given["label"])[:LABEL_LONGEST]
    return plain_method(
        ProposedMethod(kind=cast("Any", given["kind"]), address=given["address"], label=label)
    )


def person_of(emails: Mapping[str, str], key: str) -> str:
    """Returns the address of a person. Raises: NotAPerson."""
    if key not in emails:
        raise NotAPerson(key)
    return emails[key]


def _called(one: Any) -> str:
    return str(one.get("name", "unnamed")) if isinstance(one, Source) else "unnamed"


def _unique(name: str, known: set[str]) -> str:
    cut = name[: NAME_LONGEST - 8]
    numbered = (f"{cut} {number}" for number in range(2, len(known) + 3))
    return next(one for one in (name[:NAME_LONGEST], *numbered) if one not in known)


def layer_of(
    name: str,
    people: Sequence[str],
    anchor_at: Instant,
    shift_seconds: int,
    zone: str,
    windows: Sequence[WeeklyWindow] = (),
    starts_at: Instant | None = None,
    ends_at: Instant | None = None,
) -> dict[str, Any]:
    """Returns a layer with the fields of the API. Its participants are e-mail addresses."""
    made: dict[str, Any] = {
        "name": (name or "Layer")[:NAME_LONGEST],
        "shift_seconds": shift_seconds,
        "anchor_at": to_text(anchor_at),
        "timezone": zone,
        "participants": list(people),
        "restrictions": [window_body(window) for window in windows],
    }
    if starts_at is not None:
        made["starts_at"] = to_text(starts_at)
    if ends_at is not None:
        made["ends_at"] = to_text(ends_at)
    return made


def window_body(window: WeeklyWindow) -> dict[str, Any]:
    return {
        "weekdays": [WEEKDAYS[day] for day in window.weekdays],
        "from": clock_text(window.from_),
        "to": clock_text(window.until),
    }


def week_windows(day: int, minute: int, minutes: int) -> list[WeeklyWindow]:
    """Returns windows of a span of the week, from a minute of a weekday, at most a week long."""
    found = []
    at, left = day * DAY_MINUTES + minute, min(minutes, _WEEK)
    while left > 0:
        start = at % DAY_MINUTES
        piece = min(left, DAY_MINUTES - start)
        found.append(WeeklyWindow((at // DAY_MINUTES % 7,), start, start + piece))
        at, left = at + piece, left - piece
    return found


def daily_windows(minute: int, minutes: int) -> list[WeeklyWindow]:
    """Returns the window of a span on all days, at most 24 hours long."""
    until = (minute + min(minutes, DAY_MINUTES)) % DAY_MINUTES or DAY_MINUTES
    return [WeeklyWindow(tuple(range(7)), minute, until)]


def minutes_of(windows: Sequence[WeeklyWindow]) -> set[int]:
    """Returns the minutes of the week that the windows cover, all of them without windows."""
    if not windows:
        return set(range(_WEEK))
    return {
        (day * DAY_MINUTES + window.from_ + minute) % _WEEK
        for window in windows
        for day in window.weekdays
        for minute in range(window.minutes)
    }


def minute_of_day(text: str) -> int:
    """Returns the minutes of a time such as 08:30:00. Raises: ValueError for seconds."""
    hour, minute, *seconds = text.removesuffix("Z").split(":")
    if any(int(second) for second in seconds):
        raise ValueError(text)
    return int(hour) * 60 + int(minute)


def local_instant(text: str, zone: str) -> Instant:
    """Returns the instant of a time with an offset, or else of a local time in a zone."""
    given = datetime.fromisoformat(text)
    if given.tzinfo is not None:
        return from_datetime(given)
    return first_instant(given, zone_of_name(zone))


def later_wall(at: Instant, zone: str, seconds: int) -> Instant:
    """Returns the instant whose local time is `seconds` later."""
    place = zone_of_name(zone)
    local = datetime.fromisoformat(to_text(at)).astimezone(place).replace(tzinfo=None)
    return first_instant(local + timedelta(seconds=seconds), place)
