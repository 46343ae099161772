"""Canaries in the API: the audit entry of a canary without cleanup, and the test of a canary before
it is saved."""

import json
from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.peers.job_queue import KEY, polled

CLAUSE = "cleanup=none acknowledged"
LEFT = {"kind": "none", "acknowledged": True}
SWEPT = {"kind": "lifecycle_prefix", "prefix": "canary-"}


def workflow(**given: Any) -> dict[str, Any]:
    """A workflow without a binding. `given` replaces its parts."""
    bare = polled(submit={"headers": []}, completion={"headers": []})
    return {**bare, "secrets": {}, **given}


async def create(api: Api, document: Any, **given: Any) -> Any:
    body = {
        "name": f"c{next(api.numbers)}",
        "type": "async_canary",
        "interval_seconds": 3_600,
        "config": {"workflow": document},
        **given,
    }
    return await api.ask("editor", "POST", f"/api/v1/projects/{api.project}/monitors", body)


async def made(api: Api, document: Any, **given: Any) -> str:
    answer = await create(api, document, **given)
    assert answer.status_code == 201, await answer.get_data()
    uid: str = (await answer.get_json())["id"]
    return uid


async def audits(api: Api) -> list[tuple[str, str]]:
    return await api.rows("select action, target from audit_entries order by id")


@pytest.mark.parametrize("spell", [lambda document: document, json.dumps], ids=["object", "text"])
async def test_the_audit_names_a_canary_that_leaves_what_it_creates(api: Api, spell: Any) -> None:
    uid = await made(api, spell(workflow(cleanup=LEFT)))
    path = f"/api/v1/monitors/{uid}"
    kept = {"config": {"workflow": ""}, "tags": ["kept"]}
    for body in ({"name": "renamed"}, {"enabled": False}, kept):
        answer = await api.ask("editor", "PATCH", path, body)
        assert answer.status_code == 200, await answer.get_data()
    entries = await audits(api)
    assert [action for action, _ in entries] == ["monitor.create"] + 3 * ["monitor.update"]
    for _, target in entries:
        assert target.startswith(f"monitor:{uid} slug=")
        assert target.endswith(f" {CLAUSE}")
    assert "enabled=True->False" in entries[2][1]


async def test_the_clause_follows_what_is_written(api: Api) -> None:
    uid = await made(api, workflow())
    for cleanup in (LEFT, SWEPT):
        given = {"config": {"workflow": workflow(cleanup=cleanup)}}
        answer = await api.ask("editor", "PATCH", f"/api/v1/monitors/{uid}", given)
        assert answer.status_code == 200, await answer.get_data()
    assert [CLAUSE in target for _, target in await audits(api)] == [False, True, False]


async def test_a_workflow_that_only_mentions_the_clause_has_no_clause(api: Api) -> None:
    submit = {**workflow()["submit"], "body": {"cleanup": LEFT, "note": CLAUSE}}
    await made(api, workflow(submit=submit))
    ((_, target),) = await audits(api)
    assert CLAUSE not in target


async def test_its_time_out_may_be_an_hour(api: Api) -> None:
    await made(api, workflow(), timeout_seconds=3_600)
    answer = await create(api, workflow(), timeout_seconds=3_601, interval_seconds=7_200)
    assert answer.status_code == 400
    assert "timeout_seconds: must be 1 to 3600 seconds" in (await answer.get_json())["error"]


async def tried(api: Api, config: dict[str, Any]) -> Any:
    body = {"name": "c", "type": "async_canary", "config": config}
    return await api.ask("editor", "POST", f"/api/v1/projects/{api.project}/monitors/test", body)


async def test_a_workflow_with_a_binding_is_not_tested_before_it_is_saved(api: Api) -> None:
    await api.new_secret(KEY, "shop-api")
    config = {"workflow": polled(), "canary_secret_key_ref": "shop-api"}
    answer = await tried(api, config)
    assert answer.status_code == 400
    error = (await answer.get_json())["error"]
    assert error.startswith("config.canary_secret_key_ref: ")
    assert "binding key" in error


async def test_a_workflow_is_tested_without_access_to_private_addresses(api: Api) -> None:
    submit = {**workflow()["submit"], "url": "https://127.0.0.1:1/v1/jobs"}
    answer = await tried(api, {"workflow": workflow(submit=submit)})
    assert answer.status_code == 200, await answer.get_data()
    said = await answer.get_json()
    assert (said["up"], said["msg"]) == (False, "target_blocked 127.0.0.1")
