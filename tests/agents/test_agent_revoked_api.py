"""After the revocation of its token an agent is not live, and its jobs are free for others."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.storage.core.instant import SECOND, Instant
from tests.support.app.edge import Edge, open_edge, result

PATH = "/api/v1/agent-tokens"


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        yield made


async def make(edge: Edge) -> tuple[str, str]:
    body = {"name": "attic", "region": "eu"}
    answer = await edge.api.ask("global_admin", "POST", PATH, body)
    made = await answer.get_json()
    return made["id"], made["token"]


async def load(edge: Edge) -> Any:
    answer = await edge.api.ask("global_admin", "GET", "/api/v1/admin/fleet")
    regions = (await answer.get_json())["regions"]
    return next(one for one in regions if one["name"] == "eu")


async def test_an_agent_makes_its_region_live_while_its_heartbeats_arrive(edge: Edge) -> None:
    uid, token = await make(edge)
    await edge.declare(token=token)
    assert (await load(edge))["agents"] == 1
    edge.clock.forward(44)
    assert (await load(edge))["live"] is True
    edge.clock.forward(1)
    assert (await load(edge))["live"] is False
    await edge.declare(token=token)
    assert (await load(edge))["live"] is True
    await edge.api.ask("global_admin", "DELETE", f"{PATH}/{uid}")
    assert (await load(edge))["live"] is False


async def test_jobs_of_a_revoked_agent_are_claimed_by_another_immediately(edge: Edge) -> None:
    uid, token = await make(edge)
    row = await edge.monitor()
    due = await edge.due(row)
    await edge.declare()
    await edge.declare(token=token)
    assert (await load(edge))["pending_jobs"] == 1
    assert len(await edge.claim(token=token)) == 1
    assert (await load(edge))["pending_jobs"] == 0
    assert await edge.claim() == []
    await edge.api.ask("global_admin", "DELETE", f"{PATH}/{uid}")
    assert (await load(edge))["pending_jobs"] == 1
    await edge.bring(result(row, due), token=token, status=401)
    assert len(await edge.claim()) == 1
    await edge.bring(result(row, due))
    assert await edge.ledger(row) == [(due, "covered")]


async def test_a_run_without_a_window_is_too(edge: Edge) -> None:
    uid, token = await make(edge)
    await edge.api.new_monitor(region="eu")
    edge.clock.now = Instant(edge.clock.now + SECOND)
    await edge.declare()
    await edge.declare(token=token)
    (held,) = await edge.claim(token=token)
    assert await edge.claim() == []
    await edge.api.ask("global_admin", "DELETE", f"{PATH}/{uid}")
    (again,) = await edge.claim()
    assert again["job_id"] == held["job_id"]
