"""A check is tested in the region of its monitor: in this process, by a worker, or not at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import check_test_worker
from leadline.daemon.loops.check_test_worker import CheckTestWorker
from leadline.http.monitors.routes import check_test as trial
from leadline.probes.runner import run
from leadline.storage.engine.keyring import Keyring
from leadline.storage.scheduling.tables import presences
from tests.support.app.cast import Api

SHOP = {"name": "Shop", "type": "tcp", "region": "eu", "timeout_seconds": 2}


async def tried(api: Api, **given: Any) -> Any:
    path = f"/api/v1/projects/{api.project}/monitors/test"
    with trio.fail_after(30):
        answer = await api.ask("editor", "POST", path, {**SHOP, **given})
    assert answer.status_code == 200, await answer.get_json()
    return await answer.get_json()


@pytest.fixture
async def target() -> AsyncIterator[str]:
    """The address of a server that accepts TCP connections."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, _hold, 0, host="127.0.0.1"))
        yield f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def _hold(stream: trio.SocketStream) -> None:
    await stream.receive_some()


def worker_of(api: Api, **changes: Any) -> CheckTestWorker:
    context = api.context
    worker = CheckTestWorker(
        api.pool,
        uuid7(),
        ("eu",),
        context.keyring,
        context.reach,
        trio.CapacityLimiter(2),
        context.clock,
    )
    return replace(worker, **changes)


@asynccontextmanager
async def working(api: Api, worker: CheckTestWorker) -> AsyncIterator[list[str]]:
    """A worker of the region is there and tries what waits; the rows as it found them."""
    async with api.pool.transaction("present") as tx:
        await presences.begin_presence(
            tx, worker.process, tx.now, "there", ["worker"], ["eu"], "1", accepts_pushes=False
        )
    seen: list[str] = []

    async def work(nursery: trio.Nursery) -> None:
        while True:
            seen.extend(str(row) for row in await api.rows("select t::text from check_tests t"))
            for found in await worker.lease():
                nursery.start_soon(worker.answer, found)
            await trio.sleep(0.05)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, nursery)
        yield seen
        nursery.cancel_scope.cancel()


async def test_a_test_without_a_prober_reports_no_failure_of_the_target(
    api: Api, target: str
) -> None:
    found = await tried(api, target=target)
    assert found == {
        "up": False,
        "latency_ms": 0,
        "msg": "probe_error 127.0.0.1",
        "reason": "no_worker",
    }
    assert await api.rows("select 1 from check_tests") == []


async def test_a_worker_of_the_region_tries_it_once(api: Api, target: str) -> None:
    async with working(api, worker_of(api)) as seen:
        assert (await tried(api, target=target))["up"] is True
    assert seen
    assert await api.rows("select 1 from check_tests") == []


async def test_referenced_secrets_are_encrypted_for_the_worker(api: Api, target: str) -> None:
    name = await api.new_secret("horse-battery", "shop-token")
    config = {"auth_mode": "bearer", "token_ref": name}
    given = {"type": "http", "target": f"http://{target}/", "config": config}
    async with working(api, worker_of(api)) as seen:
        assert (await tried(api, **given))["up"] is False
    assert seen
    assert "horse-battery" not in "".join(seen)


async def test_a_worker_without_the_key_reports_a_local_failure(api: Api, target: str) -> None:
    config = {"auth_mode": "basic", "username": "shop", "password": "horse-battery"}
    given = {"type": "http", "target": f"http://{target}/", "config": config}
    worker = worker_of(api, keyring=Keyring(b"x" * 32))
    async with working(api, worker):
        found = await tried(api, **given)
    assert (found["up"], found["msg"].partition(" ")[0]) == (False, "probe_error")


async def test_the_wait_for_a_silent_worker_is_limited(
    api: Api, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "ANSWER_SECONDS_MOST", 1)
    worker = worker_of(api, permits=trio.CapacityLimiter(1))
    await worker.permits.acquire_on_behalf_of(object())
    async with working(api, worker):
        found = await tried(api, target=target)
    assert found["msg"] == "probe_error 127.0.0.1"
    assert await api.rows("select 1 from check_tests") == []


async def test_a_test_states_the_failed_condition(api: Api, target: str) -> None:
    given = {"target": target, "conditions": ["[CONNECTED] == true", "[CONNECTED] == false"]}
    async with working(api, worker_of(api)):
        found = await tried(api, **given)
        assert "conditions" not in await tried(api, target=target)
    assert found["msg"] == "condition_failed 127.0.0.1"
    assert found["conditions"] == ["[CONNECTED] == false (true)"]


@pytest.mark.parametrize("region", ["eu", "core"])
async def test_the_cpu_is_charged_to_the_organization_of_the_user(
    api: Api, target: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[int] = []

    async def noted(check: Any, reach: Any, now: Any, org: int = 0) -> Any:
        charged.append(org)
        return await run(check, reach, now, org)

    for module in (trial, check_test_worker):
        monkeypatch.setattr(module, "run", noted)
    if region == "eu":
        async with working(api, worker_of(api)):
            assert (await tried(api, target=target))["up"] is True
    else:
        assert (await tried(api, target=target, region=region))["up"] is True
    assert charged == [api.orgs["acme"][0]]
