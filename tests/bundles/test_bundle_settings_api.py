"""Bundles of format 3 in the API: objectives, gate policies, maintenance, project settings."""

import random
import threading
from typing import Any

import pytest

from leadline.storage.bundles.transactions import write_maintenance
from leadline.storage.maintenance.rules import Recurrence, fault
from leadline.storage.maintenance.transactions import extend_series
from tests.bundles.test_bundle_on_call_api import HOURS, bundle
from tests.bundles.test_bundles_api import TAKE, WEB, applied, ask, export, release
from tests.support.app.cast import Api
from tests.support.app.serving import call

RULES = [
    {
        "long_window_seconds": 3_600,
        "short_window_seconds": 300,
        "threshold": 14.4,
        "severity": "page",
    }
]
POLICY: dict[str, Any] = {
    "window": "30d",
    "clauses": {
        "budget_exhausted": "block",
        "budget_consumed": "warn",
        "page_burn_firing": "block",
        "ticket_burn_firing": "ignore",
        "service_incident_open": "block",
    },
    "budget_consumed_percent": 75,
    "max_seal_lag_seconds": 900,
}
SERIES: dict[str, Any] = {
    "rrule": "FREQ=DAILY",
    "starts_at": "2026-01-05T02:00:00.000Z",
    "duration_seconds": 3_600,
    "timezone": "Europe/Berlin",
    "reason": "Backup",
}
SETTINGS: dict[str, Any] = {
    "objectives": {"30d": 99.9, "7d": 99.0},
    "gate_policy": POLICY,
    "weekly_report": True,
}


async def changes_of(api: Api, document: dict[str, Any], query: str = "") -> dict[str, list[str]]:
    """Returns the names of the changed settings by uid, in the plan."""
    plan = await ask(api, "plan", document, query=query)
    return {
        one["uid"]: [field["name"] for field in one.get("fields", [])] for one in plan["changes"]
    }


async def series(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await call(
        api, "GET", f"/projects/{api.project}/maintenance-series"
    )
    return found


async def windows(api: Api) -> list[Any]:
    query = "select reason from maintenances where archived_at is null order by starts_at"
    return [reason for (reason,) in await api.rows(query)]


async def test_settings_of_the_project_come_change_and_are_left_to_people(api: Api) -> None:
    document = bundle(project_settings=SETTINGS)
    assert await applied(api, document) == {"project": "create"}
    assert await export(api) == {**document, "monitors": {}}
    path = f"/projects/{api.project}"
    for method, place, body in (
        ("PUT", "sla-target", {"objective": 99.5, "window": "30d"}),
        ("DELETE", "sla-target?window=30d", None),
        ("PUT", "sla-report", {"enabled": False}),
    ):
        answer = await call(api, method, f"{path}/{place}", body, 409)
        assert answer == {"error": "managed_by_file"}
    assert await call(api, "DELETE", f"{path}/gate/policy?expected_revision=1", None, 409) == {
        "error": "managed_by_file"
    }
    changed = bundle(
        project_settings={"objectives": {"30d": 99.5}, "gate_policy": {**POLICY, "window": None}}
    )
    assert await changes_of(api, changed) == {
        "project": ["objectives.30d", "objectives.7d", "gate_policy.window", "weekly_report"]
    }
    assert await applied(api, changed) == {"project": "update"}
    assert await applied(api, bundle(project_settings=None)) == {"project": "orphan"}
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.5, "window": "30d"})
    await call(api, "PUT", f"{path}/sla-report", {"enabled": False})
    # People own them, so that a bundle takes them over on request.
    await release(api)
    said = (await ask(api, "plan", bundle(project_settings=SETTINGS), 409))["error"]
    assert said.startswith("project_settings: people edit it, and objectives.30d, objectives.7d")
    assert await applied(api, bundle(project_settings=SETTINGS), TAKE) == {"project": "update"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objectives": {"30d": 100}}, "objectives.30d: must be above 0 and below 100"),
        ({"objectives": {"31d": 99}}, "objectives: must have only keys of 24h, 30d, 7d, 90d"),
        ({"gate_policy": {**POLICY, "clauses": {}}}, "gate_policy.clauses.budget_exhausted: is"),
        ({"gate_policy": {**POLICY, "schema_version": 1, "window": None}}, "gate_policy.window: "),
        ({"gate_policy": {**POLICY, "max_seal_lag_seconds": 1}}, "gate_policy.max_seal_lag"),
        ({"name": "x"}, ""),
    ],
)
async def test_wrong_settings_are_named(api: Api, settings: dict[str, Any], said: str) -> None:
    answer = await ask(api, "plan", bundle(project_settings=settings), 400)
    assert answer["error"].startswith(f"project_settings.{said}".rstrip("."))


