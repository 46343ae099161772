"""Runbooks in the API: of services, monitors and burn rules, in incidents, and their refusals."""

from typing import Any

import pytest

from tests.support.app.cast import Api

URL = "https://wiki.example/runbooks/shop"


async def call(api: Api, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await api.ask("editor", method, f"/api/v1{path}", body)
    assert answer.status_code == status, await answer.get_data()
    return await answer.get_json()


async def test_a_service_has_a_runbook_and_its_incidents_name_it(api: Api) -> None:
    services = f"/projects/{api.project}/services"
    made = await call(api, "POST", services, {"slug": "shop", "runbook_url": URL}, 201)
    assert made["runbook_url"] == URL
    path = f"{services}/{made['id']}"
    incident = await call(
        api,
        "POST",
        f"/projects/{api.project}/incidents",
        {"title": "Slow", "service_id": made["id"], "impact": "minor"},
        201,
    )
    assert incident["runbook_url"] == URL
    assert await call(api, "PUT", f"{path}/runbook", {"runbook_url": ""}) == {"runbook_url": ""}
    assert "runbook_url" not in (await call(api, "GET", path))["service"]
    shown = await call(api, "GET", f"/incidents/{incident['id']}")
    assert "runbook_url" not in shown


async def test_a_monitor_has_a_runbook(api: Api) -> None:
    row = await api.new_monitor()
    path = f"/monitors/{row.uid}"
    assert (await call(api, "PATCH", path, {"runbook_url": URL}))["runbook_url"] == URL
    assert (await call(api, "GET", path))["runbook_url"] == URL


async def test_burn_rules_have_runbooks(api: Api) -> None:
    service = await api.new_service()
    rule = {
        "long_window_seconds": 3600,
        "short_window_seconds": 300,
        "threshold": 10.0,
        "severity": "page",
        "runbook_url": URL,
    }
    path = f"/projects/{api.project}/services/{service}"
    await call(api, "PUT", f"{path}/sla-target", {"window": "30d", "objective": 99.9})
    body = {"window": "30d", "burn_alert_enabled": True, "burn_rules": [rule]}
    stored = await call(api, "PUT", f"{path}/sla-target/burn-alerting", body)
    assert stored["burn_rules"] == [rule]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "wiki", "https://a:b@wiki.example/"])
async def test_other_urls_are_refused_with_the_field(api: Api, url: str) -> None:
    service = await api.new_service()
    path = f"/projects/{api.project}/services/{service}/runbook"
    refused = await call(api, "PUT", path, {"runbook_url": url}, 400)
    assert refused["error"].startswith("runbook_url: ")
    monitor = await api.new_monitor()
    refused = await call(api, "PATCH", f"/monitors/{monitor.uid}", {"runbook_url": url}, 400)
    assert refused["error"].startswith("runbook_url: ")
