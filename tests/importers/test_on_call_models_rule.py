"""Imported schedules name the same people as models of the rules of the other tools, hour by hour
for 90 days. The models read the exports themselves and share no code with the importers."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import DAILY, HOURLY, WEEKLY, rrule
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.http.importers.on_call import read_on_call
from leadline.http.importers.on_call.roster import roster_of
from leadline.storage.core.instant import Instant, from_datetime
from leadline.storage.oncall.rules.oncall_schedule import stretch
from tests.support.run import effort

DAYS = 90
# Clocks change in New York on 8 March and in Berlin on 29 March; in autumn on 25 October and on
# 1 November.
STARTS = effort.varied(["2026-02-01"], ["2026-02-01", "2026-09-15", "2027-01-10", "2027-08-20"])
USERS = ["mara", "tomas", "aiko", "lind"]
Named = Callable[[datetime], set[str]]


def mail(user: str) -> str:
    return f"{user}@example.com"


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(text)


def local(at: datetime, zone: str) -> datetime:
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


PAGERDUTY: dict[str, Any] = {
    "users": [
        {
            "id": user,
            "name": user,
            "email": mail(user),
            "role": "user",
            "contact_methods": [
                {"type": "sms_contact_method", "country_code": 49, "address": "1701234567"},
                {"type": "push_notification_contact_method", "address": "token"},
            ],
        }
        for user in USERS
    ],
    "schedules": [
        {
            "id": "S1",
            "name": "Shop",
            "time_zone": "America/New_York",
            "description": "first line",
            "schedule_layers": [
                {
                    "name": "Weekend",
                    "start": "2026-01-01T00:00:00Z",
                    "end": None,
                    "rotation_virtual_start": "2026-01-02T22:00:00Z",
                    "rotation_turn_length_seconds": 604_800,
                    "users": [{"user": {"id": "aiko"}}, {"user": {"id": "lind"}}],
                    "restrictions": [
                        {
                            "type": "weekly_restriction",
                            "start_day_of_week": 5,
                            "start_time_of_day": "17:00:00",
                            "duration_seconds": 62 * 3_600,
                        }
                    ],
                },
                {
                    "name": "Nights",
                    "start": "2026-02-10T05:00:00Z",
                    "end": "2026-04-20T04:00:00Z",
                    "rotation_virtual_start": "2026-02-10T05:00:00Z",
                    "rotation_turn_length_seconds": 86_400,
                    "users": [{"user": {"id": "lind"}}, {"user": {"id": "mara"}}],
                    "restrictions": [
                        {
                            "type": "daily_restriction",
                            "start_time_of_day": "20:00:00",
                            "duration_seconds": 10 * 3_600,
                        }
                    ],
                },
                {
                    "name": "Base",
                    "start": "2026-02-03T14:00:00Z",
                    "end": None,
                    "rotation_virtual_start": "2026-02-02T14:00:00Z",
                    "rotation_turn_length_seconds": 302_400,
                    "users": [{"user": {"id": user}} for user in ("mara", "tomas", "aiko")],
                    "restrictions": [],
                },
            ],
            "overrides": [
                {
                    "start": "2026-03-08T03:00:00Z",
                    "end": "2026-03-08T15:00:00Z",
                    "user": {"id": "tomas"},
                }
            ],
        }
    ],
    "escalation_policies": [
        {
            "id": "P1",
            "name": "Night",
            "num_loops": 2,
            "escalation_rules": [
                {
                    "escalation_delay_in_minutes": 15,
                    "targets": [{"id": "S1", "type": "schedule_reference"}],
                },
                {
                    "escalation_delay_in_minutes": 30,
                    "targets": [{"id": "mara", "type": "user_reference"}],
                },
            ],
        }
    ],
    "services": [{"id": "X"}],
}


def pagerduty_names(at: datetime, document: dict[str, Any] = PAGERDUTY) -> set[str]:
    (schedule,) = document["schedules"]
    for one in schedule["overrides"]:
        if parsed(one["start"]) <= at < parsed(one["end"]):
            return {one["user"]["id"]}
    zone = schedule["time_zone"]
    for layer in schedule["schedule_layers"]:
        if at < parsed(layer["start"]) or (layer["end"] and at >= parsed(layer["end"])):
            continue
        shows = local(at, zone)
        minute = shows.weekday() * 1_440 + shows.hour * 60 + shows.minute
        inside = not layer["restrictions"]
        for one in layer["restrictions"]:
            begins = time.fromisoformat(one["start_time_of_day"])
            first = begins.hour * 60 + begins.minute
            length = one["duration_seconds"] // 60
            if one["type"] == "daily_restriction":
                inside |= (minute - first) % 1_440 < length
            else:
                first += (one["start_day_of_week"] - 1) * 1_440
                inside |= (minute - first) % 10_080 < length
        if inside:
            since = shows - local(parsed(layer["rotation_virtual_start"]), zone)
            turn = since // timedelta(seconds=layer["rotation_turn_length_seconds"])
            return {layer["users"][turn % len(layer["users"])]["user"]["id"]}
    return set()


OPSGENIE: dict[str, Any] = {
    "users": [
        {
            "username": mail(user),
            "fullName": user,
            "userContacts": [{"method": "sms", "to": "49-1701234567"}],
            "timeZone": "UTC",
        }
        for user in USERS
    ],
    "schedules": [
        {
            "name": "Shop",
            "timezone": "Europe/Berlin",
            "enabled": True,
            "rotations": [
                {
                    "name": "Office",
                    "type": "weekly",
                    "length": 1,
                    "startDate": "2026-01-05T08:00:00Z",
                    "participants": [
                        {"type": "user", "username": mail(user)} for user in ("mara", "tomas")
                    ],
                    "timeRestriction": {
                        "type": "weekday-and-time-of-day",
                        "restrictions": [
                            {
                                "startDay": "monday",
                                "startHour": 8,
                                "startMin": 0,
                                "endDay": "monday",
                                "endHour": 18,
                                "endMin": 30,
                            },
                            {
                                "startDay": "wednesday",
                                "startHour": 20,
                                "startMin": 0,
                                "endDay": "friday",
                                "endHour": 6,
                                "endMin": 0,
                            },
                        ],
                    },
                },
                {
                    "name": "Nights",
                    "type": "daily",
                    "length": 2,
                    "startDate": "2026-01-05T19:00:00Z",
                    "endDate": "2026-04-10T00:00:00Z",
                    "participants": [
                        {"type": "user", "username": mail(user)}
                        for user in ("aiko", "lind", "mara")
                    ],
                    "timeRestriction": {
                        "type": "time-of-day",
                        "restriction": {
                            "startHour": 20,
                            "startMin": 0,
                            "endHour": 8,
                            "endMin": 0,
                        },
                    },
                },
                {
                    "name": "Hourly",
                    "type": "hourly",
                    "length": 12,
                    "startDate": "2026-02-05T19:00:00Z",
                    "participants": [
                        {"type": "user", "username": mail(user)} for user in ("lind", "tomas")
                    ],
                },
                {
                    "name": "Team",
                    "type": "daily",
                    "startDate": "2026-01-05T19:00:00Z",
                    "participants": [{"type": "team", "name": "ops"}],
                },
            ],
            "overrides": [
                {
                    "user": {"username": mail("aiko")},
                    "startDate": "2026-03-29T00:00:00Z",
                    "endDate": "2026-03-29T09:00:00Z",
                    "rotations": [{"name": "Hourly"}],
                }
            ],
        }
    ],
    "escalations": [
        {
            "name": "Night",
            "rules": [
                {
                    "condition": "if-not-acked",
                    "notifyType": "default",
                    "delay": {"timeAmount": 5},
                    "recipient": {"type": "schedule", "name": "Shop"},
                }
            ],
        }
    ],
}


def opsgenie_names(at: datetime) -> set[str]:
    (schedule,) = OPSGENIE["schedules"]
    found = set()
    days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    hours = {"hourly": 1, "daily": 24, "weekly": 168}
    for one in schedule["rotations"]:
        names = [person.get("username") for person in one["participants"]]
        over = [
            override
            for override in schedule["overrides"]
            if parsed(override["startDate"]) <= at < parsed(override["endDate"])
            and one["name"] in [rotation["name"] for rotation in override["rotations"]]
        ]
        if over:
            found.add(over[0]["user"]["username"].partition("@")[0])
            continue
        if None in names or at < parsed(one["startDate"]):
            continue
        if "endDate" in one and at >= parsed(one["endDate"]):
            continue
        shows = local(at, schedule["timezone"])
        minute = shows.weekday() * 1_440 + shows.hour * 60 + shows.minute
        limit = one.get("timeRestriction")
        spans = []
        if limit and limit["type"] == "time-of-day":
            of = limit["restriction"]
            for day in range(7):
                first = day * 1_440 + of["startHour"] * 60 + of["startMin"]
                spans.append((first, (of["endHour"] - of["startHour"]) % 24 * 60))
        elif limit:
            for of in limit["restrictions"]:
                first = days.index(of["startDay"]) * 1_440 + of["startHour"] * 60 + of["startMin"]
                last = days.index(of["endDay"]) * 1_440 + of["endHour"] * 60 + of["endMin"]
                spans.append((first, (last - first) % 10_080))
        if limit and not any((minute - first) % 10_080 < length for first, length in spans):
            continue
        since = shows - local(parsed(one["startDate"]), schedule["timezone"])
        turn = since // timedelta(hours=hours[one["type"]] * one.get("length", 1))
        found.add(names[turn % len(names)].partition("@")[0])
    return found


GOALERT: dict[str, Any] = {
    "users": [
        {
            "id": user,
            "name": user,
            "email": mail(user),
            "contactMethods": [{"type": "SMS", "value": "+491701234567", "name": "phone"}],
        }
        for user in USERS
    ],
    "rotations": [
        {
            "id": "R1",
            "name": "Week",
            "timeZone": "Europe/Berlin",
            "start": "2025-01-06T08:00:00Z",
            "type": "weekly",
            "shiftLength": 1,
            "activeUserIndex": 1,
            "nextHandoffTimes": ["2026-02-02T08:00:00Z"],
            "userIDs": ["mara", "tomas", "aiko"],
        }
    ],
    "schedules": [
        {
            "id": "S1",
            "name": "Shop",
            "description": "",
            "timeZone": "Europe/Berlin",
            "targets": [
                {
                    "target": {"id": "R1", "type": "rotation", "name": "Week"},
                    "rules": [
                        {
                            "start": "08:00",
                            "end": "20:00",
                            "weekdayFilter": [False, True, True, True, True, True, False],
                        },
                        {
                            "start": "10:00",
                            "end": "10:00",
                            "weekdayFilter": [False, False, False, False, False, False, True],
                        },
                    ],
                },
                {
                    "target": {"id": "lind", "type": "user", "name": "lind"},
                    "rules": [{"start": "18:00", "end": "06:00", "weekdayFilter": [True] * 7}],
                },
            ],
        }
    ],
    "userOverrides": [
        {
            "start": "2026-03-10T00:00:00Z",
            "end": "2026-03-12T00:00:00Z",
            "addUserID": "mara",
            "removeUserID": "lind",
            "target": {"id": "S1"},
        }
    ],
    "escalationPolicies": [
        {
            "name": "Night",
            "repeat": 3,
            "steps": [
                {"delayMinutes": 5, "targets": [{"id": "S1", "type": "schedule"}]},
                {"delayMinutes": 5, "targets": [{"id": "mara", "type": "user"}]},
            ],
        }
    ],
}


def goalert_names(at: datetime) -> set[str]:
    (schedule,), (rotation,) = GOALERT["schedules"], GOALERT["rotations"]
    zone = schedule["timeZone"]
    shows = local(at, zone)
    # Hand-offs are at the same local time, forwards and backwards from the next one.
    weeks = (shows - local(parsed(rotation["nextHandoffTimes"][0]), zone)) // timedelta(weeks=1)
    users = rotation["userIDs"]
    active = users[(rotation["activeUserIndex"] + 1 + weeks) % len(users)]
    found = set()
    for target in schedule["targets"]:
        who = active if target["target"]["type"] == "rotation" else target["target"]["id"]
        for rule in target["rules"]:
            start, end = (
                timedelta(hours=int(rule[edge][:2]), minutes=int(rule[edge][3:]))
                for edge in ("start", "end")
            )
            length = (end - start) % timedelta(days=1) or timedelta(days=1)
            for back in (0, 1):
                day = shows.date() - timedelta(days=back)
                is_on = rule["weekdayFilter"][(day.weekday() + 1) % 7]
                begins = datetime.combine(day, time()) + start
                if is_on and begins <= shows < begins + length:
                    found.add(who)
    for one in GOALERT["userOverrides"]:
        is_in_force = parsed(one["start"]) <= at < parsed(one["end"])
        if is_in_force and one["removeUserID"] in found:
            found = found - {one["removeUserID"]} | {one["addUserID"]}
    return found


GRAFANA: dict[str, Any] = {
    "users": [{"id": user, "username": user, "email": mail(user)} for user in USERS],
    "schedules": [
        {
            "id": "S1",
            "name": "Shop",
            "type": "web",
            "time_zone": "UTC",
            "shifts": ["A", "B", "C", "D", "E"],
        }
    ],
    "on_call_shifts": [
        {
            "id": "A",
            "name": "Base",
            "type": "rolling_users",
            "level": 0,
            "time_zone": "UTC",
            "start": "2026-01-05T09:00:00",
            "duration": 7 * 86_400,
            "frequency": "weekly",
            "interval": 1,
            "rolling_users": [["mara"], ["tomas"], ["aiko"]],
            "start_rotation_from_user_index": 1,
        },
        {
            "id": "B",
            "name": "Evenings",
            "type": "rolling_users",
            "level": 1,
            "time_zone": "America/New_York",
            "start": "2026-01-07T18:00:00",
            "duration": 6 * 3_600,
            "frequency": "weekly",
            "interval": 1,
            "week_start": "MO",
            "by_day": ["MO", "WE", "SU"],
            "rolling_users": [["lind"], ["mara"]],
        },
        {
            "id": "C",
            "name": "Early",
            "type": "recurrent_event",
            "level": 2,
            "time_zone": "Europe/Berlin",
            "start": "2026-02-01T04:00:00",
            "until": "2026-04-15T00:00:00",
            "duration": 2 * 3_600,
            "frequency": "daily",
            "interval": 1,
            "users": ["aiko"],
        },
        {
            "id": "D",
            "name": "Holiday",
            "type": "single_event",
            "level": 3,
            "time_zone": "Europe/Berlin",
            "start": "2026-04-03T00:00:00",
            "duration": 86_400,
            "users": ["lind"],
        },
        {
            "id": "E",
            "name": "Pair",
            "type": "rolling_users",
            "level": 4,
            "start": "2026-02-01T04:00:00",
            "duration": 3_600,
            "frequency": "monthly",
            "rolling_users": [["aiko", "lind"]],
        },
    ],
    "escalation_chains": [{"id": "F1", "name": "Night"}],
    "escalation_policies": [
        {
            "id": "E1",
            "escalation_chain_id": "F1",
            "position": 0,
            "type": "notify_on_call_from_schedule",
            "notify_on_call_from_schedule": "S1",
        },
        {"id": "E2", "escalation_chain_id": "F1", "position": 1, "type": "wait", "duration": 300},
        {
            "id": "E3",
            "escalation_chain_id": "F1",
            "position": 2,
            "type": "notify_persons",
            "persons_to_notify": ["mara"],
            "important": True,
        },
    ],
    "routes": [
        {"routing_regex": "us-east", "is_the_last_route": False, "escalation_chain_id": "F1"},
        {"routing_regex": ".*", "is_the_last_route": True, "escalation_chain_id": "F1"},
    ],
}


def grafana_events(until: datetime) -> list[tuple[datetime, datetime, int, str]]:
    """Events by the recurrence rules of iCalendar: local starts, and elapsed durations."""
    found = []
    for shift in GRAFANA["on_call_shifts"]:
        if shift.get("frequency") == "monthly":
            continue
        zone = ZoneInfo(shift["time_zone"])
        start, length = parsed(shift["start"]), timedelta(seconds=shift["duration"])
        if shift["type"] == "single_event":
            starts = [start]
        else:
            names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
            byday = [names.index(day) for day in shift.get("by_day", [])] or None
            frequency = {"hourly": HOURLY, "daily": DAILY, "weekly": WEEKLY}[shift["frequency"]]
            ends = parsed(shift["until"]) if "until" in shift else until.replace(tzinfo=None)
            starts = list(rrule(frequency, dtstart=start, byweekday=byday, wkst=0, until=ends))
        groups = shift.get("rolling_users") or [shift["users"]]
        week = start.date() - timedelta(days=start.weekday())
        for number, begins in enumerate(starts):
            turn = number
            if shift.get("by_day"):
                turn = (begins.date() - week).days // 7
            turn += shift.get("start_rotation_from_user_index", 0)
            at = begins.replace(tzinfo=zone).astimezone(UTC)
            found.append((at, at + length, shift["level"], groups[turn % len(groups)][0]))
    return found


def grafana_model(until: datetime) -> Named:
    events = grafana_events(until)

    def named(at: datetime) -> set[str]:
        here = [event for event in events if event[0] <= at < event[1]]
        level = max((event[2] for event in here), default=0)
        return {event[3] for event in here if event[2] == level}

    return named


TOOLS: dict[str, tuple[dict[str, Any], Callable[[datetime], Named]]] = {
    "pagerduty": (PAGERDUTY, lambda _: pagerduty_names),
    "opsgenie": (OPSGENIE, lambda _: opsgenie_names),
    "goalert": (GOALERT, lambda _: goalert_names),
    "grafana-oncall": (GRAFANA, grafana_model),
}


def imported_names(tool: str, path: Path, document: dict[str, Any] | None = None) -> Named:
    path.write_text(json.dumps(document or TOOLS[tool][0]))
    made = read_on_call(tool, path)
    people = {mail(user): number for number, user in enumerate(USERS)}
    schedules = [roster_of(one, people) for one in made.schedules]

    def named(at: datetime) -> set[str]:
        instant = Instant(from_datetime(at))
        duties = [stretch(roster, overrides, instant) for roster, overrides in schedules]
        return {USERS[duty.channel] for duty in duties if duty.channel is not None}

    return named


def compared(tool: str, start: str, path: Path) -> list[tuple[datetime, set[str], set[str]]]:
    """Returns the hours at which import and model differ."""
    begins = datetime.combine(date.fromisoformat(start), time(), tzinfo=UTC)
    model = TOOLS[tool][1](begins + timedelta(days=DAYS + 1))
    named = imported_names(tool, path)
    hours = [begins + timedelta(hours=hour) for hour in range(24 * DAYS)]
    return [(at, named(at), model(at)) for at in hours if named(at) != model(at)]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("start", STARTS)
def test_an_import_names_the_people_of_the_model(tool: str, start: str, tmp_path: Path) -> None:
    assert compared(tool, start, tmp_path / "export.json") == []


LOST = {
    "pagerduty": [
        "user mara: contact method push_notification_contact_method",
        "escalation policy Night: 2 further loops of all steps",
    ],
    "opsgenie": [
        "schedule Shop: rotation Team has a participant of type team, and is not imported",
        "schedule Shop: became 3 schedules, one for each person on call",
    ],
    "goalert": ["escalation policy Night: 3 repeats of all steps"],
    "grafana-oncall": [
        "schedule Shop: shift Pair pages several people at once, or nobody",
        "escalation chain Night: step",
        "route us-east: templates are no label matchers",
    ],
}
UNUSED = {
    "pagerduty": ["user mara: role is not carried over", "services is not carried over"],
    "opsgenie": ["user mara: timeZone is not carried over", "schedule Shop: enabled is not"],
    "goalert": [],
    "grafana-oncall": ["step E3: important is not carried over"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_report_names_what_is_not_imported(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(TOOLS[tool][0]))
    made = read_on_call(tool, path)
    for text in LOST[tool]:
        if not text.endswith("step"):
            assert text in made.lost
    for text in UNUSED[tool]:
        told = text.replace("user mara", f"user {mail('mara')}") if tool == "opsgenie" else text
        assert any(one.startswith(told) for one in made.unused), (text, made.unused)
    assert [one["name"] for one in made.policies] == ["Night"]
    assert made.policies[0]["steps"][0]["targets"][0] == {"schedule": "Shop"}
    assert {one["email"] for one in made.people} == {mail(user) for user in USERS}


moments = st.integers(0, DAYS * 24 * 4).map(
    lambda quarters: datetime(2026, 2, 1, tzinfo=UTC) + timedelta(minutes=15 * quarters)
)
quarters = st.integers(0, 95).map(lambda quarter: f"{quarter // 4:02d}:{quarter % 4 * 15:02d}:00")
restrictions = st.one_of(
    st.builds(
        lambda start, hours: {
            "type": "daily_restriction",
            "start_time_of_day": start,
            "duration_seconds": hours * 3_600,
        },
        quarters,
        st.integers(1, 24),
    ),
    st.builds(
        lambda day, start, hours: {
            "type": "weekly_restriction",
            "start_day_of_week": day,
            "start_time_of_day": start,
            "duration_seconds": hours * 3_600,
        },
        st.integers(1, 7),
        quarters,
        st.integers(1, 168),
    ),
)


def spelt(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


pagerduty_layers = st.builds(
    lambda start, end, virtual, hours, users, limits: {
        "name": "Layer",
        "start": spelt(start),
        "end": spelt(start + end) if end else None,
        "rotation_virtual_start": spelt(virtual),
        "rotation_turn_length_seconds": hours * 3_600,
        "users": [{"user": {"id": user}} for user in users],
        "restrictions": limits,
    },
    moments,
    st.one_of(st.none(), st.integers(1, 60).map(lambda days: timedelta(days=days))),
    moments,
    st.sampled_from([1, 8, 12, 24, 84, 168]),
    st.lists(st.sampled_from(USERS), min_size=1, max_size=4),
    st.lists(restrictions, max_size=3),
)


@settings(max_examples=effort.examples(100))
@given(
    st.lists(pagerduty_layers, min_size=1, max_size=4),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.lists(moments, min_size=20, max_size=20),
)
def test_any_schedule_of_pagerduty_names_the_person_of_the_model(
    layers: list[dict[str, Any]], zone: str, looked_at: list[datetime]
) -> None:
    schedule = {**PAGERDUTY["schedules"][0], "time_zone": zone, "schedule_layers": layers}
    document = {**PAGERDUTY, "schedules": [schedule]}
    with TemporaryDirectory() as folder:
        named = imported_names("pagerduty", Path(folder) / "export.json", document)
    for at in looked_at:
        # The hours in which clocks change have two meanings of an elapsed length.
        shifts = [
            local(at + timedelta(hours=hour), zone)
            - (at + timedelta(hours=hour)).replace(tzinfo=None)
            for hour in range(-24, 25, 12)
        ]
        if len(set(shifts)) == 1:
            assert named(at) == pagerduty_names(at, document)
