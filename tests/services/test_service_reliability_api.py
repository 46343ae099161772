"""The figures of a service over the HTTP API: exact values, and a reason for each figure that is
withheld.
"""

from typing import Any

import pytest

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_text
from leadline.storage.core.sli import SliCondition
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.services.rules.service_health import (
    MemberTimeline,
    MissingData,
    Policies,
    state_line,
)
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import (
    DOWN,
    UNKNOWN,
    UP,
    call,
    declared,
    document,
    new,
    refused,
    sealed,
    uid_of,
)

NOW = to_text(FROZEN_NOW)


async def seen(api: Api, row: MonitorRow, *, up: bool) -> None:
    """Stores a current result of a monitor."""
    given = {"org": row.org, "monitor": row.id}
    async with api.pool.transaction("result") as tx:
        await tx.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up)"
            " values (%(org)s, %(monitor)s, at(%(now)s), 1, %(up)s)",
            up=up,
            now=tx.now,
            **given,
        )
        await tx.execute(
            "update monitor_states set status = %(status)s"
            " where org = %(org)s and monitor = %(monitor)s",
            status="up" if up else "down",
            **given,
        )


async def report(api: Api, path: str, window: str | None = None) -> Any:
    query = None if window is None else {"window": window}
    return await call(api, "GET", f"{path}/reliability", query=query, who="viewer")


async def test_figures_without_declaration_or_sealed_time_are_withheld(api: Api) -> None:
    path = await new(api, "checkout")
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.9})
    said = await report(api, path)
    assert (said["status"], said["reason"]) == ("unavailable", "no_sli")
    assert said["sealed_through"] is None
    assert said["window"] == "30d"
    assert said["objective"] == 99.9
    for figure in ("availability", "budget"):
        assert figure not in said
    monitor = (await api.new_monitor()).uid
    await call(api, "PUT", f"{path}/declaration", document(monitor))
    said = await report(api, path)
    assert (said["status"], said["reason"]) == ("unavailable", "nothing_sealed")
    assert said["sealed_through"] is None
    assert [(b["window"], b["status"]) for b in said["burn"]] == [
        (window, "unavailable") for window in ("5m", "30m", "1h", "6h")
    ]
    assert all("rate" not in burn for burn in said["burn"])


async def test_a_window_has_its_figures_and_segments(api: Api) -> None:
    path = await declared(api)
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99, "window": "24h"})
    start = await sealed(api, path, (1_440 - 36, UP), (36, DOWN))
    said = await report(api, path, "24h")
    whole = {"good_us": 1_404 * MINUTE, "bad_us": 36 * MINUTE, "unknown_us": 0, "excluded_us": 0}
    health = {"healthy_us": 1_404 * MINUTE, "degraded_us": 0, "down_us": 36 * MINUTE}
    durations = {**whole, **health, "health_unknown_us": 0}
    (segment,) = said.pop("segments")
    burn = said.pop("burn")
    updated_at = said.pop("objective_updated_at")
    budget = said.pop("budget")
    assert said == {
        "service_id": uid_of(path),
        "window": "24h",
        "as_of": NOW,
        "sealed_through": NOW,
        "from": to_text(start),
        "to": NOW,
        "status": "ok",
        "storage_continuity": True,
        "expected_buckets": 1_440,
        "sealed_buckets": 1_440,
        "coverage": 1.0,
        "durations": durations,
        "availability": 97.5,
        "objective": 99,
        "repairing": [],
    }
    assert budget == {
        "objective": 99.0,
        "objective_updated_at": updated_at,
        "allowed_downtime_ratio": 0.01,
        "actual_downtime_ratio": 0.025,
        "remaining_ratio": -0.015,
        "burned_percent": 250.0,
        "met": False,
    }
    assert {name: segment[name] for name in ("revision", "epoch_seq", "buckets")} == {
        "revision": 1,
        "epoch_seq": 1,
        "buckets": 1_440,
    }
    assert (segment["durations"], segment["availability"]) == (durations, 97.5)
    rates = {each["window"]: each["rate"] for each in burn}
    assert rates == {"5m": 100.0, "30m": 100.0, "1h": 60.0, "6h": 10.0}


