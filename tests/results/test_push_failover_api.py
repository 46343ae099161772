"""Pushes and other requests while a real PostgreSQL fails: each push is recorded once within the
bound, and a failure that outlasts the bound is 500."""

import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import trio

from leadline.daemon.loops.result_recorder import Recorder
from leadline.http.auth.passwords import Passwords
from leadline.http.monitors.routes import push as push_route
from leadline.storage.core.instant import Instant
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.results.event_bus import Bus
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.worlds.local_failures import FlakyPool
from tests.support.worlds.outage import Outage, outage_of

HANGS_SECONDS = 30


@pytest.fixture
async def outage(dsn: str, server_dsn: str) -> AsyncIterator[Outage]:
    async with outage_of(dsn, server_dsn) as made:
        yield made


async def pushed(api: Api) -> dict[str, Any]:
    """Creates a push monitor."""
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask("editor", "POST", path, {"name": "Job", "type": "push"})
    made: dict[str, Any] = await answer.get_json()
    return {**made, "path": f"/api/v1/public/push/{made['push_token']}"}


async def until_waiting(api: Api) -> None:
    with trio.fail_after(HANGS_SECONDS):
        while not api.pool.counts().waiting:  # noqa: ASYNC110 - it sets no event
            await trio.sleep(0.005)


async def beats(api: Api) -> int:
    ((count,),) = await api.rows("select count(*) from heartbeats where msg is null")
    return int(count)


