"""The guarantees of the runner: one deadline for all attempts, the last attempt counts, and a local
failure is never a target failure.
"""

import os
import random
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import trio
from trio.testing import MockClock

from leadline.probes import runner
from leadline.probes.check.check import Check, make_check
from leadline.probes.check.condition_evaluation import ProbeValues
from leadline.probes.check.failure import LocalFailure, TargetFailure
from leadline.probes.check.loop_lag import LoopLag
from leadline.probes.check.monitor_spec import Spec
from leadline.probes.check.observation import Observation
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import (
    FailedCondition,
    FailureClass,
    ProbePhase,
    RunOutcome,
    UnknownReason,
)
from leadline.probes.net.connectivity import Connectivity
from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.runner import run
from tests.support.peers.leaks import cancelled_often, nothing_left_behind, settle
from tests.support.peers.servers import (
    HANGS_SECONDS,
    Prober,
    answer,
    answering,
    now,
    read_head,
    serving,
)


@dataclass
class Stall:
    """The loop is blocked, and then the attempt ends as `then` defines."""

    seconds: float
    then: Exception | None = None
    stand_still: Callable[[float], None] = time.sleep


class Scripted:
    """A monitor type whose attempts follow the steps, one after the other."""

    SPEC: Spec

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.attempts = 0

    async def probe(self, check: Check, reach: Egress, watch: Stopwatch) -> Observation:
        self.attempts += 1
        step = self.steps.pop(0)
        await trio.lowlevel.checkpoint()
        if isinstance(step, Stall):
            step.stand_still(step.seconds)
            step = step.then
        if isinstance(step, Exception):
            raise step
        if isinstance(step, ProbePhase):
            watch.begin(step)
            await trio.sleep_forever()
        return Observation(ProbeValues(connected=True), code=7)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> "type[Scripted]":
    """Replaces the next monitor types that are looked up with a scripted one."""

    class Put(Scripted):
        def __init__(self, *steps: object) -> None:
            super().__init__(*steps)
            monkeypatch.setattr(runner, "kind_of", lambda _: self)

    return Put


CHECK = make_check("tcp", "app.example:1", None, {}, [], timeout_seconds=1)


async def test_the_start_of_a_run_uses_the_given_clock(
    prober: Prober, scripted: type[Scripted]
) -> None:
    scripted(None)
    clock = iter([1_000_000, 2_000_000])
    result = await run(CHECK, prober.reach, lambda: next(clock))
    assert (result.started_at, result.outcome, result.code) == (1_000_000, RunOutcome.UP, 7)


async def test_the_last_attempt_counts(prober: Prober, scripted: type[Scripted]) -> None:
    refused = TargetFailure(FailureClass.CONNECT_REFUSED)
    recovering = scripted(refused, refused, None)
    check = replace(CHECK, retries=2)
    assert (await run(check, prober.reach, now)).outcome is RunOutcome.UP
    assert recovering.attempts == 3
    scripted(
        refused, TargetFailure(FailureClass.HTTP_STATUS, 500), TargetFailure(FailureClass.DNS_ERROR)
    )
    assert (await run(check, prober.reach, now)).msg == "dns_error app.example"


async def test_a_blocked_target_is_not_retried(prober: Prober, scripted: type[Scripted]) -> None:
    blocked = scripted(TargetFailure(FailureClass.TARGET_BLOCKED))
    result = await run(replace(CHECK, retries=3), prober.reach, now)
    assert result.msg == "target_blocked app.example"
    assert blocked.attempts == 1


@pytest.mark.parametrize(
    ("phase", "outcome", "failure"),
    [
        (ProbePhase.DNS, RunOutcome.UNKNOWN, FailureClass.PROBE_ERROR),
        (ProbePhase.CONNECT, RunOutcome.DOWN, FailureClass.CONNECT_TIMEOUT),
        (ProbePhase.TLS, RunOutcome.DOWN, FailureClass.TIMEOUT),
        (ProbePhase.FIRST_BYTE, RunOutcome.DOWN, FailureClass.TIMEOUT),
    ],
)
async def test_a_timeout_is_named_by_its_unfinished_phase(
    autojump_clock: MockClock,
    prober: Prober,
    scripted: type[Scripted],
    phase: ProbePhase,
    outcome: RunOutcome,
    failure: str,
) -> None:
    scripted(TargetFailure(FailureClass.CONNECT_REFUSED), phase)
    began = trio.current_time()
    with trio.fail_after(HANGS_SECONDS):
        result = await run(replace(CHECK, retries=1), prober.reach, now)
    assert (result.outcome, result.msg) == (outcome, f"{failure} app.example")
    assert result.phases.unfinished is phase
    # The mock clock advances only while all tasks wait: one deadline covers both attempts.
    assert trio.current_time() - began == pytest.approx(CHECK.timeout_seconds)


async def test_a_probe_bug_is_unknown_and_reports_its_location(
    prober: Prober, scripted: type[Scripted]
) -> None:
    scripted(KeyError("hunter2"))
    result = await run(CHECK, prober.reach, now)
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, UnknownReason.PROBE_BUG)
    assert result.msg == "probe_error app.example"
    assert result.bug is not None
    assert result.bug.startswith("KeyError at ")
    assert "test_run.py" in result.bug
    assert "hunter2" not in repr(result)


