"""ICMP checks of this host, and of a simulated far host that loses, forges and refuses packets."""

import errno
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.failure import LocalFailure
from leadline.probes.check.result import (
    FailureClass,
    ProbePhase,
    RunOutcome,
    UnknownReason,
    message,
)
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import canary_policy, probe_policy
from leadline.probes.net.icmp_echo import TOKEN_BYTES, Echo, answered, checksum, request
from tests.support.peers.far_host import V4, V6, FarHost, Ping, far_host
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Prober, not_hanging

TOKEN = bytes(range(TOKEN_BYTES))
FOR_EVER_SECONDS = 3_600
root = pytest.mark.needs("ip", "root")


def down(failure: FailureClass, host: str = V4) -> str:
    return message(failure, host)


@dataclass
class Net:
    far: FarHost
    prober: Prober


@pytest.fixture(params=[False, True], ids=["raw", "datagram"])
def network(request: pytest.FixtureRequest) -> Iterator[FarHost]:
    with far_host(datagrams=request.param) as far:
        yield far


@pytest.fixture
async def net(network: FarHost, nursery: trio.Nursery) -> AsyncIterator[Net]:
    reach = make_reach(probe_policy())
    await nursery.start(reach.lag.watch)
    nursery.start_soon(network.serve)
    yield Net(network, Prober(reach))
    nursery.cancel_scope.cancel()


# The content of packets.


@given(st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES), st.integers(0, 65_535))
def test_a_reply_is_matched_by_token_and_number(token: bytes, number: int) -> None:
    packet = request(v6=False, identifier=7, number=number, token=token)
    assert checksum(packet) == 0
    assert len(packet) == 64
    assert answered(packet, v6=False, token=token) is None, "a request is not a reply"
    for v6, kind in ((False, 0), (True, 129)):
        reply = bytes([kind]) + packet[1:]
        assert answered(reply, v6=v6, token=token) == number
        assert answered(reply, v6=v6, token=token[:-1] + bytes([token[-1] ^ 1])) is None
        assert answered(reply, v6=not v6, token=token) is None


@given(st.binary(max_size=80))
def test_a_packet_without_the_token_is_ignored(packet: bytes) -> None:
    if TOKEN not in packet:
        assert answered(packet, v6=False, token=TOKEN) is None
        assert answered(packet, v6=True, token=TOKEN) is None


# Latency.


@dataclass
class ScriptedEcho:
    """A peer whose answers take a given time, by the clock that the probe reads."""

    round_trips_ms: list[int]
    now_ns: int = 0
    sent: list[int] = field(default_factory=list)
    address: str = V4

    def __enter__(self) -> "ScriptedEcho":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, number: int) -> None:
        self.sent.append(number)

    async def hear(self) -> tuple[list[int], list[int]]:
        if not self.sent:
            await trio.sleep_forever()
        number = self.sent.pop()
        self.now_ns += self.round_trips_ms[number] * 1_000_000
        return [number], []

    def read(self) -> tuple[list[int], list[int]]:
        return [], []


