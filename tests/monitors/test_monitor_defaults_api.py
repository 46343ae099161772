"""The default settings of new monitors, in the API and in the form."""

import re
from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.app.serving import call

PATH = "/settings/monitor-defaults"
BUILT_IN = {
    "interval_seconds": 60,
    "timeout_seconds": 10,
    "retries": 0,
    "failure_threshold": 1,
    "renotify_seconds": 0,
    "auto_incident": True,
}
SET = {
    "interval_seconds": 30,
    "timeout_seconds": 20,
    "retries": 2,
    "failure_threshold": 3,
    "renotify_seconds": 3_600,
    "auto_incident": False,
}


async def made(api: Api, **given: Any) -> Any:
    body = {"name": "Till", "type": "http", "target": "http://127.0.0.1/", **given}
    return await call(api, "POST", f"/projects/{api.project}/monitors", body, 201, who="editor")


async def test_omitted_fields_have_the_defaults_and_existing_monitors_keep_theirs(api: Api) -> None:
    assert await call(api, "GET", "/monitor-defaults", who="viewer") == {
        "configured": False,
        **BUILT_IN,
    }
    before = await made(api)
    assert BUILT_IN.items() <= before.items()
    assert await call(api, "PUT", PATH, SET, who="global_admin") == {"configured": True, **SET}
    assert await call(api, "GET", "/monitor-defaults", who="viewer") == {"configured": True, **SET}
    after = await made(api, name="Mill")
    assert SET.items() <= after.items()
    named = await made(api, name="Short", interval_seconds=5, retries=0)
    assert (named["timeout_seconds"], named["retries"]) == (5, 0)
    again = await call(api, "GET", f"/monitors/{before['id']}", who="viewer")
    assert BUILT_IN.items() <= again.items()
    # A response of GET is accepted by PUT.
    read = await call(api, "GET", PATH, who="global_admin")
    assert await call(api, "PUT", PATH, read, who="global_admin") == read
    assert await call(api, "PUT", PATH, {}, who="global_admin") == {"configured": True, **BUILT_IN}


async def test_the_form_begins_with_them(api: Api) -> None:
    await call(api, "PUT", PATH, SET, who="global_admin")
    answer = await api.ask("editor", "GET", f"/projects/{api.project}/monitors/new?type=http")
    page = await answer.get_data(as_text=True)
    for name in ("interval_seconds", "timeout_seconds", "retries", "failure_threshold"):
        (field,) = re.findall(rf'<input[^>]*name="{name}"[^>]*>', page)
        assert f'value="{SET[name]}"' in field
        assert f"default {SET[name]}" in page
    (field,) = re.findall(r'<input[^>]*name="auto_incident"[^>]*>', page)
    assert "checked" not in field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interval_seconds", 4),
        ("timeout_seconds", 61),
        ("retries", 11),
        ("failure_threshold", 0),
        ("renotify_seconds", 59),
    ],
)
async def test_a_default_that_no_monitor_can_have_is_refused_by_name(
    api: Api, field: str, value: int
) -> None:
    answer = await api.ask("global_admin", "PUT", f"/api/v1{PATH}", json={field: value})
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith(f"{field}: ")
    read = await call(api, "GET", PATH, who="global_admin")
    assert read == {"configured": False, **BUILT_IN}


async def test_the_screen_of_the_first_monitor_states_the_defaults_in_force(api: Api) -> None:
    path = f"/projects/{api.project}"
    page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
    assert "Checked every 1\u202fmin, timeout 10\u202fs, down after 1 failure." in page
    await call(api, "PUT", PATH, SET, who="global_admin")
    page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
    assert "Checked every 30\u202fs, timeout 20\u202fs, down after 3 consecutive failures." in page


async def test_a_domain_is_asked_every_six_hours_and_at_most_hourly(api: Api) -> None:
    given = {"type": "domain", "target": "example.com"}
    assert (await made(api, **given))["interval_seconds"] == 21_600
    path = f"/projects/{api.project}/monitors"
    for field, wrong in (
        ("interval_seconds", {**given, "interval_seconds": 60}),
        ("retries", {**given, "retries": 1}),
        ("config.rdap_url", {**given, "target": "shop.example"}),
    ):
        body = {"name": "Name", **wrong}
        refused = await call(api, "POST", path, body, 400, who="editor")
        assert refused["error"].startswith(f"{field}: ")
