"""Import of Grafana OnCall: lists of its HTTP API in one JSON object.

`users`, `schedules`, `on_call_shifts`, `escalation_chains`, `escalation_policies` and `routes`. Of
overlapping shifts the higher level takes precedence. Shifts of one level that overlap page several
people, which a schedule of Leadline does not: the later ones are reported.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from ....storage.core.instant import Instant
from ....storage.oncall.rules.weekly_hours import WeeklyWindow, first_instant, zone_of_name
from ..import_result import CannotImport
from ..source import Source
from .document import (
    OnCallImport,
    daily_windows,
    layer_of,
    local_instant,
    minutes_of,
    week_windows,
)

_DAY: Final = 86_400
_LENGTHS: Final = {"hourly": 3_600, "daily": _DAY, "weekly": 7 * _DAY}
_NONE, _MINUTE = timedelta(0), timedelta(minutes=1)
# Level of overrides, above all others.
_OVERRIDES: Final = 1_000_000
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_LISTS: Final = ("users", "schedules", "on_call_shifts", "escalation_policies")


class _CannotConvert(Exception):
    """The text states why a shift is not imported."""


def read_grafana_oncall(document: Source) -> OnCallImport:
    """Raises: CannotImport."""
    if "schedules" not in document and "escalation_policies" not in document:
        raise CannotImport("is no export of Grafana OnCall: it has no schedules")
    found = OnCallImport()
    users, shifts = document.get("users") or [], document.get("on_call_shifts") or []
    emails = {str(one["id"]): str(one["email"]) for one in users}
    by_id = {str(one["id"]): one for one in shifts}
    schedules = document.get("schedules") or []
    # Names of the imported schedules by their id.
    names: dict[str, str] = {}
    found.each(
        "user",
        users,
        lambda one: found.add_person(
            str(one["email"]), str(one.get("name") or one["username"]), []
        ),
    )
    found.each("schedule", schedules, lambda one: _schedule(found, one, by_id, emails, names))
    found.each("shift", shifts, lambda one: one.get("name"))
    chains = {str(one["id"]): str(one["name"]) for one in document.get("escalation_chains") or []}
    policies = document.get("escalation_policies") or []
    for key, name in chains.items():
        mine = [one for one in policies if str(one["escalation_chain_id"]) == key]
        _policy(found, name, sorted(mine, key=lambda one: int(one["position"])), emails, names)
    found.each("step", policies, lambda one: one["id"])
    for route in document.get("routes") or []:
        chain = chains.get(str(route.get("escalation_chain_id")))
        if route.get("is_the_last_route") and chain is not None:
            found.routes.append({"matchers": "", "policy": chain})
        else:
            found.lose(f"route {route.get('routing_regex')}: templates are no label matchers")
    found.not_used(document, _LISTS)
    return found


def _schedule(
    found: OnCallImport,
    one: Source,
    by_id: dict[str, Source],
    emails: dict[str, str],
    names: dict[str, str],
) -> None:
    name, zone = str(one["name"]), str(one.get("time_zone") or "UTC")
    if one.get("type") == "ical":
        found.lose(f"schedule {name}: is a calendar of another system")
        return
    layers: list[tuple[int, dict[str, Any]]] = []
    taken: dict[int, list[tuple[str, set[int]]]] = {}
    for key in one.get("shifts") or []:
        shift = by_id[str(key)]
        level = _OVERRIDES if shift["type"] == "override" else int(shift.get("level") or 0)
        try:
            layer, minutes = _layer(shift, zone, emails)
        except _CannotConvert as why:
            found.lose(f"schedule {name}: shift {shift.get('name')} {why}")
            continue
        others = taken.setdefault(level, [])
        is_alone = level == _OVERRIDES or not any(
            _overlap(layer["timezone"], minutes, *other) for other in others
        )
        if not is_alone:
            found.lose(f"schedule {name}: shift {shift.get('name')} can overlap one of its level")
            continue
        others.append((layer["timezone"], minutes))
        layers.append((level, layer))
    made = found.add_schedule(
        name, [layer for _, layer in sorted(layers, key=lambda pair: pair[0])]
    )
    if made is not None:
        names[str(one["id"])] = made["name"]


def _overlap(zone: str, minutes: set[int], other_zone: str, others: set[int]) -> bool:
    """Returns whether shifts can be active at the same time. Clocks of two zones can change."""
    if zone == other_zone:
        return bool(minutes & others)
    return bool(_in_utc(zone, minutes) & _in_utc(other_zone, others))


def _in_utc(zone: str, minutes: set[int]) -> set[int]:
    """Returns the minutes of the week in UTC, with the offsets of both halves of the year."""
    offsets = {
        int((datetime(2026, month, 1, tzinfo=zone_of_name(zone)).utcoffset() or _NONE) / _MINUTE)
        for month in range(1, 13)
    }
    return {(minute - offset) % (7 * 1_440) for minute in minutes for offset in offsets}


def _layer(
    shift: Source, schedule_zone: str, emails: dict[str, str]
) -> tuple[dict[str, Any], set[int]]:
    """Returns the layer of a shift and its minutes of the week.

    Raises: _CannotConvert.
    """
    zone, title = str(shift.get("time_zone") or schedule_zone), str(shift.get("name") or "Shift")
    start, seconds = datetime.fromisoformat(str(shift["start"])), int(shift["duration"])
    place = zone_of_name(zone)
    if start.tzinfo is not None:
        # Windows and weekdays are in local time.
        local = start.astimezone(place).replace(tzinfo=None)
        if shift.get("by_day") and local.date() != start.date():
            raise _CannotConvert("names weekdays, and starts on another one in its time zone")
        start = local
    starts_at = local_instant(str(shift.get("rotation_start") or shift["start"]), zone)
    if shift["type"] in ("single_event", "override"):
        people = _people([shift.get("users") or []], emails)
        begins = local_instant(str(shift["start"]), zone)
        ends = Instant(begins + seconds * 1_000_000)
        return layer_of(title, people, begins, 7 * _DAY, zone, (), begins, ends), minutes_of(())
    if shift["type"] == "rolling_users":
        groups = [list(group) for group in shift.get("rolling_users") or []]
        index = int(shift.get("start_rotation_from_user_index") or 0)
        groups = groups[index:] + groups[:index]
    else:
        groups = [list(shift.get("users") or [])]
    people = _people(groups, emails)
    until = shift.get("until")
    ends_at = None if not until else local_instant(str(until), zone)
    anchor, length, windows = _recurrence(shift, start, seconds)
    given = first_instant(anchor, place)
    layer = layer_of(title, people, given, length, zone, windows, starts_at, ends_at)
    return layer, minutes_of(windows)


def _people(groups: list[list[str]], emails: dict[str, str]) -> list[str]:
    if not groups or any(len(group) != 1 for group in groups):
        raise _CannotConvert("pages several people at once, or nobody")
    if any(str(group[0]) not in emails for group in groups):
        raise _CannotConvert("names a person who is not in the file")
    return [emails[str(group[0])] for group in groups]


def _recurrence(
    shift: Source, start: datetime, seconds: int
) -> tuple[datetime, int, list[WeeklyWindow]]:
    """Returns anchor, length of a turn and windows of a recurring shift.

    Raises: _CannotConvert.
    """
    frequency, interval = str(shift["frequency"]), int(shift.get("interval") or 1)
    if frequency not in _LENGTHS or shift.get("by_month") or shift.get("by_monthday"):
        raise _CannotConvert("recurs by month")
    length = _LENGTHS[frequency] * interval
    days = sorted(_DAYS.index(str(day)) for day in shift.get("by_day") or [])
    minute = start.hour * 60 + start.minute
    if days:
        if frequency != "weekly" or interval != 1 or seconds > _DAY:
            raise _CannotConvert("recurs on weekdays of some weeks")
        first = _DAYS.index(str(shift.get("week_start") or "SU"))
        week = start.replace(hour=0, minute=0, second=0)
        week -= timedelta(days=(start.weekday() - first) % 7)
        windows = [window for day in days for window in week_windows(day, minute, seconds // 60)]
        # The turn of a week ends after its last event, which can end in the next week.
        begins = [(day - first) % 7 * 1_440 + minute for day in days]
        late = max(0, max(begins) + seconds // 60 - 7 * 1_440)
        if late > min(begins):
            raise _CannotConvert("overlaps itself at the end of the week")
        return week + timedelta(minutes=late), length, windows
    if seconds == length:
        return start, length, []
    if seconds > length or interval != 1:
        raise _CannotConvert("does not recur each day or week, or overlaps itself")
    if frequency == "daily":
        return start, length, daily_windows(minute, seconds // 60)
    if frequency == "weekly":
        return start, length, week_windows(start.weekday(), minute, seconds // 60)
    raise _CannotConvert("is shorter than its hour")


def _policy(
    found: OnCallImport,
    name: str,
    steps: list[Source],
    emails: dict[str, str],
    names: dict[str, str],
) -> None:
    made: dict[int, list[dict[str, str]]] = {}
    after = 0
    for step in steps:
        kind = str(step["type"])
        if kind == "wait":
            after += int(step["duration"])
        elif kind == "notify_persons":
            people = [{"person": emails[str(key)]} for key in step["persons_to_notify"]]
            made.setdefault(after, []).extend(people)
        elif kind == "notify_on_call_from_schedule" and _named(step) in names:
            made.setdefault(after, []).append({"schedule": names[_named(step)]})
        else:
            found.lose(f"escalation chain {name}: step {kind}")
    found.add_policy(name, made)


def _named(step: Source) -> str:
    """Returns the id of the schedule that a step names."""
    return str(step.get("notify_on_call_from_schedule"))