async def test_a_local_failure_is_unknown(prober: Prober, scripted: type[Scripted]) -> None:
    for reason in UnknownReason:
        scripted(LocalFailure(reason))
        result = await run(CHECK, prober.reach, now)
        assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)


async def test_a_type_without_a_probe_is_unknown(prober: Prober) -> None:
    result = await run(replace(CHECK, type="push"), prober.reach, now)
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.UNKNOWN_KIND,
    )


# The event loop.


@pytest.mark.parametrize("then", [None, TargetFailure(FailureClass.HTTP_STATUS, 500)])
async def test_a_run_with_a_blocked_loop_is_unknown(
    prober: Prober, scripted: type[Scripted], then: Exception | None
) -> None:
    scripted(Stall(1.15, then))
    result = await run(replace(CHECK, timeout_seconds=5), prober.reach, now)
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.LOOP_STALLED,
    )


async def test_a_timeout_caused_by_a_blocked_loop_is_unknown(
    prober: Prober, nursery: trio.Nursery
) -> None:
    async def late(stream: trio.SocketStream) -> None:
        await read_head(stream)
        time.sleep(1.3)  # noqa: ASYNC251 the loop is to stand still
        await stream.send_all(answer())

    async with serving(late) as port:
        check = make_check("http", f"http://127.0.0.1:{port}/", "GET", {}, (), timeout_seconds=1)
        result = await run(check, prober.reach, now)
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.LOOP_STALLED,
    )


