"""Input of clients of the older line of the interface, and the form in which it is read back."""

from typing import Any

import pytest

from tests.support.app.cast import Api


async def ask(api: Api, method: str, path: str, body: Any, who: str = "editor") -> Any:
    response = await api.ask(who, method, f"/api/v1{path}", body)
    assert response.status_code in (200, 201), await response.get_data()
    return await response.get_json()


async def create(api: Api, **body: Any) -> Any:
    return await ask(api, "POST", f"/projects/{api.project}/monitors", {"name": "x", **body})


@pytest.mark.parametrize("word", ["that", "kind"])
async def test_an_assertion_is_read_back_with_its_kind(api: Api, word: str) -> None:
    check = {word: "status", "op": "eq", "value": 200}
    steps = [{"method": "GET", "url": "https://a.example/", "assert": [check]}]
    made = await create(api, type="synthetic", config={"scenario": {"steps": steps}})
    read = await ask(api, "GET", f"/monitors/{made['id']}", None)
    (step,) = read["config"]["scenario"]["steps"]
    assert step["assert"] == [{"kind": "status", "op": "eq", "value": 200}]


async def test_children_can_be_separated_by_commas(api: Api) -> None:
    children = [str((await api.new_monitor()).uid) for _ in range(2)]
    config = {"children": ",".join(children), "mode": "any"}
    made = await create(api, type="composite", config=config)
    assert made["config"]["children"] == children


async def test_a_target_can_have_no_port(api: Api) -> None:
    made = await create(api, type="postgres", target="db.example", config={"username": "u"})
    assert made["target"] == "db.example"


async def test_a_public_page_is_listed(api: Api) -> None:
    path = f"/organizations/{api.org}/status-pages"
    body = {"slug": "acme-status", "title": "Acme", "visibility": "public"}
    made = await ask(api, "POST", path, body, "org_admin")
    assert made["visibility"] == "listed"


async def test_a_check_is_tested_without_a_name(api: Api) -> None:
    path = f"/projects/{api.project}/monitors/test"
    tested = await ask(api, "POST", path, {"type": "tcp", "target": "127.0.0.1:1"})
    assert tested["up"] is False


async def test_a_test_that_no_worker_took_states_it(api: Api) -> None:
    path = f"/projects/{api.project}/monitors/test"
    tested = await ask(api, "POST", path, {"type": "tcp", "target": "127.0.0.1:1", "region": "eu"})
    assert tested["up"] is False
    assert tested["msg"] == "probe_error 127.0.0.1"
    assert tested["reason"] == "no_worker"
