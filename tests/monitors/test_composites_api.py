"""Composites in the API: refusals, the format of the children, and evaluations on request."""

from typing import Any

import pytest

from leadline.storage.results.event_bus import StatusEvent
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

STRANGER = "01a2000c-bd9e-7434-a37d-ed5e6a7d2c6d"


async def monitors(api: Api, **given: Any) -> Any:
    path = f"/api/v1/projects/{api.project}/monitors"
    return await api.ask("editor", "POST", path, {"name": "Whole", "type": "composite", **given})


async def leaf(api: Api, *, project: str = "acme/shop", up: bool | None = None) -> str:
    """Creates a monitor, with a result if `up` is given."""
    row = await api.new_monitor(project)
    if up is not None:
        async with api.pool.transaction("result") as tx:
            given = {"org": row.org, "monitor": row.id, "now": tx.now}
            await tx.execute(
                "insert into heartbeats (org, monitor, ts, latency_ms, up)"
                " values (%(org)s, %(monitor)s, at(%(now)s), 1, %(up)s)",
                up=up,
                **given,
            )
            await tx.execute(
                "update monitor_states set status = %(status)s, since = at(%(now)s)"
                " where org = %(org)s and monitor = %(monitor)s",
                status="up" if up else "down",
                **given,
            )
    return str(row.uid)


async def test_children_are_returned_as_a_list(api: Api) -> None:
    one, two = await leaf(api), await leaf(api)
    for children in ([one, two], f"{one},{two}", f" {one.upper()} , {two} "):
        config = {"children": children, "mode": "quorum", "quorum": "2"}
        answer = await monitors(api, config=config)
        made = await answer.get_json()
        assert answer.status_code == 201, made
        assert made["config"] == {"children": [one, two], "mode": "quorum", "quorum": 2}
        assert (made["target"], made["status"]) == ("", "pending")
        path = f"/api/v1/monitors/{made['id']}"
        assert (await (await api.ask("viewer", "GET", path)).get_json())["config"] == made["config"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "config.children"),
        ({"config": {"children": []}}, "config.children"),
        ({"config": {"children": ", ,"}}, "config.children"),
        ({"config": {"children": ["nonsense"]}}, "config.children"),
        ({"config": {"children": [STRANGER]}}, "config.children"),
        (
            {"config": {"children": [f"{STRANGER[:-2]}{n:02}" for n in range(51)]}},
            "config.children",
        ),
        ({"config": {"children": ["LEAF", "LEAF"]}}, "config.children"),
        ({"config": {"children": ["OTHERS"]}}, "config.children"),
        ({"config": {"children": ["LEAF"], "mode": "most"}}, "config.mode"),
        ({"config": {"children": ["LEAF"], "mode": "quorum"}}, "config.quorum"),
        ({"config": {"children": ["LEAF"], "mode": "quorum", "quorum": 2}}, "config.quorum"),
        ({"config": {"children": ["LEAF"], "mode": "quorum", "quorum": 0}}, "config.quorum"),
        ({"config": {"children": ["LEAF"], "quorum": 1}}, "config.quorum"),
        ({"target": "https://x.example/", "config": {"children": ["LEAF"]}}, "target"),
        ({"conditions": ["[STATUS] == 200"], "config": {"children": ["LEAF"]}}, "conditions"),
    ],
)
async def test_a_refusal_names_the_field_and_repeats_no_value(
    api: Api, given: dict[str, Any], named: str
) -> None:
    ids = {"LEAF": await leaf(api), "OTHERS": await leaf(api, project="acme/mill")}
    config = given.get("config", {})
    if isinstance(config.get("children"), list):
        config = {**config, "children": [ids.get(c, c) for c in config["children"]]}
    answer = await monitors(api, **{**given, "config": config})
    body = await answer.get_json()
    assert answer.status_code == 400
    assert list(body) == ["error"]
    assert body["error"].startswith(f"{named}: "), body
    assert not any(uid in body["error"] for uid in (*ids.values(), STRANGER, "nonsense"))
    assert await api.rows("select 1 from composite_terms") == []


async def test_a_child_of_a_composite_cannot_be_deleted(api: Api) -> None:
    one, two = await leaf(api), await leaf(api)
    made = await (await monitors(api, config={"children": [one, two]})).get_json()
    answer = await api.ask("editor", "DELETE", f"/api/v1/monitors/{one}")
    assert (answer.status_code, await answer.get_json()) == (409, {"error": "in_use"})
    path = f"/api/v1/monitors/{made['id']}"
    answer = await api.ask("editor", "PATCH", path, {"config": {"children": [two]}})
    assert answer.status_code == 200
    assert (await api.ask("editor", "DELETE", f"/api/v1/monitors/{one}")).status_code == 204
    answer = await api.ask("editor", "PATCH", path, {"config": {"children": [made["id"]]}})
    assert answer.status_code == 400
    assert (await api.ask("editor", "DELETE", path)).status_code == 204
    assert (await api.ask("editor", "DELETE", f"/api/v1/monitors/{two}")).status_code == 204


@pytest.mark.parametrize("up", [True, False])
async def test_a_requested_evaluation_runs_immediately(api: Api, up: bool) -> None:
    child = await leaf(api, up=up)
    made = await (await monitors(api, config={"children": [child]})).get_json()
    path = f"/api/v1/monitors/{made['id']}"
    listener = api.context.bus.listen()
    answer = await api.ask("editor", "POST", f"{path}/check")
    assert answer.status_code == 202
    assert list(await answer.get_json()) == ["job_id"]
    event = await listener.next()
    assert isinstance(event, StatusEvent)
    assert (str(event.monitor_uid), event.up, event.ts) == (made["id"], up, FROZEN_NOW)
    api.context.bus.hang_up(listener)
    seen = await (await api.ask("viewer", "GET", path)).get_json()
    assert seen["status"] == ("up" if up else "down")
    (beat,) = await (await api.ask("viewer", "GET", f"{path}/heartbeats")).get_json()
    assert (beat["up"], beat["msg"]) == (up, "" if up else "condition_failed")
    # A second request is accepted, because no evaluation is pending.
    assert (await api.ask("editor", "POST", f"{path}/check")).status_code == 202
    assert await api.rows("select 1 from composite_wakeups") == []
    assert (
        await api.rows(
            "select 1 from jobs j join monitors m on m.id = j.monitor where m.type = 'composite'"
        )
        == []
    )


async def test_an_evaluation_of_unknown_children_stores_no_result_and_is_accepted(
    api: Api,
) -> None:
    made = await (await monitors(api, config={"children": [await leaf(api)]})).get_json()
    path = f"/api/v1/monitors/{made['id']}"
    assert (await api.ask("editor", "POST", f"{path}/check")).status_code == 202
    assert await api.rows("select 1 from heartbeats") == []
    assert (await (await api.ask("viewer", "GET", path)).get_json())["status"] == "pending"


async def test_a_paused_composite_is_not_evaluated(api: Api) -> None:
    child = await leaf(api, up=True)
    made = await (await monitors(api, config={"children": [child]}, enabled=False)).get_json()
    answer = await api.ask("editor", "POST", f"/api/v1/monitors/{made['id']}/check")
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith("enabled")


async def test_a_composite_cannot_be_tested_before_it_is_saved(api: Api) -> None:
    path = f"/api/v1/projects/{api.project}/monitors/test"
    body = {"name": "x", "type": "composite", "config": {"children": [await leaf(api)]}}
    assert (await api.ask("editor", "POST", path, body)).status_code == 400
