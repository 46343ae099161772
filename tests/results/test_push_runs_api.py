"""Runs of push monitors over HTTP, as the command-line clients of Healthchecks send them."""

from typing import Any

import pytest

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


async def push(api: Api, made: dict[str, Any], path: str, method: str = "GET") -> dict[str, Any]:
    url = f"/api/v1/public/push/{made['push_token']}{path}"
    answer = await api.ask("nobody", method, url)
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
