"""Tests of checks before they are saved, run by an agent: once, and answered in any case."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from leadline.daemon.agent import check_tester
from leadline.probes.jobs.agent_protocol import CHECK_TEST
from leadline.probes.jobs.envelope import Contents
from tests.agents.fake_server import FakeServer
from tests.agents.fast_agent import FastTime, agent, not_running, target, until
from tests.agents.job_samples import job


def check_test(server: FakeServer, place: str, **given: Any) -> dict[str, Any]:
    now = server.now()
    raw = job(now, is_window=False, target=place, lease_until=now + 600_000_000, **given)
    return raw | {"revision": 0}


async def test_a_test_is_run_and_answered_and_leaves_no_result(tmp_path: Path) -> None:
    time = FastTime()
    async with FakeServer(time.truth).listening() as server, target() as place:
        tests = [check_test(server, place), check_test(server, "127.0.0.1:1")]
        server.tests += tests
        async with agent(tmp_path, server.url, time.count):
            await until(lambda: len(server.tried) == 2)
        found = {one["test_id"]: one for one in server.tried}
        assert found[tests[0]["job_id"]]["outcome"] == "up"
        assert found[tests[1]["job_id"]]["outcome"] == "down"
        assert found[tests[1]["job_id"]]["msg"] == "connect_refused 127.0.0.1"
        assert server.results == []
        assert CHECK_TEST in server.heard[0]["workflow_kinds"]


async def test_a_test_that_cannot_be_read_is_answered_with_the_reason(tmp_path: Path) -> None:
    time = FastTime()
    async with FakeServer(time.truth).listening() as server:
        sealed = check_test(server, "127.0.0.1:1", secret=Contents(secrets={"token": "x"}))
        newer, foreign = check_test(server, "127.0.0.1:1") | {"carrier": 99}, sealed
        foreign["target"] = "127.0.0.1:2"
        nameless = check_test(server, "127.0.0.1:1") | {"job_id": "no id", "carrier": 99}
        server.tests += [newer, foreign, nameless]
        async with agent(tmp_path, server.url, time.count) as made:
            await until(lambda: len(server.tried) == 2)
            assert made.counts.refused["unreadable"] == 1
        found = {one["test_id"]: one["reason"] for one in server.tried}
        assert found == {newer["job_id"]: "carrier_too_old", foreign["job_id"]: "decrypt_failed"}


async def test_an_answer_is_repeated_and_then_dropped(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(check_tester, "RETRY_SECONDS", 0.01)
    time = FastTime()
    asked: list[str] = []

    def away(route: str, _: FakeServer) -> Any:
        if route != "tests":
            return ...
        asked.append(route)
        return None

    async with FakeServer(time.truth).listening() as server, target() as place:
        server.tests.append(check_test(server, place))
        server.fault = away
        async with agent(tmp_path, server.url, time.count) as made:
            await until(lambda: made.counts.dropped["test"] == 1)
        assert len(asked) == check_tester.SENDS_MOST


async def test_more_tests_than_can_wait_are_refused(tmp_path: Path) -> None:
    async with not_running(tmp_path, "http://127.0.0.1:1", FastTime().count) as made:
        for _ in range(check_tester.WAITING_MOST + 5):
            made.tests.put({"job_id": str(uuid4())})
        assert made.counts.refused["surplus"] == 5
        made.tests.close()
        made.tests.put({})
        assert made.counts.refused["surplus"] == 6
