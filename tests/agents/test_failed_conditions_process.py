"""An agent sends the failed condition of a run, also to a server that does not know the field."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from leadline.daemon.agent.server_client import without_failed_condition
from tests.agents.fake_server import FakeServer
from tests.agents.fast_agent import FastTime, agent, target, until
from tests.agents.job_samples import job

NO, YES = "[CONNECTED] == false", "[CONNECTED] == true"


def knows_no_conditions(item: dict[str, Any]) -> int:
    """As a server of an earlier version: an unknown field is an invalid body."""
    return 400 if "failed_condition" in item else 0


async def run_jobs(
    folder: Path, refuse: Callable[[dict[str, Any]], int] = lambda item: 0
) -> FakeServer:
    time = FastTime()
    async with FakeServer(time.truth).listening() as server, target() as there:
        server.refuse = refuse
        now = time.truth()
        server.extra = [
            job(now, target=there, is_window=False, conditions=[text], lease_until=now + 10**10)
            for text in (YES, NO)
        ]
        async with agent(folder, server.url, time.count):
            await until(lambda: len(server.results) >= 2)
    return server


async def test_only_the_result_of_a_failed_condition_has_it(tmp_path: Path) -> None:
    server = await run_jobs(tmp_path)
    found = sorted((item["up"], item.get("failed_condition")) for _, item in server.results)
    assert found == [(False, {"condition": NO, "measured": "true"}), (True, None)]


async def test_a_server_of_an_earlier_version_gets_the_results_without_it(tmp_path: Path) -> None:
    server = await run_jobs(tmp_path, knows_no_conditions)
    assert sorted(item["up"] for _, item in server.results) == [False, True]
    assert all("failed_condition" not in item for _, item in server.results)


def test_a_result_without_a_failed_condition_is_sent_unchanged() -> None:
    plain = b'{"up": true,  "msg": ""}'
    assert without_failed_condition(plain) is plain
    given = msgspec.json.encode({"up": False, "failed_condition": {"condition": NO}, "msg": "x"})
    assert msgspec.json.decode(without_failed_condition(given)) == {"up": False, "msg": "x"}