async def test_objectives_of_a_monitor_belong_to_who_states_them(api: Api) -> None:
    await applied(api, bundle(monitors={"web": WEB}))
    rows = await call(api, "GET", f"/projects/{api.project}/monitors")
    path = f"/monitors/{rows[0]['id']}/sla-target"
    await call(api, "PUT", path, {"objective": 99.0, "window": "7d"})
    targets = {"30d": {"objective": 99.9, "burn_alert_enabled": True, "burn_rules": RULES}}
    stated = bundle(monitors={"web": {**WEB, "sla_targets": targets}})
    assert await changes_of(api, stated) == {
        "web": ["sla_targets.30d", "sla_targets.7d", "targets_managed"]
    }
    assert await applied(api, stated) == {"web": "update"}
    assert (await export(api))["monitors"]["web"]["sla_targets"] == targets
    answer = await call(api, "PUT", path, {"objective": 98.0, "window": "30d"}, 409)
    assert answer == {"error": "managed_by_file"}
    assert await changes_of(api, bundle(monitors={"web": WEB})) == {"web": ["targets_managed"]}
    await applied(api, bundle(monitors={"web": WEB}))
    await call(api, "PUT", path, {"objective": 98.0, "window": "30d"})
    short = {**RULES[0], "short_window_seconds": 1}
    wrong = {"30d": {"objective": 99.9, "burn_rules": [short]}}
    said = await ask(api, "plan", bundle(monitors={"web": {**WEB, "sla_targets": wrong}}), 400)
    assert said["error"].startswith(
        "monitors.web.sla_targets.30d.burn_rules[0].short_window_seconds: must be at least"
    )
    second = {**bundle(monitors={"web": {**WEB, "sla_targets": targets}}), "format": 2}
    assert await ask(api, "plan", second, 400) == {
        "error": "monitors.web.sla_targets: needs format 3"
    }


async def test_the_gate_policy_of_a_service_belongs_to_who_states_it(api: Api) -> None:
    named: dict[str, Any] = {"name": "Shop"}
    await applied(api, bundle(services={"shop": named}))
    rows = await call(api, "GET", f"/projects/{api.project}/services")
    path = f"/projects/{api.project}/services/{rows[0]['service']['id']}/gate/policy"
    body = {**POLICY, "schema_version": 1, "unknown_behavior": "warn", "expected_revision": None}
    await call(api, "PUT", path, body)
    stated = bundle(services={"shop": {**named, "gate_policy": POLICY, "support_hours": HOURS}})
    # Each setting that changes has a line, also who edits the hours and the policy.
    assert await changes_of(api, stated) == {
        "shop": [
            "support_hours.timezone",
            "support_hours.windows",
            "gate_policy.schema_version",
            "hours_managed",
            "gate_managed",
        ]
    }
    await applied(api, stated)
    assert (await export(api))["services"]["shop"]["gate_policy"] == POLICY
    answer = await call(api, "PUT", path, {**body, "expected_revision": 2}, 409)
    assert answer == {"error": "managed_by_file"}
    none = bundle(services={"shop": {**named, "gate_policy": None, "support_hours": {}}})
    assert await applied(api, none) == {"shop": "update"}
    exported = await export(api)
    assert exported["services"]["shop"]["gate_policy"] is None
    assert await applied(api, exported) == {"shop": "unchanged"}
    assert await changes_of(api, bundle(services={"shop": named})) == {
        "shop": ["hours_managed", "gate_managed"]
    }
    await applied(api, bundle(services={"shop": named}))
    await call(api, "PUT", path, {**body, "expected_revision": None})


