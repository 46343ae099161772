"""Runs of push monitors over HTTP, as the command-line clients of Healthchecks send them."""

from typing import Any

import pytest

from leadline.http.monitors.routes.push import _BODY_CUT
from leadline.storage.results.rules.push_body import NOT_IN_BEGINNING
from tests.support.app.cast import Api

RUN = "5c8e6b2a-1c6f-4f0e-9a55-0f6a0d4f7a11"


async def job(api: Api, **settings: Any) -> dict[str, Any]:
    body = {"name": "Job", "type": "push", **settings}
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask("editor", "POST", path, body)
    assert answer.status_code == 201, await answer.get_data()
    made: dict[str, Any] = await answer.get_json()
    return made


async def runs(api: Api, made: dict[str, Any], who: str = "viewer") -> list[dict[str, Any]]:
    answer = await api.ask(who, "GET", f"/api/v1/monitors/{made['id']}/push-runs")
    assert answer.status_code == 200
    found: list[dict[str, Any]] = await answer.get_json()
    return found


async def push(
    api: Api, made: dict[str, Any], path: str, method: str = "GET", data: bytes = b""
) -> dict[str, Any]:
    url = f"/api/v1/public/push/{made['push_token']}{path}"
    answer = await api.ask("nobody", method, url, data=data)
    assert answer.status_code == 200
    said: dict[str, Any] = await answer.get_json()
    return said


@pytest.mark.parametrize("run", ["", RUN])
@pytest.mark.parametrize(
    ("end", "outcome", "status"),
    [
        ("", "succeeded", None),
        ("/0", "succeeded", 0),
        ("/fail", "failed", None),
        ("/7", "failed", 7),
    ],
)
async def test_a_start_and_a_result_are_a_run_with_its_duration(
    api: Api, run: str, end: str, outcome: str, status: int | None
) -> None:
    made = await job(api, max_run_seconds=600)
    query = f"?rid={run}" if run else ""
    await push(api, made, f"/start{query}")
    (open_run,) = await runs(api, made)
    assert open_run.keys() == {"started_at", "deadline_at", *(["run_id"] if run else [])}
    await push(api, made, f"{end}{query}", "POST")
    (ended,) = await runs(api, made)
    assert (ended["outcome"], ended.get("exit_status"), ended["limit"]) == (outcome, status, "kept")
    assert ended.get("run_id", "") == run
    assert ended["duration_ms"] >= 0
    assert await api.rows("select latency_ms from heartbeats") == [(ended["duration_ms"],)]


async def test_runs_without_a_limit_and_a_ping(api: Api) -> None:
    made = await job(api)
    await push(api, made, "/start")
    await push(api, made, "?ping=812")
    (ended,) = await runs(api, made)
    assert "limit" not in ended
    assert "deadline_at" not in ended
    assert await api.rows("select latency_ms from heartbeats") == [(812,)]


async def test_a_sender_cannot_pass_its_own_word_for_an_overrun(api: Api) -> None:
    made = await job(api)
    await push(api, made, "?msg=push_overrun")
    assert await api.rows("select msg from heartbeats") == [("push_overrun (sent)",)]


async def test_more_open_runs_than_the_bound_are_a_warning(api: Api) -> None:
    made = await job(api)
    for at in range(100):
        assert "warnings" not in await push(api, made, f"/start?rid=r{at}")
    said = await push(api, made, "/start?rid=more")
    assert said["warnings"] == ["rid: the run is not tracked, 100 runs are open"]


async def test_runs_of_another_project_are_not_found(api: Api) -> None:
    made = await job(api)
    answer = await api.ask("stranger", "GET", f"/api/v1/monitors/{made['id']}/push-runs")
    assert answer.status_code in (403, 404)


KEEPING = {"keep_bodies": True}