@pytest.mark.parametrize("is_known", [True, False], ids=["known token", "unknown token"])
async def test_a_push_outlasts_a_failover(api: Api, outage: Outage, is_known: bool) -> None:
    made = await pushed(api)
    if is_known:
        assert (await api.ask("nobody", "POST", f"{made['path']}?msg=before")).status_code == 200
    statuses = []

    async def push() -> None:
        answer = await api.ask("nobody", "POST", made["path"])
        statuses.append(answer.status_code)

    outage.begin()
    with trio.fail_after(HANGS_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(push)
            await until_waiting(api)
            outage.end()
    assert statuses == [200]
    assert await beats(api) == 1


async def test_a_sender_that_hangs_up_does_not_cancel_its_push(api: Api, outage: Outage) -> None:
    made = await pushed(api)
    hang_up = trio.CancelScope()

    async def push() -> None:
        with hang_up:
            await api.ask("nobody", "POST", made["path"])

    outage.begin()
    with trio.fail_after(HANGS_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(push)
            await until_waiting(api)
            hang_up.cancel()
            await trio.lowlevel.checkpoint()
            outage.end()
    assert await beats(api) == 1


async def test_a_mark_outlasts_a_failover_and_is_recorded_once(api: Api, outage: Outage) -> None:
    made = await pushed(api)
    statuses = []

    async def push() -> None:
        statuses.append((await api.ask("nobody", "POST", f"{made['path']}/start")).status_code)

    outage.begin()
    with trio.fail_after(HANGS_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(push)
            await until_waiting(api)
            outage.end()
    assert statuses == [200]
    assert await api.rows("select kind from push_events") == [("start",)]


@pytest.mark.parametrize("wanted", ["monitor_states", "monitors"])
async def test_a_push_survives_a_lost_connection(
    api: Api, outage: Outage, dsn: str, wanted: str
) -> None:
    """The test ends the backend of the push while it waits for the lock of the state or of the
    token.
    """
    made = await pushed(api)
    statuses = []

    async def push() -> None:
        statuses.append((await api.ask("nobody", "POST", made["path"])).status_code)

    async with (
        open_pool(dsn, name="blocker", size=1, clock=lambda: FROZEN_NOW) as other,
        trio.open_nursery() as nursery,
    ):
        with trio.fail_after(HANGS_SECONDS):
            async with other.transaction("block") as tx:
                await tx.execute(f"lock table {wanted} in access exclusive mode")
                nursery.start_soon(push)
                await outage.until_waiting()
                assert outage.end_connections("wait_event_type = 'Lock'") == 1
    assert statuses == [200]
    assert await beats(api) == 1


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
async def test_a_push_whose_commit_was_not_answered_is_recorded_once(
    pool: Pool, passwords: Passwords, when: str
) -> None:
    bus = Bus()
    flaky = FlakyPool(pool)
    recorder = Recorder(cast("Pool", flaky), bus, lambda: FROZEN_NOW)
    getattr(flaky, when).add("record_results")
    async with open_api(pool, FROZEN_NOW, passwords, bus=bus, recorder=recorder) as api:
        made = await pushed(api)
        statuses = []

        async def push() -> None:
            statuses.append((await api.ask("nobody", "POST", made["path"])).status_code)

        with trio.fail_after(HANGS_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(push)
                await flaky.failed.wait()
                getattr(flaky, when).clear()
        assert statuses == [200]
        assert await beats(api) == 1


async def test_many_pushes_while_connections_break_are_each_recorded_once(
    dsn: str, passwords: Passwords, outage: Outage
) -> None:
    ticks = iter(range(10**9))

    def clock() -> Instant:
        return Instant(FROZEN_NOW + next(ticks))

    statuses: list[int] = []
    async with (
        open_pool(dsn, name="many", size=6, clock=clock) as pool,
        open_api(pool, FROZEN_NOW, passwords, clock=clock) as api,
    ):
        made = await pushed(api)

        async def push(number: int) -> None:
            answer = await api.ask("nobody", "POST", f"{made['path']}?msg={number}")
            statuses.append(answer.status_code)

        with trio.fail_after(HANGS_SECONDS):
            for batch in range(8):
                async with trio.open_nursery() as nursery:
                    for number in range(25):
                        nursery.start_soon(push, batch * 25 + number)
                    for _ in range(3):
                        await trio.lowlevel.checkpoint()
                        outage.end_connections("application_name = 'leadline many'")
                    api.context.push_targets.clear()
        assert statuses == [200] * 200
        stored = await api.rows("select msg, count(*) from heartbeats group by 1")
        assert sorted(stored) == sorted((str(number), 1) for number in range(200))


async def test_a_push_of_a_known_token_that_outlasts_its_bound_is_500_and_stored_later(
    api: Api, outage: Outage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(push_route, "PUSH_SECONDS", 0.05)
    # A busy machine can take longer than the time for which a token is known.
    monkeypatch.setattr(push_route, "KNOWN_SECONDS", HANGS_SECONDS)
    made = await pushed(api)
    assert (await api.ask("nobody", "POST", f"{made['path']}?msg=before")).status_code == 200
    outage.begin()
    with trio.fail_after(HANGS_SECONDS):
        answer = await api.ask("nobody", "POST", made["path"])
    assert (answer.status_code, await answer.get_json()) == (500, {"error": "internal_error"})
    assert "push is not stored yet" in caplog.text
    recorder = cast("Recorder", api.context.recorder)
    assert recorder.committed_through() < FROZEN_NOW
    outage.end()
    with trio.fail_after(HANGS_SECONDS):
        while recorder.committed_through() < FROZEN_NOW:  # noqa: ASYNC110 - it sets no event
            await trio.sleep(0.005)
    assert await beats(api) == 1
    assert recorder.lost == 0


async def test_a_push_of_an_unknown_token_that_outlasts_its_bound_is_500_and_counts_as_lost(
    api: Api, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_route, "PUSH_SECONDS", 0.05)
    made = await pushed(api)
    outage.begin()
    answer = await api.ask("nobody", "POST", made["path"])
    assert (answer.status_code, await answer.get_json()) == (500, {"error": "internal_error"})
    assert cast("Recorder", api.context.recorder).lost == 1


@pytest.mark.parametrize("was_ready", [True, False])
@pytest.mark.parametrize(
    ("who", "method", "path"),
    [
        ("editor", "GET", "/api/v1/me"),
        ("agent", "POST", "/api/v1/agent/results?region=eu"),
        ("nobody", "GET", "/api/v1/public/status-pages/harbour"),
        ("nobody", "GET", "/status/harbour"),
    ],
)
async def test_a_database_failure_is_500_and_logged_once_the_process_was_ready(
    dsn: str,
    passwords: Passwords,
    outage: Outage,
    caplog: pytest.LogCaptureFixture,
    was_ready: bool,
    who: str,
    method: str,
    path: str,
) -> None:
    async with (
        open_pool(dsn, name="test", size=2, clock=lambda: FROZEN_NOW, acquire_seconds=0.05) as pool,
        open_api(pool, FROZEN_NOW, passwords, was_ready=lambda: was_ready) as api,
    ):
        outage.begin()
        answer = await api.ask(who, method, path, *([{"results": []}] if method == "POST" else []))
    logged = [vars(each) for each in caplog.records if "database failure" in each.getMessage()]
    if was_ready:
        assert answer.status_code == 500
        assert "Retry-After" not in answer.headers
        (entry,) = logged
        assert (entry["levelno"], entry["method"]) == (logging.ERROR, method)
        assert "no connection of pool test" in entry["cause"]
    else:
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert logged == []
    if path.startswith("/api/"):
        code = "internal_error" if was_ready else "not_ready"
        assert await answer.get_json() == {"error": code}