async def test_maintenance_comes_changes_and_ends(api: Api) -> None:
    document = bundle(
        monitors={"web": WEB},
        maintenance={"backup": SERIES, "web": {**SERIES, "monitor": "web", "reason": "Web"}},
    )
    made = await applied(api, document)
    assert made == {"web": "create", "backup": "create"}
    assert len(await windows(api)) == 70
    assert await export(api) == document | {"monitors": (await export(api))["monitors"]}
    uid = {one["reason"]: one["id"] for one in await series(api)}["Backup"]
    answer = await call(api, "DELETE", f"/maintenance-series/{uid}", None, 409)
    assert answer == {"error": "managed_by_file"}
    changed = bundle(
        maintenance={"backup": {**SERIES, "reason": "Backups", "rrule": "FREQ=WEEKLY"}}
    )
    plan = await ask(api, "plan", changed)
    assert {one["uid"]: one.get("fields") for one in plan["changes"]} == {
        "backup": [
            {"name": "rrule", "from": "FREQ=DAILY", "to": "FREQ=WEEKLY"},
            {"name": "reason", "from": "Backup", "to": "Backups"},
        ],
        "web": [{"name": "ended", "from": False, "to": True}],
    }
    await applied(api, changed)
    assert await windows(api) == ["Backups"] * 5
    assert [one["id"] for one in await series(api)] == [uid]
    await release(api)
    await call(api, "DELETE", f"/maintenance-series/{uid}", None, 204)
    assert await windows(api) == []


async def test_a_new_reason_announces_no_cancelled_window_again(api: Api) -> None:
    await applied(api, bundle(maintenance={"backup": SERIES}))
    query = "select uid, starts_at, archived_at from maintenances order by starts_at, id"
    before = await api.rows(query)
    await call(api, "DELETE", f"/maintenance/{before[9][0]}", None, 204)
    cancelled = await api.rows(query)
    renamed = {**SERIES, "reason": "Backups"}
    assert await applied(api, bundle(maintenance={"backup": renamed})) == {"backup": "update"}
    assert await windows(api) == ["Backups"] * (len(before) - 1)
    assert await api.rows(query) == cancelled
    assert [one["reason"] for one in await series(api)] == ["Backups"]


async def test_no_recurrence_is_checked_in_the_event_loop(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[bool] = []

    def watched(recurrence: Recurrence) -> tuple[str, str] | None:
        checked.append(threading.current_thread() is threading.main_thread())
        return fault(recurrence)

    monkeypatch.setattr(extend_series, "fault", watched)
    monkeypatch.setattr(write_maintenance, "fault", watched)
    document = bundle(maintenance={"backup": SERIES})
    await ask(api, "plan", document)
    await applied(api, document)
    body = {**SERIES, "starts_at": "2030-01-05T02:00:00.000Z"}
    await call(api, "POST", f"/projects/{api.project}/maintenance-series", body, 201)
    assert checked
    assert not any(checked)


async def test_a_series_of_people_is_taken_over_by_its_reason(api: Api) -> None:
    body = {**SERIES, "starts_at": "2030-01-05T02:00:00.000Z"}
    made = await call(api, "POST", f"/projects/{api.project}/maintenance-series", body, 201)
    exported = await export(api)
    assert await applied(api, exported) == {"backup": "unchanged"}
    longer = bundle(maintenance={"backup": {**body, "duration_seconds": "2h"}})
    said = (await ask(api, "plan", longer, 409))["error"]
    assert said.startswith("maintenance.backup: people edit it, and duration_seconds would change")
    assert await applied(api, longer, TAKE) == {"backup": "update"}
    assert [one["id"] for one in await series(api)] == [made["id"]]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("rrule", "FREQ=HOURLY", "rrule: FREQ must be one of"),
        ("starts_at", "tomorrow", "starts_at: must be an instant"),
        ("starts_at", "1990-01-05T02:00:00.000Z", "starts_at: must not be more than 10 years ago"),
        ("monitor", "gone", "monitor: names 'gone', which is neither"),
        ("timezone", "Mars", "timezone: is not an IANA time zone"),
        ("duration_seconds", 1, "duration_seconds: must be between"),
        ("title", "x", "title"),
    ],
)
async def test_wrong_maintenance_is_named(api: Api, field: str, value: Any, said: str) -> None:
    document = bundle(maintenance={"backup": {**SERIES, field: value}})
    answer = await ask(api, "plan", document, 400)
    assert answer["error"].startswith(f"maintenance.backup.{said}")


