"""Availability, objectives and error budgets in the API, and the reasons of withheld figures."""

from typing import Any

import pytest

from leadline.storage.core.instant import DAY, HOUR, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

TARGET = "/api/v1/projects/{project}/sla-target"
_PUT_DAY = """
insert into monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total)
values (%(org)s, %(monitor)s, at(%(day)s), %(good)s, %(bad)s, %(unknown)s, 0, 90, 100)
"""


async def request(api: Api, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    given = {} if body is None else {"json": body}
    answer = await api.ask("editor", method, path.format(project=api.project), **given)
    return answer.status_code, await answer.get_json()


async def test_a_monitor_without_sealed_time_has_no_figure_and_a_reason(api: Api) -> None:
    monitor = await api.new_monitor()
    status, told = await request(api, "GET", f"/api/v1/monitors/{monitor.uid}/sla")
    assert status == 200
    assert (told["monitor_id"], told["status"]) == (str(monitor.uid), "pending")
    assert [w["window"] for w in told["windows"]] == ["24h", "7d", "30d", "90d"]
    for window in told["windows"]:
        assert "uptime_percent" not in window
        assert window["withheld_reason"] == "nothing_sealed"
        assert (window["burn_alert"], window["burn_firing"], window["burn_rules"]) == (
            False,
            False,
            [],
        )
        assert "error_budget" not in window
        assert window["data_from"] == to_text(FROZEN_NOW)


async def test_a_monitor_is_aimed_at_with_the_usual_rules_or_its_own(api: Api) -> None:
    monitor = await api.new_monitor()
    path = f"/api/v1/monitors/{monitor.uid}/sla-target"
    status, made = await request(api, "PUT", path, {"objective": 99.95})
    assert (status, made["objective"], made["window"]) == (200, 99.95, "30d")
    assert (made["burn_alert_enabled"], made["burn_rules"]) == (False, [])
    _, made = await request(api, "PUT", path, {"objective": 99.95, "burn_alert": True})
    assert [rule["threshold"] for rule in made["burn_rules"]] == [14.4, 6]
    own = {
        "long_window_seconds": 120,
        "short_window_seconds": 60,
        "threshold": 2,
        "severity": "page",
    }
    body = {"objective": 99, "window": "7d", "burn_alert": True, "burn_rules": [own]}
    _, made = await request(api, "PUT", path, body)
    assert made["burn_rules"] == [{**own, "firing": False}]
    _, told = await request(api, "GET", f"/api/v1/monitors/{monitor.uid}/sla")
    assert [w.get("objective") for w in told["windows"]] == [None, 99, 99.95, None]
    assert told["windows"][1]["burn_rules"] == made["burn_rules"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"objective": 100}, "objective"),
        ({"objective": 99.99999}, "objective"),
        ({"objective": 0}, "objective"),
        ({}, "objective: is required"),
        ({"objective": 99, "window": "1h"}, "window"),
        (
            {
                "objective": 99,
                "burn_rules": [
                    {
                        "long_window_seconds": 600,
                        "short_window_seconds": 59,
                        "threshold": 1,
                        "severity": "page",
                    }
                ],
            },
            "burn_rules[0].short_window_seconds: must be at least 60 seconds",
        ),
    ],
)
async def test_an_invalid_objective_is_refused_by_its_field(
    api: Api, body: dict[str, Any], error: str
) -> None:
    monitor = await api.new_monitor()
    status, told = await request(api, "PUT", f"/api/v1/monitors/{monitor.uid}/sla-target", body)
    assert status == 400
    assert told["error"].startswith(error)


async def test_a_project_is_aimed_at_read_and_no_more(api: Api) -> None:
    assert await request(api, "GET", TARGET) == (404, {"error": "not_found"})
    status, made = await request(api, "PUT", TARGET, {"objective": 99.5})
    assert (status, made["window"], made["project_id"]) == (200, "30d", str(api.project))
    assert await request(api, "GET", TARGET) == (200, made)
    await request(api, "PUT", f"{TARGET}?window=7d", {"objective": 98})
    assert (await request(api, "GET", f"{TARGET}?window=7d"))[1]["objective"] == 98
    status, told = await request(api, "PUT", TARGET, {"objective": 99, "burn_alert": True})
    assert (status, told) == (400, {"error": "invalid JSON body"})
    assert (await request(api, "DELETE", TARGET))[0] == 204
    assert (await request(api, "DELETE", TARGET))[0] == 404


async def test_a_project_sums_the_time_of_its_monitors_and_leaves_composites_out(api: Api) -> None:
    one, other = await api.new_monitor(), await api.new_monitor()
    children = {"children": [str(one.uid), str(other.uid)]}
    both = await api.new_monitor(type="composite", target="", config=children)
    today = FROZEN_NOW - FROZEN_NOW % DAY
    async with api.pool.transaction("days") as tx:
        for monitor, bad in ((one, 0), (other, 6 * HOUR), (both, 12 * HOUR)):
            await tx.execute(
                _PUT_DAY,
                org=monitor.org,
                monitor=monitor.id,
                day=Instant(today - DAY),
                good=DAY - bad - 6 * HOUR,
                bad=bad,
                unknown=6 * HOUR,
            )
    _, told = await request(api, "GET", "/api/v1/projects/{project}/sla")
    for window in told["windows"]:
        assert window["uptime_percent"] == pytest.approx(100 * 30 / 36)
        assert window["coverage"] == pytest.approx(0.75)
        assert (window["up"], window["total"]) == (180, 200)
    _, days = await request(api, "GET", "/api/v1/projects/{project}/availability?days=3")
    assert [day.get("uptime_percent") for day in days] == [None, pytest.approx(100 * 30 / 36), None]
    await request(api, "PUT", TARGET, {"objective": 99})
    _, told = await request(api, "GET", "/api/v1/projects/{project}/sla")
    # Too little of it was measured for a budget to mean anything.
    assert "error_budget" not in told["windows"][2]
    assert told["windows"][2]["withheld_reason"] == "decidable_coverage_below_min"
    assert told["windows"][2]["uptime_percent"] > 0


async def test_a_budget_has_its_allowance_and_its_burned_part(api: Api) -> None:
    monitor = await api.new_monitor()
    today = FROZEN_NOW - FROZEN_NOW % DAY
    async with api.pool.transaction("days") as tx:
        for number in range(1, 11):
            await tx.execute(
                _PUT_DAY,
                org=monitor.org,
                monitor=monitor.id,
                day=Instant(today - number * DAY),
                good=DAY - HOUR,
                bad=HOUR,
                unknown=0,
            )
    await request(api, "PUT", TARGET, {"objective": 90})
    _, told = await request(api, "GET", "/api/v1/projects/{project}/sla")
    burned = 1 / 24
    assert told["windows"][2]["error_budget"] == {
        "objective": 90,
        "allowed_downtime_ratio": pytest.approx(0.1),
        "actual_downtime_ratio": pytest.approx(burned),
        "remaining_ratio": pytest.approx(0.1 - burned),
        "burned_percent": pytest.approx(100 * burned / 0.1),
        "met": True,
    }


async def test_the_weekly_report_is_asked_for_and_not(api: Api) -> None:
    for enabled in (True, False):
        path = "/api/v1/projects/{project}/sla-report"
        assert await request(api, "PUT", path, {"enabled": enabled}) == (
            200,
            {"sla_report_weekly": enabled},
        )
        _, told = await request(api, "GET", "/api/v1/projects/{project}/sla")
        assert told["sla_report_weekly"] is enabled
