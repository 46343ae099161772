"""Faults of one part of an export lose this part alone, and the report names it."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from leadline.http.importers.on_call import read_on_call
from leadline.http.importers.on_call.document import OnCallImport

# People with the keys of all tools.
PEOPLE = [
    {"id": key, "name": key, "email": f"{key}@x", "username": f"{key}@x"} for key in ("ann", "ben")
]
START = "2026-01-05T09:00:00Z"
LAYER: dict[str, Any] = {
    "name": "Days",
    "users": [{"user": {"id": "ann"}}, {"user": {"id": "ben"}}],
    "rotation_virtual_start": START,
    "rotation_turn_length_seconds": 604_800,
    "start": START,
}
ROTATION: dict[str, Any] = {
    "id": "R1",
    "name": "Days",
    "type": "weekly",
    "startDate": START,
    "participants": [{"type": "user", "username": "ann@x"}],
}
SHIFT: dict[str, Any] = {
    "id": "1",
    "name": "Days",
    "type": "rolling_users",
    "time_zone": "America/New_York",
    "duration": 28_800,
    "rolling_users": [["ann"], ["ben"]],
}
# Spans of overrides in two weeks.
FIRST = ("2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z")
SECOND = ("2026-02-09T00:00:00Z", "2026-02-10T00:00:00Z")


def converted(tool: str, document: dict[str, Any]) -> OnCallImport:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "export.json"
        path.write_text(json.dumps({"users": PEOPLE, **document}))
        return read_on_call(tool, path)


def pagerduty(**given: Any) -> OnCallImport:
    schedule = {"id": "S", "name": "Shop", "time_zone": "Europe/Berlin", "schedule_layers": [LAYER]}
    return converted("pagerduty", {"schedules": [{**schedule, **given}]})


def pagerduty_overrides(people: list[str], spans: list[tuple[str, str]]) -> OnCallImport:
    return pagerduty(
        overrides=[
            {"user": {"id": person}, "start": start, "end": end}
            for person, (start, end) in zip(people, spans, strict=True)
        ]
    )


def opsgenie_overrides(people: list[str], spans: list[tuple[str, str]]) -> OnCallImport:
    # Opsgenie names a deleted user by the id alone.
    users = [
        {"username": f"{key}@x"} if key != "gone" else {"type": "user", "id": key} for key in people
    ]
    overrides = [
        {"user": user, "startDate": start, "endDate": end}
        for user, (start, end) in zip(users, spans, strict=True)
    ]
    return opsgenie(overrides)


def opsgenie(overrides: list[dict[str, Any]]) -> OnCallImport:
    schedule = {"name": "Shop", "timezone": "UTC", "rotations": [ROTATION], "overrides": overrides}
    return converted("opsgenie", {"schedules": [schedule]})


def goalert_overrides(people: list[str], spans: list[tuple[str, str]]) -> OnCallImport:
    rule = {"start": "00:00", "end": "00:00"}
    schedule = {
        "id": "S",
        "name": "Shop",
        "timeZone": "UTC",
        "targets": [{"target": {"id": "ann", "type": "user"}, "rules": [rule]}],
    }
    overrides = [
        {
            "target": {"id": "S"},
            "addUserID": person,
            "removeUserID": "ann",
            "start": start,
            "end": end,
        }
        for person, (start, end) in zip(people, spans, strict=True)
    ]
    return converted("goalert", {"schedules": [schedule], "userOverrides": overrides})


@pytest.mark.parametrize("tool", [pagerduty_overrides, opsgenie_overrides, goalert_overrides])
def test_an_override_of_a_deleted_person_is_lost_alone(tool: Any) -> None:
    made = tool(["gone", "ben"], [FIRST, SECOND])
    assert made.lost == ["schedule Shop: override 1 names a person who is not in the file: gone"]
    (schedule,) = made.schedules
    (kept,) = schedule["overrides"]
    assert (kept["person"], kept["starts_at"][:10]) == ("ben@x", SECOND[0][:10])
    faulty = tool(["ben", "ben"], [("Monday", "Tuesday"), SECOND])
    assert faulty.schedules == made.schedules
    (lost,) = faulty.lost
    assert lost.startswith("schedule Shop: override 1 has a structure")


def test_an_override_that_ends_before_it_starts_is_reported() -> None:
    made = pagerduty_overrides(["ben", "ben"], [(FIRST[1], FIRST[0]), SECOND])
    (lost,) = made.lost
    assert lost.startswith(f"schedule Shop: an override from {FIRST[1]}: ends_at ")
    assert len(made.schedules[0]["overrides"]) == 1


@pytest.mark.parametrize(("rotation", "is_kept"), [({"id": "R1"}, True), ({"id": "R9"}, False)])
def test_an_override_of_rotations_by_id_is_kept_or_reported(
    rotation: dict[str, str], is_kept: bool
) -> None:
    user = {"username": "ben@x"}
    span = {"startDate": FIRST[0], "endDate": FIRST[1]}
    made = opsgenie([{"user": user, **span, "rotations": [rotation]}])
    assert len(made.schedules[0]["overrides"]) == is_kept
    assert ("schedule Shop: an override of a rotation that is not imported" in made.lost) != is_kept


@pytest.mark.parametrize(
    ("unit", "after"), [(None, 120), ("minutes", 120), ("hours", 7_200), ("days", 172_800)]
)
def test_a_delay_of_opsgenie_has_a_unit(unit: str | None, after: int) -> None:
    (policy,) = escalation(unit).policies
    assert [step["after_seconds"] for step in policy["steps"]] == [0, after]


def test_a_delay_with_an_unknown_unit_is_reported() -> None:
    made = escalation("fortnights")
    (policy,) = made.policies
    assert [step["after_seconds"] for step in policy["steps"]] == [0]
    assert made.lost == ["escalation Night: a rule with a delay in fortnights"]


def escalation(unit: str | None) -> OnCallImport:
    recipient = {"type": "user", "username": "ann@x"}
    rules = [
        {"delay": {"timeAmount": 0}, "recipient": recipient},
        {"delay": {"timeAmount": 2, "timeUnit": unit}, "recipient": recipient},
    ]
    return converted("opsgenie", {"escalations": [{"name": "Night", "rules": rules}]})


def grafana(**given: Any) -> OnCallImport:
    schedule = {"id": "S", "name": "Shop", "type": "web", "shifts": ["1"]}
    return converted(
        "grafana-oncall", {"schedules": [schedule], "on_call_shifts": [{**SHIFT, **given}]}
    )


@pytest.mark.parametrize("frequency", ["daily", "weekly"])
def test_a_start_with_an_offset_means_the_local_time_of_its_zone(frequency: str) -> None:
    # 02:00 UTC on Tuesday is 21:00 on Monday in New York.
    with_offset = grafana(frequency=frequency, start="2026-01-06T02:00:00Z")
    local = grafana(frequency=frequency, start="2026-01-05T21:00:00")
    assert with_offset.schedules == local.schedules
    window = with_offset.schedules[0]["restrictions"][0]
    assert (window["from"], window["weekdays"][0]) == ("21:00", "mon")
    assert with_offset.lost == []


def test_weekdays_that_the_offset_moves_are_reported() -> None:
    weekly: dict[str, Any] = {"frequency": "weekly", "by_day": ["TU"], "week_start": "MO"}
    made = grafana(**weekly, start="2026-01-06T02:00:00Z")
    assert made.schedules == []
    assert any("starts on another one in its time zone" in lost for lost in made.lost)
    same = grafana(**weekly, start="2026-01-06T15:00:00Z")
    assert same.schedules == grafana(**weekly, start="2026-01-06T10:00:00").schedules


def test_a_shift_of_a_deleted_person_is_lost_alone() -> None:
    made = grafana(frequency="daily", start="2026-01-05T21:00:00", rolling_users=[["gone"]])
    assert "schedule Shop: shift Days names a person who is not in the file" in made.lost


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schedule_layers": [LAYER] * 21}, "has 21 layers, at most 20 are possible"),
        ({"time_zone": "Eastern"}, "layer Days: timezone Eastern is not an IANA time zone"),
        (
            {"schedule_layers": [{**LAYER, "users": LAYER["users"] * 51}]},
            "layer Days: participants must have 1 to 100 entries",
        ),
        (
            {
                "schedule_layers": [
                    {
                        **LAYER,
                        "restrictions": [
                            {
                                "type": "daily_restriction",
                                "start_time_of_day": "09:00:00",
                                "duration_seconds": 3_600,
                            }
                        ]
                        * 51,
                    }
                ]
            },
            "layer Days: restrictions must have at most 50 entries",
        ),
    ],
    ids=["layers", "zone", "participants", "windows"],
)
def test_a_schedule_beyond_a_limit_is_reported_by_the_import(
    given: dict[str, Any], said: str
) -> None:
    made = pagerduty(**given)
    assert made.schedules == []
    assert made.lost == [f"schedule Shop: is not imported: {said}"]


def test_a_policy_beyond_a_limit_is_reported_by_the_import() -> None:
    target = [{"id": "ann", "type": "user_reference"}]
    rule = {"escalation_delay_in_minutes": 8 * 1_440, "targets": target}
    policy = {"id": "P", "name": "Night", "escalation_rules": [rule, rule]}
    made = converted("pagerduty", {"escalation_policies": [policy]})
    assert made.policies == []
    said = "steps[1].after_seconds must be 0 to 604800 seconds"
    assert made.lost == [f"escalation policy Night: is not imported: {said}"]