def with_settings(rnd: random.Random, sections: dict[str, Any]) -> dict[str, Any]:
    """Returns the sections with objectives, gate policies, maintenance and settings."""
    for monitor in sections["monitors"].values():
        if rnd.random() < 0.7:
            monitor["sla_targets"] = random_targets(rnd)
    for service in sections["services"].values():
        if rnd.random() < 0.7:
            service["gate_policy"] = rnd.choice([None, random_policy(rnd)])
        service["sla_targets"] = random_targets(rnd)
    places = [{}, *({"monitor": uid} for uid in sections["monitors"])]
    sections["maintenance"] = {
        f"x{n}": random_series(rnd, places) for n in range(rnd.randint(0, 4))
    }
    if rnd.random() < 0.8:
        sections["project_settings"] = {
            "objectives": {
                window: round(rnd.uniform(1, 99.9), 4)
                for window in rnd.sample(["24h", "7d", "30d", "90d"], rnd.randint(1, 4))
            },
            "gate_policy": rnd.choice([None, random_policy(rnd)]),
            "weekly_report": rnd.random() < 0.5,
        }
    return sections


def random_targets(rnd: random.Random) -> dict[str, Any]:
    return {
        window: {
            "objective": round(rnd.uniform(1, 99.9), 4),
            "burn_alert_enabled": rnd.random() < 0.5,
            "burn_rules": RULES[: rnd.randint(0, 1)],
        }
        for window in rnd.sample(["24h", "7d", "30d", "90d"], rnd.randint(0, 3))
    }


def random_policy(rnd: random.Random) -> dict[str, Any]:
    window = rnd.choice([None, "7d", "90d"])
    return {
        "schema_version": 2 if window is None else rnd.choice([1, 2]),
        "window": window,
        "clauses": {name: rnd.choice(["block", "warn", "ignore"]) for name in POLICY["clauses"]},
        "budget_consumed_percent": rnd.randint(1, 100),
        "max_seal_lag_seconds": rnd.randint(600, 86_400),
        "unknown_behavior": rnd.choice(["warn", "block"]),
    }


def random_series(rnd: random.Random, places: list[dict[str, str]]) -> dict[str, Any]:
    starts, rrule = rnd.choice(
        [
            ("2026-01-05T02:00:00.000Z", "FREQ=DAILY"),
            ("2027-03-01T10:30:00.000Z", "FREQ=MONTHLY;BYDAY=1MO"),
            ("2026-06-01T23:59:59.000Z", "FREQ=WEEKLY;INTERVAL=2;COUNT=100"),
        ]
    )
    return {
        **rnd.choice(places),
        "rrule": rrule,
        "starts_at": starts,
        "duration_seconds": rnd.choice([60, 3_600, 604_800]),
        "timezone": rnd.choice(["", "UTC"]),
        "reason": rnd.choice(["", "Backup", "ü … 'x'"]),
    }
