"""Limits of organizations in the API and in the console: they are set, and they refuse."""

from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.http.ui.formatting import number
from tests.bundles.test_bundle_background_api import begin, operation, runner
from tests.bundles.test_bundles_api import WEB, ask, bundle
from tests.support.app.cast import Api
from tests.support.app.serving import call

PATH = "/settings/organization-limits"
BUILT_IN = {"monitors": 50_000, "shortest_interval_seconds": 5, "runs_per_minute": 30_000}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TOO_FAST = "must be at least 60 seconds, the shortest interval of the organization"


async def set_limits(api: Api, **limits: int) -> Any:
    return await call(api, "PUT", PATH, limits, who="global_admin")


async def new(api: Api, status: int = 201, project: str = "", **given: Any) -> Any:
    body = {"name": "Till", "type": "http", "target": "http://127.0.0.1/", **given}
    path = f"/projects/{project or api.project}/monitors"
    return await call(api, "POST", path, body, status, who="org_admin")


async def typed(api: Api, path: str, fields: dict[str, str]) -> tuple[int, str]:
    data = urlencode(fields).encode()
    answer = await api.ask("project_admin", "POST", path, data=data, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def test_limits_are_read_and_set(api: Api) -> None:
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, **BUILT_IN}
    chosen = {"monitors": 10, "shortest_interval_seconds": 60, "runs_per_minute": 20}
    assert await set_limits(api, **chosen) == {"configured": True, **chosen}
    found = await call(api, "GET", PATH, who="global_admin")
    assert await call(api, "PUT", PATH, found, who="global_admin") == found
    entries = await call(api, "GET", "/admin/audit", who="global_admin")
    assert [one["action"] for one in entries] == ["settings.organization_limits"]
    assert await set_limits(api) == {"configured": True, **BUILT_IN}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("monitors", 0),
        ("monitors", 1_000_001),
        ("shortest_interval_seconds", 4),
        ("shortest_interval_seconds", 86_401),
        ("runs_per_minute", 0),
        ("runs_per_minute", 10**30),
        ("runs_per_minute", "many"),
    ],
)
async def test_a_wrong_limit_is_refused_by_name(api: Api, field: str, value: object) -> None:
    own = f"/organizations/{api.orgs['acme'][1]}/limits"
    for path in (PATH, own):
        answer = await call(api, "PUT", path, {field: value}, 400, who="global_admin")
        assert answer["error"].startswith(f"{field}: ")
    assert await call(api, "GET", PATH, who="global_admin") == {"configured": False, **BUILT_IN}


async def test_an_organization_has_own_limits_and_sees_its_use(api: Api) -> None:
    await new(api, interval_seconds=45)
    await new(api, name="Mill", enabled=False)
    path = f"/organizations/{api.orgs['acme'][1]}/limits"
    assert await call(api, "GET", path, who="viewer") == {
        **BUILT_IN,
        "own": {},
        "used_monitors": 2,
        "used_runs_per_minute": 1.34,
    }
    own = {"monitors": 2, "runs_per_minute": 9}
    found = await call(api, "PUT", path, own, who="global_admin")
    assert found == await call(api, "GET", path, who="viewer")
    assert found["own"] == own
    assert (found["monitors"], found["shortest_interval_seconds"]) == (2, 5)
    refused = await new(api, 400, name="Third")
    assert refused["error"] == "monitors: would be 3 in the organization, whose limit is 2 (now 2)"
    entries = await call(api, "GET", f"/organizations/{api.orgs['acme'][1]}/audit", who="org_admin")
    assert entries[0]["action"] == "organization.limits"
    assert "monitors=2 shortest_interval_seconds=default runs_per_minute=9" in entries[0]["target"]
    assert (await call(api, "PUT", path, {}, who="global_admin"))["own"] == {}
    await new(api, name="Third")


async def test_another_organization_is_not_limited(api: Api) -> None:
    path = f"/organizations/{api.orgs['acme'][1]}/limits"
    await call(api, "PUT", path, {"monitors": 1}, who="global_admin")
    await new(api)
    assert (await new(api, 400, name="Second"))["error"].startswith("monitors: ")
    other = str(api.projects["other/shop"][1])
    body = {"name": "Till", "type": "push"}
    for name in ("a", "b"):
        given = {**body, "name": name}
        await call(api, "POST", f"/projects/{other}/monitors", given, 201, who="global_admin")