async def test_burn_windows_follow_the_burn_rules(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (600, UP))
    assert "burn" not in await report(api, path)
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99})
    rule = {"long_window_seconds": 86_400, "short_window_seconds": 600, "threshold": 1}
    body = {"burn_alert_enabled": False, "burn_rules": [{**rule, "severity": "page"}]}
    await call(api, "PUT", f"{path}/sla-target/burn-alerting", body)
    burn = (await report(api, path))["burn"]
    assert [each["window"] for each in burn] == ["10m", "1d"]
    assert [each["status"] for each in burn] == ["ok", "insufficient_history"]
    assert "burn" not in await report(api, path, "7d")


@pytest.mark.parametrize("odd", [0, 1, 29, 30, 31, 59])
async def test_a_burn_window_uses_whole_minutes(api: Api, odd: int) -> None:
    path = await declared(api)
    await sealed(api, path, (54, UP), (1, DOWN), (5, UP))
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99})
    rule = {"short_window_seconds": 300 + odd, "threshold": 1, "severity": "page"}
    rules = [{**rule, "long_window_seconds": 360 + odd}]
    body = {"burn_alert_enabled": True, "burn_rules": rules}
    await call(api, "PUT", f"{path}/sla-target/burn-alerting", body)
    burn = (await report(api, path))["burn"]
    assert [(b["status"], b["sealed_buckets"]) for b in burn] == [("ok", 5), ("ok", 6)]
    assert [b["rate"] for b in burn] == [0, pytest.approx(100 / 6)]


async def test_a_window_longer_than_the_history_is_marked(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (600, UP))
    said = await report(api, path)
    assert said["status"] == "insufficient_history"
    assert said["reason"] == "window_precedes_materialization_era"
    assert said["availability"] == 100
    assert (said["expected_buckets"], said["sealed_buckets"]) == (43_200, 600)


async def test_low_coverage_gives_availability_without_a_budget(api: Api) -> None:
    path = await declared(api)
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99, "window": "24h"})
    await sealed(api, path, (1_000, UNKNOWN), (440, UP))
    said = await report(api, path, "24h")
    assert (said["status"], said["reason"]) == (
        "insufficient_sealed_coverage",
        "decidable_coverage_below_min",
    )
    assert said["availability"] == 100
    assert said["coverage"] == pytest.approx(440 / 1_440)
    assert "budget" not in said


async def test_unmeasured_time_has_no_availability(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (1_440, UNKNOWN))
    said = await report(api, path, "24h")
    assert "availability" not in said
    assert said["aggregate_withheld"] == "nothing_measured"
    assert "availability" not in said["segments"][0]


async def test_a_window_is_one_of_four(api: Api) -> None:
    path = await new(api, "checkout")
    answer = await api.ask("viewer", "GET", f"/api/v1{path}/reliability", query={"window": "1h"})
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith("window: ")


async def test_a_series_has_each_hour_or_day(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (1_440, UP), (60, DOWN), (60, UP))
    query = {"from": to_text(Instant(FROZEN_NOW - 3 * HOUR)), "to": NOW, "step": "hour"}
    said = await call(api, "GET", f"{path}/reliability/series", query=query, who="viewer")
    points = said.pop("points")
    assert said == query
    assert [(p["start"], p["buckets"], p["durations"]["bad_us"]) for p in points] == [
        (to_text(Instant(FROZEN_NOW - hours * HOUR)), 60, bad)
        for hours, bad in ((3, 0), (2, HOUR), (1, 0))
    ]
    assert not any(point["provisional"] for point in points)
    query = {"from": to_text(Instant(FROZEN_NOW - 2 * DAY)), "to": NOW, "step": "day"}
    points = (await call(api, "GET", f"{path}/reliability/series", query=query))["points"]
    assert [p["buckets"] for p in points] == [120, 1_440]
    assert {p["epoch_id"] for p in points} == {(await call(api, "GET", path))["epoch"]["id"]}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"from": None}, "range_required"),
        ({"to": None}, "range_required"),
        ({"step": None}, "range_required"),
        ({"step": "minute"}, "step: "),
        ({"from": "x"}, "from: must be an RFC 3339 instant"),
        ({"to": "2026-01-01T00:00:00Z"}, "range_invalid"),
        ({"from": "2025-10-03T23:59:59Z"}, "range_too_wide"),
        ({"from": "2025-10-04T00:00:00Z"}, None),
    ],
)
async def test_a_series_needs_a_valid_range(
    api: Api, given: dict[str, str | None], error: str | None
) -> None:
    path = await new(api, "checkout")
    query = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "step": "hour", **given}
    asked = {name: value for name, value in query.items() if value is not None}
    where = f"/api/v1{path}/reliability/series"
    answer = await api.ask("viewer", "GET", where, query=asked)
    found = await answer.get_json()
    if error is None:
        assert (answer.status_code, found["points"]) == (200, [])
    else:
        assert answer.status_code == 400
        assert found["error"].startswith(error)


