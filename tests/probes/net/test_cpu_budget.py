"""A target that is costly to read ends its own run, and no run of another organization.

The budget is lowered, so that a flood of small parts exceeds it soon on every machine.
"""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import trio
import trustme

from leadline.probes import runner
from leadline.probes.check import cpu_meter
from leadline.probes.check.check import make_check
from leadline.probes.check.cpu_share import SLICE_NS, CpuShare
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net import asyncio_thread
from tests.support.peers.servers import Handler, Prober, answer, answering, now, read_head, serving

HOST = "127.0.0.1"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
EXPENSIVE = message(FailureClass.RESPONSE_TOO_EXPENSIVE, HOST)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_meter, "RUN_NS_MOST", 20_000_000)
    monkeypatch.setattr(cpu_meter, "REQUEST_NS_MOST", 1_000_000)


def flooding(head: bytes, part: bytes) -> Handler:
    """Sends `part` until the client disconnects."""

    async def handle(stream: trio.SocketStream) -> None:
        await read_head(stream)
        await stream.send_all(head)
        while True:
            await stream.send_all(part * 1_000)

    return handle


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("conditions", [(), ("[BODY] contains y",)])
async def test_a_flood_of_chunks_is_too_expensive(
    prober: Prober, conditions: tuple[str, ...]
) -> None:
    async with serving(flooding(CHUNKED, b"1\r\nx\r\n")) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/", *conditions)
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, EXPENSIVE)


@pytest.mark.usefixtures("small_budget")
async def test_a_flood_of_tls_records_is_too_expensive(
    prober: Prober, authority: trustme.CA
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        secure = trio.SSLStream(stream, context, server_side=True)
        await read_head(secure)
        await secure.send_all(HEAD + b"content-length: 1000000\r\n\r\n")
        while True:
            await secure.send_all(b"x")

    async with serving(handle) as port:
        result = await prober.check("http", f"https://{HOST}:{port}/")
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, EXPENSIVE)


@pytest.mark.usefixtures("small_budget")
async def test_an_expensive_step_of_a_scenario_is_named(prober: Prober) -> None:
    async with serving(flooding(CHUNKED, b"1\r\nx\r\n")) as port:
        steps = [{"url": f"http://{HOST}:{port}/"}]
        result = await prober.check("synthetic", "", scenario={"steps": steps})
    assert result.outcome is RunOutcome.DOWN
    assert result.msg.startswith("response_too_expensive step 1")


SSH_LOGIN = {"username": "leadline", "password_ref": "ssh", "secrets": {"password": "x"}}
# SSH_MSG_IGNORE without data, before the key exchange (RFC 4253, 6 and 11.2).
IGNORED = b"\x00\x00\x00\x0c\x06\x02" + bytes(4) + bytes(6)


@pytest.mark.usefixtures("small_budget")
async def test_a_flood_of_ssh_packets_is_too_expensive(prober: Prober) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n")
        while True:
            await stream.send_all(IGNORED * 1_000)

    async with serving(handle) as port:
        result = await prober.check("ssh", f"{HOST}:{port}", **SSH_LOGIN)
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, EXPENSIVE)


@contextmanager
def busy_asyncio(seconds: float) -> Iterator[None]:
    """Steps of this length, as other ssh runs make them, keep the loop of ssh busy."""
    loop = asyncio_thread._loop()
    busy = True

    def occupy() -> None:
        time.sleep(seconds)
        if busy:
            loop.call_soon(occupy)

    loop.call_soon_threadsafe(occupy)
    try:
        yield
    finally:
        busy = False


async def test_a_run_whose_steps_wait_for_others_is_never_down(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "STALL_US_MOST", 100_000)

    async def greet(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n")
        await trio.sleep_forever()

    async with serving(greet) as port:
        with busy_asyncio(0.1):
            # `Prober.check` would repeat a run that is unknown for this reason.
            config = {"username": "leadline", "password_ref": "ssh"}
            secrets = {"password": "x"}
            check = make_check("ssh", f"{HOST}:{port}", None, config, (), secrets=secrets)
            late = await runner.run(replace(check, timeout_seconds=2), prober.reach, now)
    assert late.unknown_reason is UnknownReason.LOOP_STALLED


async def test_a_silent_target_is_down_while_other_runs_keep_the_loop_busy(prober: Prober) -> None:
    """Otherwise costly targets of one tenant would hide the outages of another."""

    async def silent(_: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with serving(silent) as port:
        with busy_asyncio(0.05):
            result = await prober.check("ssh", f"{HOST}:{port}", timeout_seconds=2, **SSH_LOGIN)
    assert result.msg == message(FailureClass.TIMEOUT, HOST), result


async def test_the_budget_holds_for_a_large_ordinary_body(prober: Prober) -> None:
    body = b'{"many": [' + b"1," * 400_000 + b'1], "last": 1}'
    async with serving(answering(answer(body))) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/", "[BODY].last == 1")
    assert result.outcome is RunOutcome.UP, result


async def test_a_run_that_waits_for_its_share_is_unknown(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target answered, but its latency would be that of this process."""
    share = CpuShare()
    share.join()

    async def of_the_same_organization() -> None:
        while True:
            await share.turn(7, SLICE_NS)

    async with serving(answering(answer())) as port, trio.open_nursery() as nursery:
        check = make_check("http", f"http://{HOST}:{port}/", "GET", {}, ())
        for _ in range(20):
            nursery.start_soon(of_the_same_organization)
        await trio.lowlevel.checkpoint()
        waiting = await runner.run(check, prober.with_(cpu=share).reach, now, 7)
        monkeypatch.setattr(runner, "STALL_US_MOST", -1)
        stalled = await runner.run(check, prober.with_(cpu=share).reach, now, 7)
        nursery.cancel_scope.cancel()
    assert waiting.outcome is not RunOutcome.DOWN
    assert stalled.unknown_reason is UnknownReason.LOOP_STALLED


@pytest.mark.usefixtures("small_budget")
async def test_an_expensive_target_is_down_although_the_run_waited(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "STALL_US_MOST", -1)
    async with serving(flooding(CHUNKED, b"1\r\nx\r\n")) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/")
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, EXPENSIVE)
