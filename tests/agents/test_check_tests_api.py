"""A check is tested before it is saved by an agent that declares `check_test@1`, or not at all."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
import trio
import trustme

from leadline.http.auth.passwords import Passwords
from leadline.http.monitors.routes import check_test
from leadline.probes.jobs.agent_protocol import (
    CHECK_TEST,
    INSTANCE_HEADER,
    KINDS_HEADER,
    Generation,
)
from leadline.probes.jobs.envelope import open_envelope
from leadline.storage.core.instant import to_text
from tests.support.app.edge import ANY_TOKEN, CORE_TOKEN, EU_TOKEN, Edge, open_edge
from tests.support.peers.real_servers import pems

KINDS = {KINDS_HEADER: CHECK_TEST}
SHOP = {
    "type": "http",
    "target": "https://shop.example/",
    "region": "eu",
    "timeout_seconds": 2,
    "config": {"auth_mode": "basic", "username": "shop", "password": "horse-battery"},
}


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        yield made


async def present(edge: Edge, *kinds: str, carrier: int = max(Generation), **given: Any) -> None:
    body = {"workflow_kinds": kinds, "carrier": carrier, "version": "1"}
    await edge.ask("POST", "heartbeat?region=eu", body, **given)


@asynccontextmanager
async def trying(edge: Edge, **given: Any) -> AsyncIterator[Callable[[], Any]]:
    """A test that waits for its result, which the callable returns at the end."""
    found: list[Any] = []

    async def ask() -> None:
        path = f"/api/v1/projects/{edge.api.project}/monitors/test"
        answer = await edge.api.ask("editor", "POST", path, {**SHOP, **given})
        found.append(await answer.get_json())

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            while not await edge.api.rows("select 1 from check_tests"):
                assert not found, found
                await trio.sleep(0.01)
            yield lambda: found[0]


async def leased(edge: Edge, **given: Any) -> Any:
    answer = await edge.ask("GET", "jobs?region=eu&wait=0", **{"headers": KINDS, **given})
    assert answer["jobs"] == []
    return answer.get("tests", [])


def outcome(test: dict[str, Any], edge: Edge, **given: Any) -> dict[str, Any]:
    return {
        "test_id": test["job_id"],
        "ts": to_text(edge.clock.now),
        "outcome": "up",
        "latency_ms": 12,
        "code": 200,
        "msg": "",
        "phases": {"dns_us": 1_000, "total_us": 12_000},
        **given,
    }


async def bring(edge: Edge, body: dict[str, Any], region: str = "eu", **given: Any) -> Any:
    return await edge.ask("POST", f"tests?region={region}", body, **given)


async def test_an_agent_of_the_region_runs_it_once_with_its_secrets(edge: Edge) -> None:
    await present(edge, CHECK_TEST)
    async with trying(edge) as answer:
        (test,) = await leased(edge)
        assert await leased(edge) == []
        assert (test["type"], test["target"]) == ("http", "https://shop.example/")
        assert "horse-battery" not in str(test)
        contents = open_envelope(test, EU_TOKEN)
        assert contents.config == {"password": "horse-battery"}
        assert await bring(edge, outcome(test, edge)) == {"accepted": True}
    assert answer() == {"up": True, "latency_ms": 12, "code": 200, "msg": ""}
    assert await edge.api.rows("select 1 from check_tests") == []
    assert await bring(edge, outcome(test, edge)) == {"accepted": False}


async def test_a_check_that_the_agent_cannot_run_states_why(edge: Edge) -> None:
    await present(edge, CHECK_TEST)
    async with trying(edge) as answer:
        (test,) = await leased(edge)
        said = {"outcome": "unknown", "reason": "no_route", "msg": "probe_error shop.example"}
        assert await bring(edge, outcome(test, edge, **said)) == {"accepted": True}
    assert (answer()["up"], answer()["reason"]) == (False, "no_route")


@pytest.mark.parametrize(
    ("failed", "shown"),
    [
        ({"condition": "[STATUS] == 200", "measured": "503"}, ["[STATUS] == 200 (503)"]),
        # The monitor does not show values.
        ({"condition": "[BODY].a == 1", "measured": "2"}, ["[BODY].a == 1"]),
        # The check does not have the condition.
        ({"condition": "[STATUS] == 201", "measured": "503"}, None),
    ],
)
async def test_a_failed_condition_follows_the_rules_of_stored_results(
    edge: Edge, failed: dict[str, str], shown: list[str] | None
) -> None:
    await present(edge, CHECK_TEST)
    async with trying(edge, conditions=["[STATUS] == 200", "[BODY].a == 1"]) as answer:
        (test,) = await leased(edge)
        said = {"outcome": "down", "msg": "condition_failed shop.example"}
        body = outcome(test, edge, **said, failed_condition=failed)
        assert await bring(edge, body) == {"accepted": True}
    assert answer().get("conditions") == shown


async def test_a_test_of_a_newer_type_needs_its_capability(edge: Edge) -> None:
    smtp = {"type": "smtp", "target": "mail.example", "config": {}}
    await present(edge, CHECK_TEST, "smtp@1")
    async with trying(edge, **smtp) as answer:
        assert await leased(edge) == []
        newer = {KINDS_HEADER: f"{CHECK_TEST},smtp@1"}
        (test,) = await leased(edge, headers=newer)
        assert await bring(edge, outcome(test, edge)) == {"accepted": True}
    assert answer()["up"] is True


async def test_a_test_of_a_newer_setting_needs_its_capability(edge: Edge) -> None:
    chain, key = pems(trustme.CA().issue_cert("leadline.example"))
    config = {"client_cert": chain, "client_key": key}
    await present(edge, CHECK_TEST, "client_cert@1")
    async with trying(edge, config=config) as answer:
        assert await leased(edge) == []
        newer = {KINDS_HEADER: f"{CHECK_TEST},client_cert@1"}
        (test,) = await leased(edge, headers=newer)
        assert key not in str(test)
        assert await bring(edge, outcome(test, edge)) == {"accepted": True}
    assert answer()["up"] is True


@pytest.mark.parametrize(
    ("kinds", "carrier"), [((), 4), (("async_transaction@1",), 4), ((CHECK_TEST,), 3)]
)
async def test_an_older_agent_never_receives_one(
    edge: Edge, kinds: tuple[str, ...], carrier: int
) -> None:
    await present(edge, *kinds, carrier=carrier)
    path = f"/api/v1/projects/{edge.api.project}/monitors/test"
    with trio.fail_after(60):
        answer = await (await edge.api.ask("editor", "POST", path, SHOP)).get_json()
    assert answer["reason"] == "carrier_too_old"
    # A capable agent besides it makes the test wait, and still the older one does not get it.
    second = {INSTANCE_HEADER: str(uuid4())}
    await present(edge, CHECK_TEST, headers=second)
    async with trying(edge):
        older = {KINDS_HEADER: ",".join(kinds)}
        answer = await edge.ask("GET", "jobs?region=eu&wait=0", headers=older)
        assert answer == {"jobs": []}
        (test,) = await leased(edge, headers={**KINDS, **second})
        assert await bring(edge, outcome(test, edge)) == {"accepted": False}
        assert await bring(edge, outcome(test, edge), headers=second) == {"accepted": True}


async def test_an_agent_of_another_region_neither_gets_nor_answers_it(edge: Edge) -> None:
    await present(edge, CHECK_TEST)
    body = {"workflow_kinds": [CHECK_TEST], "carrier": 4, "version": "1"}
    await edge.ask("POST", "heartbeat?region=core", body, token=CORE_TOKEN)
    await edge.ask("POST", "heartbeat?region=us", body, token=ANY_TOKEN)
    async with trying(edge) as answer:
        for region, token in (("core", CORE_TOKEN), ("us", ANY_TOKEN)):
            claimed = await edge.ask(
                "GET", f"jobs?region={region}&wait=0", token=token, headers=KINDS
            )
            assert claimed == {"jobs": []}
        (test,) = await leased(edge)
        for region, token in (("core", CORE_TOKEN), ("us", ANY_TOKEN)):
            wrong = outcome(test, edge, outcome="down")
            assert await bring(edge, wrong, region, token=token) == {"accepted": False}
        refused = await bring(edge, outcome(test, edge), "core", status=403)
        assert refused == {"error": "forbidden"}
        await bring(edge, outcome(test, edge))
    assert answer()["up"] is True


async def test_a_test_that_no_agent_answers_ends_and_states_it(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_test, "ANSWER_SECONDS_MOST", 1)
    await present(edge, CHECK_TEST)
    async with trying(edge) as answer:
        await leased(edge)
    assert answer()["reason"] == "no_worker"
    assert await edge.api.rows("select 1 from check_tests") == []