async def test_the_latency_is_the_mean_round_trip_without_pauses(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = ScriptedEcho([300, 100, 50])

    async def dial_echo(*_: object) -> ScriptedEcho:
        return echo

    monkeypatch.setattr("leadline.probes.kinds.icmp.perf_counter_ns", lambda: echo.now_ns)
    monkeypatch.setattr("leadline.probes.net.egress.Egress.dial_echo", dial_echo)
    result = await prober.check("icmp", V4, "[RESPONSE_TIME] == 150", count=3)
    assert (result.outcome, result.latency_ms) == (RunOutcome.UP, 150)


# This host itself.


@root
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_this_host_answers(prober: Prober, host: str) -> None:
    plain = await prober.check("icmp", host)
    read = await prober.check(
        "icmp",
        host,
        *("[RESULT] == 0", "[CONNECTED] == true", "[RESPONSE_TIME] < 1m", f"[IP] == {host}"),
        count=5,
    )
    assert plain.outcome is read.outcome is RunOutcome.UP, (plain, read)
    assert plain.phases.first_byte_us is not None


@root
async def test_cancelled_runs_leave_nothing_open(prober: Prober) -> None:
    await leaves_nothing(lambda: prober.check("icmp", "127.0.0.1", count=3))


async def test_forbidden_addresses_are_blocked(prober: Prober) -> None:
    metadata = await prober.check("icmp", "169.254.169.254")
    private = await prober.with_(policy=canary_policy()).check("icmp", "127.0.0.1")
    assert metadata.msg == down(FailureClass.TARGET_BLOCKED, "169.254.169.254")
    assert private.msg == down(FailureClass.TARGET_BLOCKED, "127.0.0.1")


async def test_missing_privileges_are_a_local_failure(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses both types of socket to a process without privileges."""

    class Refusing(socket.socket):
        def __init__(self, family: int, kind: int, protocol: int = 0) -> None:
            assert protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6)
            raise PermissionError(1 if kind == socket.SOCK_RAW else 13, "no")

    monkeypatch.setattr("leadline.probes.net.sockets.socket.socket", Refusing)
    result = await prober.check("icmp", "127.0.0.1")
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.ICMP_DENIED,
    )


# A far host.


@root
@pytest.mark.parametrize("host", [V4, V6])
async def test_a_far_host_that_answers_is_up(net: Net, host: str) -> None:
    result = await net.prober.check("icmp", host, "[RESULT] == 0", count=3)
    assert result.outcome is RunOutcome.UP, result
    assert [ping.number for ping in net.far.heard] == [0, 1, 2]
    assert {len(ping.icmp) for ping in net.far.heard} == {64}


@root
@pytest.mark.parametrize("host", [V4, V6])
async def test_silence_is_a_timeout_before_the_deadline(net: Net, host: str) -> None:
    net.far.script = lambda ping: None
    silence, unfinished = FailureClass.TIMEOUT, ProbePhase.FIRST_BYTE

    async def one(failure: FailureClass | None, *conditions: str, **config: object) -> None:
        result = await net.prober.check("icmp", host, *conditions, timeout_seconds=1, **config)
        assert result.msg == (down(failure, host) if failure else ""), conditions
        assert result.phases.unfinished is unfinished

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, silence)
        nursery.start_soon(partial(one, silence, count=20, max_loss=99))
        nursery.start_soon(one, None, "[CONNECTED] == false")
        nursery.start_soon(one, None, "[RESULT] == 100")
        nursery.start_soon(one, silence, "[RESPONSE_TIME] > 1")
    # A busy machine does not send all twenty before the deadline.
    assert 5 <= len(net.far.heard) <= 24


@root
@pytest.mark.parametrize(
    ("conditions", "msg"),
    [
        (("[CONNECTED] == false",), ""),
        (("[RESULT] == 100",), ""),
        ((), down(FailureClass.TIMEOUT, V4)),
    ],
)
async def test_a_late_event_loop_does_not_change_the_verdict(
    net: Net, conditions: tuple[str, ...], msg: str
) -> None:
    """The loop is blocked from the echo until after the deadline of the run."""

    def block(ping: Ping) -> None:
        echoed.set()

    echoed = trio.Event()
    net.far.script = block

    async def late() -> None:
        await echoed.wait()
        time.sleep(0.4)  # noqa: ASYNC251

    async with trio.open_nursery() as nursery:
        nursery.start_soon(late)
        result = await net.prober.check("icmp", V4, *conditions, timeout_seconds=0.3)
    assert (result.unknown_reason, result.msg) == (None, msg)


@root
async def test_loss_above_the_limit_is_a_timeout(net: Net) -> None:
    def every_other(ping: Ping) -> None:
        if ping.number % 2:
            ping.reply()

    net.far.script = every_other

    async def one(max_loss: int, conditions: list[str], failure: FailureClass | None) -> None:
        result = await net.prober.check(
            "icmp",
            V4,
            *conditions,
            count=4,
            max_loss=max_loss,
            timeout_seconds=FOR_EVER_SECONDS,
        )
        assert result.msg == (down(failure) if failure else ""), (max_loss, conditions)

    # The probe does not wait for lost answers until its deadline, which is an hour away.
    async with not_hanging(), trio.open_nursery() as nursery:
        for case in (
            (50, [], None),
            (49, [], FailureClass.TIMEOUT),
            (0, [], FailureClass.TIMEOUT),
            (0, ["[RESULT] <= 50"], None),
            (50, ["[RESULT] < 50"], FailureClass.CONDITION_FAILED),
            (0, ["[RESPONSE_TIME] < 1m"], FailureClass.TIMEOUT),
            (50, ["[RESPONSE_TIME] < 1m"], None),
        ):
            nursery.start_soon(one, *case)


@root
@pytest.mark.parametrize("host", [V4, V6])
async def test_foreign_late_and_duplicate_replies_are_ignored(net: Net, host: str) -> None:
    def forged(ping: Ping) -> None:
        good = bytes([129 if ping.v6 else 0, 0]) + ping.icmp[2:]
        other = socket.inet_pton(
            socket.AF_INET6 if ping.v6 else socket.AF_INET,
            "2001:db8::3" if ping.v6 else "198.51.100.3",
        )
        ping.reply(good, source=other)  # from another address
        ping.reply(good[:8] + bytes(56))  # without the token of the run
        ping.reply(good[:6] + b"\x00\x09" + good[8:])  # of an echo that was never sent
        ping.reply(good[:12])  # truncated
        ping.reply(bytes([good[0], 1]) + good[2:])  # another code
        ping.reply(ping.icmp)  # a request of its own
        if ping.number == 0:
            ping.reply(good)
            ping.reply(good)

    net.far.script = forged
    result = await net.prober.check("icmp", host, "[RESULT] == 50", count=2, timeout_seconds=2)
    assert result.outcome is RunOutcome.UP, result


@root
async def test_concurrent_pings_do_not_share_replies(net: Net) -> None:
    results = []

    def first_only(ping: Ping) -> None:
        if ping.icmp[8:24] == net.far.heard[0].icmp[8:24]:
            ping.reply()
        else:
            ping.unreachable()

    async def one() -> None:
        results.append(await net.prober.check("icmp", V4, count=3, timeout_seconds=1))

    net.far.script = first_only
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(one)
    assert sorted(r.msg for r in results) == ["", down(FailureClass.CONNECT_ERROR)]


@root
@pytest.mark.parametrize("host", [V4, V6])
async def test_unreachable_is_reported_immediately(net: Net, host: str) -> None:
    for code in (0, 1, 3):
        net.far.script = partial(Ping.unreachable, code=code)
        # The result does not wait for the deadline, which is an hour away.
        async with not_hanging():
            result = await net.prober.check("icmp", host, count=3, timeout_seconds=FOR_EVER_SECONDS)
        assert result.msg == down(FailureClass.CONNECT_ERROR, host), code
    # A condition that expects an unreachable host is true.
    assert (await net.prober.check("icmp", host, "[CONNECTED] == false")).outcome is RunOutcome.UP


@root
async def test_one_refused_echo_counts_as_lost(net: Net) -> None:
    net.far.script = lambda ping: ping.unreachable() if ping.number == 1 else ping.reply()
    result = await net.prober.check("icmp", V4, "[RESULT] == 25", count=4)
    strict = await net.prober.check("icmp", V4, count=4)
    lax = await net.prober.check("icmp", V4, count=4, max_loss=25)
    assert result.outcome is lax.outcome is RunOutcome.UP, result
    assert strict.msg == down(FailureClass.CONNECT_ERROR)


@root
async def test_a_flood_is_a_timeout_within_the_deadline(net: Net) -> None:
    def flood(ping: Ping) -> None:
        for _ in range(400):
            ping.reply(bytes([0, 0]) + ping.icmp[2:8] + os.urandom(56))

    net.far.script = flood
    result = await net.prober.check("icmp", V4, count=20, timeout_seconds=1)
    assert result.msg == down(FailureClass.TIMEOUT)


@root
async def test_a_missing_route_is_a_local_failure(net: Net) -> None:
    result = await net.prober.check("icmp", "203.0.113.9")
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, UnknownReason.NO_ROUTE)


class _ErrorsOfEarlierEchoes:
    """A socket whose system calls return errors of earlier echoes, `errors` times."""

    family = socket.AF_INET

    def __init__(self, errors: int) -> None:
        self.errors = errors
        self.sent = 0
        self._is_queued = False

    def setsockopt(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def send(self, packet: bytes) -> int:
        if self.errors:
            self.errors -= 1
            self._is_queued = True
            raise OSError(errno.EHOSTUNREACH, "of an earlier echo")
        self.sent += 1
        return len(packet)

    def recvmsg(self, *_: Any) -> Any:
        if not self._is_queued:
            raise BlockingIOError
        self._is_queued = False
        origin = bytes([0, 0, 0, 0, 2])
        return struct.pack("!BBHHH", 8, 0, 0, 1, 0), [(socket.IPPROTO_IP, 11, origin)], 0, None


def test_an_echo_that_cannot_be_sent_is_a_local_failure() -> None:
    """The kernel returns the errors of earlier echoes on a send, and queues more of them."""
    often: Any = _ErrorsOfEarlierEchoes(4)
    with Echo(often, "192.0.2.1", raw=False) as echo, pytest.raises(LocalFailure) as caught:
        echo.send(1)
    assert caught.value.reason is UnknownReason.LOCAL_RESOURCES
    thrice: Any = _ErrorsOfEarlierEchoes(3)
    with Echo(thrice, "192.0.2.1", raw=False) as echo:
        echo.send(1)
        assert thrice.sent == 1


def test_invalid_definitions_are_refused() -> None:
    def faulty_fields(target: str = "gw.example", **config: object) -> list[str]:
        return [f.field for f in validate("icmp", target, None, config, [])]

    assert faulty_fields(count="20", max_loss=99) == []
    assert faulty_fields("gw.example:80") == ["target"]
    assert faulty_fields(count=0) == faulty_fields(count=21) == ["config.count"]
    assert faulty_fields(max_loss=100) == faulty_fields(max_loss=-1) == ["config.max_loss"]


async def test_a_run_cancelled_at_its_start_has_no_result(prober: Prober) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await prober.check("icmp", "127.0.0.1")
    assert scope.cancelled_caught