async def bodies(api: Api, made: dict[str, Any], who: str = "editor") -> list[dict[str, Any]]:
    answer = await api.ask(who, "GET", f"/api/v1/monitors/{made['id']}/push-bodies")
    assert answer.status_code == 200
    found: list[dict[str, Any]] = await answer.get_json()
    return found


async def test_the_last_bodies_are_encrypted_and_shown_to_editors(api: Api) -> None:
    made = await job(api, config=KEEPING)
    await push(api, made, "/start?rid=a", "POST", b"begin")
    await push(api, made, "/fail?rid=a&msg=told", "POST", b"caf\xc3\xa9 \xff")
    await push(api, made, "", "POST")
    ended, begun = await bodies(api, made)
    assert begun == {
        "at": begun["at"],
        "kind": "start",
        "run_id": "a",
        "text": "begin",
        "is_cut": False,
    }
    assert (ended["kind"], ended["up"], ended["text"]) == ("heartbeat", False, "café \ufffd")
    stored = await api.rows("select body_ciphertext from push_bodies")
    assert not any(b"begin" in bytes(value) for (value,) in stored)
    assert await api.rows("select msg from heartbeats order by ts") == [("told",), (None,)]
    refused = await api.ask("viewer", "GET", f"/api/v1/monitors/{made['id']}/push-bodies")
    assert refused.status_code == 403


async def test_twenty_bodies_of_ten_kibibytes_are_kept(api: Api) -> None:
    made = await job(api, config=KEEPING)
    for at in range(22):
        await push(api, made, "", "POST", f"{at} ".encode() + b"x" * 70_000)
    found = await bodies(api, made)
    assert [one["text"].split()[0] for one in found] == [str(at) for at in range(21, 1, -1)]
    assert {(len(one["text"]), one["is_cut"]) for one in found} == {(10_240, True)}


async def test_no_body_is_kept_unless_the_monitor_keeps_them(api: Api) -> None:
    made = await job(api)
    await push(api, made, "", "POST", b"secret")
    assert await api.rows("select count(*) from push_bodies") == [(0,)]
    keeping = await job(api, config=KEEPING, name="Other")
    await push(api, keeping, "", "POST", b"secret")
    assert len(await bodies(api, keeping)) == 1
    path = f"/api/v1/monitors/{keeping['id']}"
    answer = await api.ask("editor", "PATCH", path, {"config": {"keep_bodies": False}})
    assert answer.status_code == 200
    assert await bodies(api, keeping) == []


@pytest.mark.parametrize(
    ("path", "body", "up", "message"),
    [
        ("", b"all done", True, None),
        ("", b"all done, 1 ERROR", False, "failure keyword found: ERROR"),
        ("", b"all don", False, "no success keyword found"),
        ("/0", b"ERROR", False, "failure keyword found: ERROR"),
        ("?msg=mine", b"ERROR", False, "mine"),
        ("/fail", b"all done", False, None),
    ],
)
async def test_keywords_of_the_body_decide_a_result(
    api: Api, path: str, body: bytes, up: bool, message: str | None
) -> None:
    made = await job(
        api, config={"failure_keywords": "ERROR\n fatal ", "success_keywords": "done\n"}
    )
    said = await push(api, made, path, "POST", body)
    assert said["up"] is up
    assert await api.rows("select up, msg from heartbeats") == [(up, message)]


async def test_a_success_keyword_after_the_part_that_is_read_leaves_the_status(api: Api) -> None:
    made = await job(api, config={"failure_keywords": "ERROR", "success_keywords": "done"})
    long = b"x" * (64 << 10)
    said = await push(api, made, "", "POST", long + b"done")
    assert (said["up"], said["warnings"]) == (True, [NOT_IN_BEGINNING, _BODY_CUT])
    assert (await push(api, made, "", "POST", long))["up"] is False
    assert (await push(api, made, "", "POST", b"ERROR" + long))["up"] is False
    assert (await push(api, made, "/fail", "POST", long + b"done"))["up"] is False
