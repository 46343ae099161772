"""A complete agent against a server of the protocol: each due window is run and reported once, also
with lost connections, refusals, invalid responses and wrong clocks."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
import trio

from leadline.daemon.agent.connection_state import FAILURES, ConnectionState
from leadline.daemon.agent.job_parser import SECOND, micros
from leadline.probes.check.loop_lag import LoopLag
from tests.agents.fake_server import FakeServer, Watched
from tests.agents.fast_agent import (
    PACE,
    PATIENCE_SECONDS,
    FastTime,
    agent,
    know_the_time,
    not_running,
    target,
    until,
)
from tests.agents.job_samples import REGION, T0, definition, job


@pytest.fixture
def time() -> FastTime:
    return FastTime()


@pytest.fixture
async def server(time: FastTime) -> AsyncIterator[FakeServer]:
    async with FakeServer(time.truth).listening() as server:
        yield server


@pytest.fixture
async def there() -> AsyncIterator[str]:
    async with target() as place:
        yield place


def instant(text: str) -> int:
    return micros(msgspec.convert(text, datetime))


def dues(server: FakeServer, monitor: UUID) -> list[int]:
    return [instant(due) for found, due in server.taken() if found == monitor]


def job_ids(server: FakeServer) -> list[str]:
    return [item["job_id"] for _, item in server.results]


async def test_a_due_window_is_run_and_reported_once(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    up, down = Watched(uuid4(), there, 10), Watched(uuid4(), "127.0.0.1:1", 10)
    server.watched = [up, down]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 8)
        assert ours.puller.standing() is ConnectionState.CONNECTED
    assert len(set(job_ids(server))) == len(server.results)
    for route, item in server.results:
        assert route == "results"
        assert instant(item["ts"]) >= instant(item["due_at"])
        assert item["up"] is (UUID(item["monitor_id"]) == up.monitor)
        assert item["msg"] == ("" if item["up"] else "connect_refused 127.0.0.1")
    claim = next(found for found in server.headers if found["route"] == "jobs")
    assert UUID(claim["x-leadline-agent"])
    assert server.heard[0]["version"]


async def test_cut_off_it_runs_every_window_and_brings_them_in_order(
    time: FastTime, there: str, tmp_path: Path
) -> None:
    server = FakeServer(time.truth)
    server.watched = [Watched(uuid4(), there, seconds) for seconds in (60, 90, 120)]
    async with server.listening():
        async with agent(tmp_path, server.url, time.count) as ours:
            await until(lambda: len(ours.known) == 3 and len(server.results) >= 3)
            server.fault = lambda route, _: None
            cut_at = time.truth()
            await until(lambda: ours.puller.standing() is ConnectionState.CUT_OFF)
            await until(lambda: time.truth() > cut_at + 240 * SECOND)
            held = len(ours.ring)
            assert held >= 5
            server.fault = None
            back_at = time.truth()
            await until(lambda: ours.puller.standing() is ConnectionState.CONNECTED)
            await until(
                lambda: (
                    not len(ours.ring)
                    and all(max(dues(server, each.monitor)) > back_at for each in server.watched)
                )
            )
    for each in server.watched:
        found = sorted(set(dues(server, each.monitor)))
        step = each.interval_seconds * SECOND
        assert found == list(range(found[0], found[-1] + 1, step)), "a window is missing"
        assert found[-1] > back_at
        assert len(dues(server, each.monitor)) == len(found), "a window was run twice"
    backfilled = [instant(item["ts"]) for route, item in server.results if route == "backfill"]
    assert len(backfilled) >= 5
    assert backfilled == sorted(backfilled)


async def test_an_agent_that_is_started_again_brings_what_it_kept(
    time: FastTime, there: str, tmp_path: Path
) -> None:
    server = FakeServer(time.truth)
    server.watched = [Watched(uuid4(), there, 10)]
    async with server.listening():
        async with agent(tmp_path, server.url, time.count) as ours:
            await until(lambda: len(server.results) >= 1)
            server.fault = lambda route, _: (503, {"error": "not_ready"})
            await until(lambda: len(ours.ring) >= 3)
        kept = len(ours.ring)
        assert kept >= 3
        server.fault, server.gives = None, False
        before = len(server.results)
        async with agent(tmp_path, server.url, time.count) as ours:
            await until(lambda: len(ours.ring) == 0 and ours.counts.accepted >= kept)
    assert len(server.results) == before + kept
    assert len(set(job_ids(server))) == len(server.results)


@pytest.mark.parametrize("status", [400, 403])
async def test_a_single_refused_result_does_not_block_the_others(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path, status: int
) -> None:
    bad = uuid4()
    server.refuse = lambda item: status if item["monitor_id"] == str(bad) else 0
    server.extra = [
        job(
            T0,
            monitor=bad if n in (7, 11) else uuid4(),
            target=there,
            is_window=False,
            lease_until=T0 + 10**10,
        )
        for n in range(20)
    ]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) == 18 and not len(ours.ring))
        assert ours.counts.dropped[f"refused_{status}"] == 2
        assert ours.counts.accepted == 18
        assert ours.puller.standing() is ConnectionState.CONNECTED


async def test_a_result_that_the_server_cannot_store_is_dropped_and_counted(
    time: FastTime,
    server: FakeServer,
    there: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = uuid4()
    server.unstorable = lambda item: item["monitor_id"] == str(bad)
    monitors = [bad if n in (3, 4) else uuid4() for n in range(8)]
    server.extra = [
        job(T0, monitor=uid, target=there, is_window=False, lease_until=T0 + 10**10)
        for uid in monitors
    ]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) == 6 and not len(ours.ring))
        await until(lambda: ours.counts.dropped["unstorable"] == 2)
        assert ours.counts.accepted == 6
    told = [vars(each) for each in caplog.records if "cannot store" in each.message]
    assert [(each["monitor"], each["reason"]) for each in told] == [(str(bad), "too old")] * 2


@pytest.mark.parametrize("status", [400, 403])
async def test_no_result_is_dropped_if_the_agent_itself_is_refused(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path, status: int
) -> None:
    """If every request is refused, the agent is at fault and not one result."""
    server.extra = [job(T0, target=there, is_window=False, lease_until=T0 + 10**10)]

    refused: list[str] = []

    def everything(route: str, _: FakeServer) -> object:
        refused.append(route)
        return status, {"error": "no"}

    def fault(route: str, _: FakeServer) -> object:
        if route in ("results", "backfill"):
            server.fault = everything
            return status, {"error": "no"}
        return ...

    server.fault = fault
    async with agent(tmp_path, server.url, time.count) as ours:
        # One heartbeat is the sender's, which tests whether the agent is refused; another can come
        # at any time.
        await until(lambda: refused.count("heartbeat") >= 2)
        # After a 400 the agent counts itself as cut off and can have run a window.
        assert len(ours.ring) >= 1
        assert not ours.counts.dropped
        server.fault = None
        assert await ours.puller.greet()
        await until(lambda: len(server.results) >= 1)


async def test_a_revoked_token_ends_all_known_checks(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    server.watched = [Watched(uuid4(), there, 10)]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 2)
        server.token = "another"
        await until(lambda: ours.puller.standing() is ConnectionState.REFUSED)
        assert len(ours.known) == 0
        made = ours.counts.up
        at = time.truth()
        await until(lambda: time.truth() > at + 40 * SECOND)
        assert ours.counts.up <= made + 1, "the agent runs checks after the refusal"
        kept = len(ours.ring)
    assert sum(ours.counts.dropped.values()) == 0
    assert len(ours.ring) == kept


GARBAGE: list[Any] = [
    (200, {"hello": "world"}),
    (200, []),
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{",
    b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n" + b"[" * 20_000_000,
    (500, {"error": "internal_error"}),
    (404, {"error": "not_found"}),
    (429, {"error": "rate_limited"}),
    None,
]


@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
async def test_an_invalid_response_acknowledges_no_result_and_counts_as_a_cut(
    time: FastTime, server: FakeServer, tmp_path: Path, answer: object
) -> None:
    async with not_running(tmp_path, server.url, time.count) as ours:
        # An agent claims nothing before.
        await know_the_time(ours)
        ours.ring.keep(b'{"job_id":"a"}', 0)
        server.fault = lambda route, _: answer
        for _ in range(FAILURES):
            assert ours.puller.standing() is ConnectionState.CONNECTED
            assert await ours.sender.pass_once() > 0
            assert await ours.puller.claim_once() > 0
        assert ours.puller.standing() is ConnectionState.CUT_OFF
        assert not await ours.puller.greet()
        assert (len(ours.ring), len(ours.known), ours.runs.room()) == (1, 0, 100)
        server.fault = None
        assert await ours.puller.greet()
        server.extra = [job(T0)]
        assert await ours.puller.claim_once() == 0
        assert ours.puller.standing() is ConnectionState.CONNECTED
        assert await ours.sender.pass_once() == 0
        assert not ours.counts.dropped
        assert len(ours.ring) == 0


async def never() -> None:
    await trio.sleep_forever()


@pytest.mark.soak
async def test_a_line_that_swallows_everything_is_a_cut_and_heals(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    server.watched = [Watched(uuid4(), there, 60)]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 1 and len(ours.known) == 1)
        server.fault = lambda route, _: never()
        await until(
            lambda: ours.puller.standing() is ConnectionState.CUT_OFF and ours.counts.alone >= 1
        )
        server.fault = None
        await until(lambda: ours.puller.standing() is ConnectionState.CONNECTED)
        back_at = time.truth()
        await until(lambda: dues(server, server.watched[0].monitor)[-1] > back_at)
        await until(lambda: not len(ours.ring))
        assert not ours.counts.dropped


ANSWER_SECONDS = 2


async def test_answers_that_take_seconds_are_answers(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    async def slowly(route: str) -> object:
        await trio.sleep(ANSWER_SECONDS)
        return ...

    server.watched = [Watched(uuid4(), there, 120)]
    server.fault = lambda route, _: slowly(route) if route != "jobs" else ...
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 3)
        assert ours.puller.standing() is ConnectionState.CONNECTED
        assert ours.counts.alone == 0
    for _, item in server.results:
        # The error of the agent's clock is at most the duration of an answer.
        latest = server.now() + ANSWER_SECONDS * PACE * SECOND
        assert instant(item["due_at"]) <= instant(item["ts"]) <= latest


async def test_a_claim_that_is_too_large_is_repeated_in_smaller_parts(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    server.extra = [
        job(T0, target=there, is_window=False, lease_until=T0 + 10**10, config={"x": "y" * 900_000})
        for _ in range(24)
    ]
    kept = list(server.extra)

    def fault(route: str, _: FakeServer) -> object:
        """Jobs of a response beyond the size limit of the agent were not received and are given out
        again."""
        if route == "jobs" and not server.extra and len(server.results) < 24:
            told = {UUID(item["monitor_id"]) for _, item in server.results}
            server.extra = [raw for raw in kept if UUID(raw["monitor_id"]) not in told]
        return ...

    server.fault = fault
    async with agent(tmp_path, server.url, time.count):
        await until(lambda: len({monitor for monitor, _ in server.taken()}) == 24)


async def test_while_the_time_is_in_doubt_results_wait(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    server.watched = [Watched(uuid4(), there, 10)]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 2)
        heartbeats = len(server.heard)
        # One odd answer, and then as before.
        server.shift = 3_600 * SECOND
        await until(lambda: len(server.heard) > heartbeats)
        server.shift = 0
        await until(lambda: not ours.clock.is_doubted and ours.clock.era == 0)
        told = len(server.results)
        await until(lambda: len(server.results) > told)
        assert not ours.counts.dropped
    for _, item in server.results:
        assert T0 <= instant(item["ts"]) < time.truth() + 600 * SECOND


async def test_after_a_leap_of_the_servers_time_instants_are_its_new_ones(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    server.watched = [Watched(uuid4(), there, 10)]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) >= 2)
        server.shift = 3_600 * SECOND
        leapt_at = server.now()
        await until(lambda: ours.clock.era == 1)
        leapt = len(server.results)
        await until(lambda: len(server.results) >= leapt + 3)
        last = server.results[-1][1]
        assert leapt_at <= instant(last["ts"]) < server.now() + 120 * SECOND
    assert ours.counts.up == ours.counts.accepted + ours.counts.dropped["clock"] + len(ours.ring)


async def test_a_leap_drops_what_was_seen_since_the_last_good_answer_and_no_more(
    time: FastTime, server: FakeServer, tmp_path: Path
) -> None:
    async with not_running(tmp_path, server.url, time.count) as ours:
        await know_the_time(ours)
        ours.ring.keep(b'"sure"', 0)
        assert await ours.puller.greet()
        ours.ring.keep(b'"unsure"', 0)
        ours.known.learn(definition())
        server.shift = -3_600 * SECOND
        assert await ours.puller.greet()
        assert ours.clock.is_doubted
        ours.ring.keep(b'"unsure"', 0)
        assert await ours.sender.pass_once() > 0, "it sends while the time is in doubt"
        assert len(ours.ring) == 3
        assert await ours.puller.greet()
        assert [row.body for row in ours.ring.oldest(9)] == [b'"sure"']
        assert ours.counts.dropped == {"clock": 2}
        assert len(ours.known) == 0


@pytest.mark.parametrize(("hours", "knows"), [(23, 1), (25, 0)])
async def test_a_disconnected_agent_runs_known_checks_for_a_day(
    time: FastTime,
    server: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hours: int,
    knows: int,
) -> None:
    async with not_running(tmp_path, server.url, time.count) as ours:
        await know_the_time(ours)
        ours.known.learn(definition())
        free = ours.runs.room()
        assert ours.puller.look_once() > 0
        assert ours.runs.room() == free, "a connected agent ran a known check"
        later = LoopLag.now_us() + hours * 3_600 * SECOND
        monkeypatch.setattr(ours.puller, "_count_us", lambda: later)
        assert ours.puller.look_once() > 0
        assert len(ours.known) == knows
        assert ours.runs.room() == free - knows


async def test_a_run_with_a_clock_jump_is_dropped(
    time: FastTime, server: FakeServer, tmp_path: Path
) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    place = f"ws://127.0.0.1:{listener.socket.getsockname()[1]}/"
    lease_until = T0 + 10**10
    server.extra = [
        job(T0, kind="websocket", target=place, is_window=False, lease_until=lease_until)
    ]
    async with agent(tmp_path, server.url, time.count) as ours:
        with trio.fail_after(PATIENCE_SECONDS):
            stream = await listener.accept()
        ours.clock.era += 1
        # Ends the run immediately, because a longer run can become unknown on a busy machine.
        await stream.aclose()
        await until(lambda: ours.counts.dropped["clock"] == 1)
        assert len(ours.ring) == 0
    await listener.aclose()


async def test_an_invalid_job_is_counted_without_a_result(
    time: FastTime, server: FakeServer, there: str, tmp_path: Path
) -> None:
    late = job(T0, target=there, is_window=False, lease_until=T0 + 10**10)
    server.extra = [
        late | {"carrier": 9},
        late | {"carrier": 2},
        {"monitor_id": "nobody"},
        job(T0 - 10**9, target=there, lease_until=T0 - 10**9 + SECOND),
        job(T0, kind="async_canary", is_window=False, lease_until=T0 + 10**10) | {"carrier": 1},
        late,
    ]
    async with agent(tmp_path, server.url, time.count) as ours:
        await until(lambda: len(server.results) == 1 and ours.counts.refused["late"] == 1)
        await until(lambda: sum(ours.counts.unknown.values()) == 1)
        refused = dict(ours.counts.refused)
    assert {key: refused[key] for key in ("carrier_unknown", "envelope", "unreadable")} == {
        "carrier_unknown": 1,
        "envelope": 1,
        "unreadable": 1,
    }
    assert REGION not in str(server.results[0][1])


async def test_it_claims_no_more_than_it_can_begin(
    time: FastTime, server: FakeServer, tmp_path: Path
) -> None:
    silent = await trio.open_tcp_listeners(0, host="127.0.0.1")
    place = f"127.0.0.1:{silent[0].socket.getsockname()[1]}"
    server.extra = [
        job(T0, kind="websocket", target=f"ws://{place}/", is_window=False, lease_until=T0 + 10**10)
        for _ in range(9)
    ]
    async with agent(tmp_path, server.url, time.count, concurrency=3) as ours:
        await until(lambda: ours.runs.room() <= 0)
        assert len(server.extra) >= 6
        await until(lambda: ours.counts.down >= 1)
        await until(lambda: not server.extra)
    for listener in silent:
        await listener.aclose()