async def test_edits_and_resumes_are_refused_in_the_api(api: Api) -> None:
    made = await new(api)
    paused = await new(api, name="Paused", enabled=False)
    await set_limits(api, runs_per_minute=1)
    runs = "runs per minute in the organization with confirming runs, and its limit is 1 (now 1)"
    for uid, given, field, many in (
        (made["id"], {"interval_seconds": 30}, "interval_seconds", 2),
        (paused["id"], {"enabled": True}, "enabled", 2),
        (made["id"], {"failure_threshold": 2}, "failure_threshold", 2),
    ):
        found = await call(api, "PATCH", f"/monitors/{uid}", given, 400)
        assert found["error"] == f"{field}: would make {many} {runs}"
    await call(api, "PATCH", f"/monitors/{made['id']}", {"interval_seconds": 120})
    # A test of a check has no schedule.
    body = {"name": "x", "type": "tcp", "target": "127.0.0.1:1", "interval_seconds": 5}
    await set_limits(api, shortest_interval_seconds=60)
    await call(
        api, "POST", f"/projects/{api.project}/monitors/test", {**body, "timeout_seconds": 5}
    )


async def test_the_form_shows_the_refusal_at_its_field(api: Api) -> None:
    await set_limits(api, shortest_interval_seconds=60)
    form = {
        "type": "http",
        "fields": "http",
        "act": "save",
        "name": "New",
        "target": "http://127.0.0.1:1/",
        "interval_seconds": "30",
        "timeout_seconds": "5",
        "failure_threshold": "1",
    }
    path = f"/projects/{api.project}/monitors/new"
    status, page = await typed(api, path, form)
    assert status == 400
    assert TOO_FAST in page
    assert 'id="wrong-interval_seconds"' in page
    await set_limits(api, monitors=1)
    await new(api)
    status, page = await typed(api, path, form)
    assert status == 400
    assert "would be 2 in the organization, whose limit is 1 (now 1)" in page
    # A duplicate is a new monitor too.
    await set_limits(api, runs_per_minute=2)
    status, page = await typed(api, path, {**form, "interval_seconds": "30"})
    assert status == 400
    assert "(now 1)" in page
    assert 'id="wrong-interval_seconds"' in page
    status, _ = await typed(api, path, {**form, "interval_seconds": "60"})
    assert status == 303


async def test_bundles_and_imports_are_refused(api: Api) -> None:
    await set_limits(api, monitors=1, shortest_interval_seconds=60)
    two = bundle({"web": WEB, "till": WEB})
    fast = bundle({"web": {**WEB, "interval_seconds": 30}})
    full = "monitors: would be 2 in the organization, whose limit is 1 (now 0)"
    for verb in ("plan", "apply"):
        assert (await ask(api, verb, two, 400))["error"] == full
        found = await ask(api, verb, fast, 400)
        assert found["error"] == f"monitors.web.interval_seconds: {TOO_FAST}"
    begun = await begin(api, two)
    await runner(api).pass_once()
    ended = await operation(api, begun["id"])
    assert (ended["state"], ended["error"]) == ("failed", full)
    checks = (
        '{"checks": [{"name": "a", "timeout": 3600, "grace": 60},'
        ' {"name": "b", "timeout": 3600, "grace": 60}]}'
    )
    form = {"tool": "healthchecks", "text": checks}
    _, page = await typed(api, f"/projects/{api.project}/import", form)
    assert "would be 2 in the organization, whose limit is 1 (now 0)" in page
    assert await api.rows("select from monitors") == []


async def test_the_screen_shows_and_sets_the_limits(api: Api) -> None:
    path = "/admin/organization-limits"

    async def send(**fields: str) -> tuple[int, str]:
        data = urlencode(fields).encode()
        answer = await api.ask("global_admin", "POST", path, data=data, headers=FORM)
        return answer.status_code, await answer.get_data(as_text=True)

    page = await (await api.ask("global_admin", "GET", path)).get_data(as_text=True)
    assert "Built-in default" in page
    assert f"{number(50_000)} monitors" in page
    good = {"monitors": "10", "shortest_interval_seconds": "60", "runs_per_minute": "20"}
    assert (await send(**good))[0] == 303
    assert (await call(api, "GET", PATH, who="global_admin"))["runs_per_minute"] == 20
    for field, value, said in (
        ("monitors", "0", "Monitors: must be 1 to 1000000."),
        ("shortest_interval_seconds", "4", "Shortest interval: must be 5 to 86400 seconds."),
        ("runs_per_minute", "", "Runs per minute: must be a whole number."),
    ):
        status, page = await send(**{**good, field: value})
        assert status == 400
        assert said in page
        assert f'id="wrong-{field}"' in page
