"""Local and target failures of a connection: an immediate error is local, a later one comes from
the network.
"""

import errno
import socket
import struct
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from leadline.probes.check.failure import LocalFailure, TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason
from leadline.probes.net import sockets
from leadline.probes.net.dial import dial
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles
from tests.support.peers.servers import Names, Prober, answer, answering, serving
from tests.support.processes.ports import refusing_port


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Addresses and the errno that connecting to them returns immediately."""
    numbers: dict[str, int] = {}
    whole = socket.socket

    class FailingSocket(whole):  # type: ignore[misc,valid-type]
        def connect_ex(self, address: tuple[str, int]) -> int:
            number = numbers.get(address[0])
            return number if number is not None else int(super().connect_ex(address))

    monkeypatch.setattr("leadline.probes.net.sockets.socket.socket", FailingSocket)
    return numbers


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENETUNREACH, UnknownReason.NO_ROUTE),
        (errno.EPERM, UnknownReason.EGRESS_DENIED),
        (errno.EACCES, UnknownReason.EGRESS_DENIED),
        (errno.EADDRNOTAVAIL, UnknownReason.LOCAL_RESOURCES),
        (errno.ENOBUFS, UnknownReason.LOCAL_RESOURCES),
    ],
)
async def test_an_immediate_error_is_a_local_failure(
    prober: Prober, at_once: dict[str, int], number: int, reason: UnknownReason
) -> None:
    at_once["127.0.0.1"] = number
    result = await prober.check("tcp", "127.0.0.1:1")
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ECONNREFUSED, FailureClass.CONNECT_REFUSED),
        (errno.EHOSTUNREACH, FailureClass.CONNECT_ERROR),
        (errno.ETIMEDOUT, FailureClass.CONNECT_TIMEOUT),
        (errno.ECONNRESET, FailureClass.CONNECT_ERROR),
    ],
)
async def test_a_network_error_is_a_target_failure(
    prober: Prober, at_once: dict[str, int], number: int, failure: FailureClass
) -> None:
    at_once["127.0.0.1"] = number
    with pytest.raises(TargetFailure) as caught:
        await prober.reach.dial("127.0.0.1", 1, Stopwatch())
    assert caught.value.failure is failure


async def test_a_host_without_ipv6_uses_ipv4_addresses(
    prober: Prober, at_once: dict[str, int], names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run that waits for an address that has failed reaches its deadline, and is not up.
    monkeypatch.setattr("leadline.probes.net.dial.HEAD_START_SECONDS", 3_600)
    at_once["2606:4700::1"] = errno.ENETUNREACH
    names.records[("both.example", "AAAA")] = [["2606:4700::1"]]
    names.records[("both.example", "A")] = [["127.0.0.1"]]
    names.records[("six.example", "AAAA")] = [["2606:4700::1"]]
    async with serving(answering(answer())) as port:
        both = await prober.check("tcp", f"both.example:{port}")
        six = await prober.check("tcp", f"six.example:{port}")
    with refusing_port() as port:
        closed = await prober.check("tcp", f"both.example:{port}")
    assert both.outcome is RunOutcome.UP
    assert six.unknown_reason is UnknownReason.NO_ROUTE
    assert closed.msg == "connect_refused both.example"


async def test_an_address_that_could_not_be_tried_is_unknown(
    prober: Prober, at_once: dict[str, int], names: Names
) -> None:
    at_once["127.0.0.2"] = errno.ENOBUFS
    names.records[("two.example", "A")] = [["127.0.0.1", "127.0.0.2"]]
    result = await prober.check("tcp", "two.example:1")
    assert result.unknown_reason is UnknownReason.LOCAL_RESOURCES


async def test_the_next_address_is_tried_beside_a_slow_one(
    prober: Prober, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first address never answers; the probe tries the second, which answers."""
    real = sockets.connected

    async def black_hole(address: str, port: int, **kind: object) -> trio.socket.SocketType:
        if address == "127.0.0.9":
            await trio.sleep_forever()
        return await real(address, port)

    monkeypatch.setattr("leadline.probes.net.dial.connected", black_hole)
    names.records[("slow.example", "A")] = [["127.0.0.9", "127.0.0.1"]]
    async with serving(answering(answer())) as port:
        result = await prober.check("tcp", f"slow.example:{port}", "[IP] == 127.0.0.1")
    assert result.outcome is RunOutcome.UP


async def test_an_address_has_a_head_start_of_a_quarter_of_a_second(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[tuple[str, float]] = []

    async def scripted(address: str, port: int, **kind: object) -> trio.socket.SocketType:
        tried.append((address, trio.current_time() - began))
        if len(tried) < 3:
            await trio.sleep_forever()
        return trio.socket.socket()

    monkeypatch.setattr("leadline.probes.net.dial.connected", scripted)
    addresses = ["127.0.0.7", "127.0.0.8", "127.0.0.9"]
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} slow.example\n" for address in addresses))
    resolver = Resolver(HostFiles(hosts=hosts, nameservers=()))
    began = trio.current_time()
    connection = await dial(resolver, probe_policy(), "slow.example", 1, Stopwatch())
    connection.stream.socket.close()
    assert connection.address == addresses[2]
    # The mock clock advances only while all tasks wait.
    assert [address for address, _ in tried] == addresses
    assert [seconds for _, seconds in tried] == pytest.approx([0, 0.25, 0.5])


async def test_dialling_raises_local_failures(prober: Prober, at_once: dict[str, int]) -> None:
    at_once["::1"] = errno.EADDRNOTAVAIL
    with pytest.raises(LocalFailure) as caught:
        await prober.reach.dial("::1", 1, Stopwatch())
    assert caught.value.reason is UnknownReason.NO_ROUTE


async def test_a_peer_that_resets_before_the_connect_is_seen_was_connected(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the acceptance and the reset happen while this process does not run."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(5)
    wait_writable = trio.lowlevel.wait_writable

    async def reset_first(sock: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        await wait_writable(sock)

    monkeypatch.setattr(trio.lowlevel, "wait_writable", reset_first)
    target = f"127.0.0.1:{listener.getsockname()[1]}"
    with listener:
        plain = await prober.check("tcp", target)
        expecting = await prober.check("tcp", target, "[CONNECTED] == false")
    assert plain.msg == expecting.msg == "connect_error 127.0.0.1"
    assert plain.phases.connect_us is not None