async def test_a_shorter_stall_marks_the_result(
    autojump_clock: MockClock,
    prober: Prober,
    nursery: trio.Nursery,
    scripted: type[Scripted],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stood_still_seconds = 0.0

    def stand_still(seconds: float) -> None:
        nonlocal stood_still_seconds
        stood_still_seconds += seconds

    def now_us() -> int:
        return int((trio.current_time() + stood_still_seconds) * 1_000_000)

    # On this clock only the scripted blocking causes a delay.
    monkeypatch.setattr(LoopLag, "now_us", staticmethod(now_us))
    lag = LoopLag()
    await nursery.start(lag.watch)
    reach = replace(prober.reach, lag=lag)
    scripted(Stall(0.3, stand_still=stand_still), None)
    lagged = await run(CHECK, reach, now)
    await trio.sleep(0.12)
    punctual = await run(CHECK, reach, now)
    assert (lagged.outcome, lagged.lagged) == (RunOutcome.UP, True)
    assert (punctual.outcome, punctual.lagged) == (RunOutcome.UP, False)


async def test_a_run_needs_a_running_lag_watcher(scripted: type[Scripted]) -> None:
    scripted(None)
    with pytest.raises(RuntimeError, match="not running"):
        await run(CHECK, make_reach(probe_policy()), now)


def test_the_worst_stall_of_a_span_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with the maximum over all stalls of the part inside the span."""
    rng = random.Random(7)
    lag, at, noted = LoopLag(), 0, []
    monkeypatch.setattr(LoopLag, "now_us", staticmethod(lambda: at))
    for _ in range(500):
        lag._slept_at_us = at
        stall = rng.choice([0, 30_000, 200_000, 700_000, 1_500_000])
        at += 50_000 + stall
        lag._note(at)
        if stall:
            noted.append((at, stall))
        lag._slept_at_us = at
        began = rng.randrange(at + 1)
        inside = [min(stall, at - began) for at, stall in noted if at >= began]
        assert lag.stalled_since(began) == max(inside, default=0)


async def test_a_stall_before_a_run_is_no_stall_of_the_run(
    autojump_clock: MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher rests, the process stands still, and a run is the first to continue."""
    stood_still_us = 0
    monkeypatch.setattr(
        LoopLag,
        "now_us",
        staticmethod(lambda: int(trio.current_time() * 1_000_000) + stood_still_us),
    )
    lag = LoopLag()
    await nursery.start(lag.watch)
    # Between two wake-ups: at 2.5 s the watcher and this task continue in any order.
    await trio.sleep(2.7)
    since = lag.now_us()
    stood_still_us = 7_000_000
    began = lag.begin()
    assert lag.stalled_since(began) == 0
    assert lag.stalled_since(since) >= 6_500_000
    assert sum(lag.lateness) == 5, "the wake-ups alone are counted"
    await trio.sleep(0.1)
    assert lag.stalled_since(began) == 0
    assert lag.stalled_since(since) >= 6_500_000
    assert lag.stalled_within(1_000_000) >= 6_500_000
    lag.end()
    await trio.sleep(1.0)
    assert lag.stalled_within(1_000_000) == 0


# Connectivity of this host.


async def test_a_network_failure_without_connectivity_is_unknown(prober: Prober) -> None:
    policy, resolver = prober.reach.policy, prober.reach.resolver
    async with serving(answering(answer())) as port:
        online = prober.with_(connectivity=Connectivity("127.0.0.1", port, resolver, policy))
        down = await online.check("tcp", "127.0.0.1:1")
        status = await online.check("http", f"http://127.0.0.1:{port}/", "[STATUS] == 500")
    offline = prober.with_(connectivity=Connectivity("nowhere.example", 1, resolver, policy))
    unknown = await offline.check("tcp", "127.0.0.1:1")
    assert (down.outcome, down.msg) == (RunOutcome.DOWN, "connect_refused 127.0.0.1")
    assert (status.outcome, status.msg) == (RunOutcome.DOWN, "condition_failed 127.0.0.1")
    assert (unknown.outcome, unknown.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.PROBER_OFFLINE,
    )


async def test_an_expected_connection_failure_without_connectivity_is_unknown(
    prober: Prober,
) -> None:
    policy, resolver = prober.reach.policy, prober.reach.resolver
    condition = "[CONNECTED] == false"
    async with serving(answering(answer())) as port:
        online = prober.with_(connectivity=Connectivity("127.0.0.1", port, resolver, policy))
        closed = await online.check("tcp", "127.0.0.1:1", condition)
    offline = prober.with_(connectivity=Connectivity("nowhere.example", 1, resolver, policy))
    unknown = await offline.check("tcp", "127.0.0.1:1", condition)
    assert closed.outcome is RunOutcome.UP
    assert (unknown.outcome, unknown.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.PROBER_OFFLINE,
    )


async def test_one_connectivity_check_serves_all_earlier_failures(
    prober: Prober,
) -> None:
    asked = 0

    async def count(stream: trio.SocketStream) -> None:
        nonlocal asked
        asked += 1
        await trio.sleep_forever()

    async with serving(count) as port:
        connectivity = Connectivity("127.0.0.1", port, prober.reach.resolver, prober.reach.policy)
        since = time.monotonic()
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(connectivity.online, since)
        assert await connectivity.online(time.monotonic())
        await trio.testing.wait_all_tasks_blocked()
    assert asked == 2


async def test_exhausted_descriptors_are_a_local_failure(prober: Prober) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        result = await prober.check("tcp", "127.0.0.1:1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result.unknown_reason is UnknownReason.LOCAL_RESOURCES


# Cancellation.


async def test_cancellations_leave_nothing_open(prober: Prober, names: object) -> None:
    """At random instants of DNS, connecting to several addresses, TLS, reading and pausing."""
    rng = random.Random(11)
    names.records[("app.example", "A")] = [["127.0.0.1", "127.0.0.2"]]  # type: ignore[attr-defined]
    names.records[("app.example", "AAAA")] = [["::1"]]  # type: ignore[attr-defined]
    names.ttl = 0  # type: ignore[attr-defined]

    async def slow(stream: trio.SocketStream) -> None:
        await read_head(stream)
        await trio.sleep(0.002)
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        await trio.sleep(0.002)

    async with serving(slow) as port:
        targets = [
            f"http://app.example:{port}/",
            f"https://app.example:{port}/",
            "http://gone.example/",
        ]
        prober.reach.contexts.warm_up()
        await prober.check("http", targets[1], timeout_seconds=1)
        await settle()
        with nothing_left_behind():
            await cancelled_often(
                lambda: prober.check("http", rng.choice(targets), "[BODY] exists", retries=1)
            )


async def test_a_failed_condition_is_named_with_its_value(prober: Prober) -> None:
    body = b'{"state": "DOWN", "key": "s3cret"}'
    async with serving(answering(answer(body, "503 Down"))) as port:
        url = f"http://127.0.0.1:{port}/"
        status = await prober.check("http", url, "[CONNECTED] == true", "[STATUS]==200")
        good = await prober.check("http", url, "[STATUS] == 503")
        hidden = await prober.check("http", url, "[BODY].state == UP")
        content = await prober.check("http", url, "[BODY].state == UP", show_values=True)
        secret = await prober.check(
            "http", url, "[BODY].key == x", show_values=True, secrets={"token": "s3cret"}
        )
        plain = await prober.check("http", url)
    assert status.msg == "condition_failed 127.0.0.1"
    # The condition as it is stored, and the first that is false.
    assert status.failed == FailedCondition("[STATUS]==200", "503")
    assert good.failed is None
    assert plain.msg == "http_status 127.0.0.1"
    assert plain.failed is None
    assert hidden.failed == FailedCondition("[BODY].state == UP")
    assert content.failed == FailedCondition("[BODY].state == UP", '"DOWN"')
    assert secret.failed == FailedCondition("[BODY].key == x", "hidden: contains a secret")
    assert '"DOWN"' not in repr(content)


async def test_a_value_of_a_long_document_is_read_beside_the_loop(prober: Prober) -> None:
    body = b'{"pad": "' + b"x" * 200_000 + b'", "state": "DOWN"}'
    async with serving(answering(answer(body))) as port:
        url = f"http://127.0.0.1:{port}/"
        result = await prober.check("http", url, "[BODY].state == UP", show_values=True)
    assert result.failed == FailedCondition("[BODY].state == UP", '"DOWN"')