async def test_health_follows_the_current_member_states(api: Api) -> None:
    path = await new(api, "checkout")
    up, down, context = [await api.new_monitor() for _ in range(3)]
    body = document(up.uid, down.uid, context.uid)
    body["sli"] = [str(up.uid), str(down.uid)]
    body["policies"] = {"aggregation": {"mode": "any"}}
    await call(api, "PUT", f"{path}/declaration", body)
    # A declaration governs from the next minute.
    said = await call(api, "GET", f"{path}/health", who="viewer")
    assert said == {"unstable": False, "as_of": NOW, "sli": "unknown", "diagnostics": "unknown"}
    async with api.pool.transaction("governs") as tx:
        await tx.execute("update service_revisions set governs_from = at(%(now)s)", now=tx.now)
    for monitor, is_up in ((up, True), (down, False), (context, False)):
        await seen(api, monitor, up=is_up)
    said = await call(api, "GET", f"{path}/health")
    assert (said["sli"], said["diagnostics"]) == ("degraded", "failing")
    assert sorted(said["failing_monitors"]) == sorted([str(down.uid), str(context.uid)])
    other = await new(api, "shop", depends_on=[uid_of(path)])
    (edge,) = (await call(api, "GET", f"{other}/dependencies"))["depends_on"]
    assert edge["health"] == said


async def test_figures_need_access_to_the_project(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (600, UP))
    for who in ("stranger", "neighbour", "foreign_token"):
        for read in ("reliability", "health", "alerting", "dependencies"):
            answer = await api.ask(who, "GET", f"/api/v1{path}/{read}")
            assert answer.status_code == 404
    assert await refused(api, "DELETE", f"{path}x", None, 404) == "not_found"


@pytest.mark.parametrize("missing", list(MissingData))
@pytest.mark.parametrize(
    ("begun_us", "enabled", "maintained"),
    [
        (SECOND, True, False),
        (SECOND, False, False),
        (SECOND, True, True),
        (0, True, False),
        (0, False, False),
        (0, True, True),
    ],
)
async def test_present_health_agrees_with_the_measured_rule_before_the_first_term(
    api: Api, missing: MissingData, begun_us: int, enabled: bool, maintained: bool
) -> None:
    """A member without a result, beside one that is up: before, in a pause, in maintenance."""
    path = await new(api, "checkout")
    up, fresh = [await api.new_monitor(enabled=how) for how in (True, enabled)]
    body = document(up.uid, fresh.uid, policies={"missing_data": missing})
    await call(api, "PUT", f"{path}/declaration", body)
    begun = Instant(FROZEN_NOW + begun_us)
    async with api.pool.transaction("governs") as tx:
        await tx.execute("update service_revisions set governs_from = at(%(now)s)", now=tx.now)
        for monitor, at in ((up.id, FROZEN_NOW - DAY), (fresh.id, begun)):
            await tx.execute(
                "update monitor_terms set from_at = at(%(at)s) where monitor = %(m)s",
                at=at,
                m=monitor,
            )
    await seen(api, up, up=True)
    if maintained:
        span = {"starts_at": NOW, "ends_at": to_text(Instant(FROZEN_NOW + HOUR))}
        where = f"/projects/{api.project}/maintenance"
        await call(api, "POST", where, {**span, "monitor_id": str(fresh.uid)}, status=201)
    within = TimeSpan(FROZEN_NOW, Instant(FROZEN_NOW + 1))
    condition = SliCondition.EXCLUDED if maintained else SliCondition.UNKNOWN
    members = [
        MemberTimeline("core", [(within, SliCondition.GOOD)]),
        MemberTimeline("core", [(within, condition)], () if enabled else (within,), begun),
    ]
    ((_, measured),) = state_line(Policies(missing_data=missing), members, within)
    said = await call(api, "GET", f"{path}/health")
    assert measured.health is not None
    assert said["sli"] == measured.health.value, said
