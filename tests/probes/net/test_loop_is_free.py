"""The answers of targets block the loop for a bounded time: long work runs in a thread, the rest in
pieces.

The tests measure no time. While no thread is available, a check that needs a thread is unknown, and
a short one succeeds; this shows where the work is done.
"""

import subprocess
import sys
from collections.abc import Iterator

import dns.message
import dns.rrset
import pytest
import trio

from leadline.probes.check.check import make_check
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import (
    FailureClass,
    Result,
    RunOutcome,
    UnknownReason,
    message,
)
from leadline.probes.check.target import read_url
from leadline.probes.net import http1
from leadline.probes.net.dns_client import RECORDS_ON_LOOP_MOST, read_first
from leadline.probes.net.http_exchange import HttpRequest, HttpResponse, RawResponse
from leadline.probes.runner import run
from tests.support.peers.servers import Names, Prober, answer, answering, now, serving

HOST = "127.0.0.1"
# The slowest type of pattern: RE2 cannot use its fast automaton for it.
SLOW = r"(((a?){10}){10}){3}b$"


@pytest.fixture
def threadless(prober: Prober) -> Iterator[Prober]:
    """A prober without a free thread."""
    threads = trio.CapacityLimiter(1)
    threads.acquire_on_behalf_of_nowait("another check")
    yield prober.with_(threads=threads)
    threads.release_on_behalf_of("another check")


def is_done(result: Result) -> bool:
    """Returns whether a thread was available. On a busy machine it can get no core."""
    return result.unknown_reason in (None, UnknownReason.LOOP_STALLED)


@pytest.mark.parametrize(
    ("body", "condition", "long"),
    [
        (b"ok", "[BODY] == ok", False),
        (b"ok", f"[BODY] matches {SLOW}", False),
        (b"a" * 10_000, "[BODY] matches a+", False),
        (b"a" * 10_000, f"[BODY] matches {SLOW}", True),
        (b'{"status": "UP"}', "[BODY].status == UP", False),
        (b'{"status": "UP"}' + b" " * 1_000_000, "[BODY].status == UP", True),
    ],
)
async def test_expensive_conditions_run_in_a_thread(
    prober: Prober, threadless: Prober, body: bytes, condition: str, long: bool
) -> None:
    async with serving(answering(answer(body))) as port:
        url = f"http://{HOST}:{port}/"
        result = await threadless.check("http", url, condition)
        free = await prober.check("http", url, condition)
    assert is_done(free)
    reason = UnknownReason.LOCAL_RESOURCES if long else None
    assert result.unknown_reason is reason, result


@pytest.mark.parametrize(("seconds", "outcome"), [(9, RunOutcome.UP), (1, RunOutcome.UNKNOWN)])
async def test_a_run_that_waits_for_the_thread_of_another_one_is_never_down(
    prober: Prober, seconds: int, outcome: RunOutcome
) -> None:
    """The target answered at once; this process delays the run, up to the deadline or not."""
    body = b'{"status": "UP"}' + b" " * 1_000_000

    async def hold(*, task_status: trio.TaskStatus[None]) -> None:
        async with prober.reach.alone:
            task_status.started()
            await trio.sleep(1.3)

    async with serving(answering(answer(body))) as port, trio.open_nursery() as nursery:
        await nursery.start(hold)
        url, wanted = f"http://{HOST}:{port}/", ("[BODY].status == UP",)
        check = make_check("http", url, "GET", {}, wanted, timeout_seconds=seconds)
        result = await run(check, prober.reach, now)
    # A busy machine can hold up the loop as well.
    assert result.outcome is outcome or result.unknown_reason is UnknownReason.LOOP_STALLED, result


async def test_an_expensive_condition_on_a_banner_runs_in_a_thread(
    prober: Prober, threadless: Prober
) -> None:
    async def talk(stream: trio.SocketStream) -> None:
        await stream.send_all(b"a" * 10_000 + b"b")

    async with serving(talk) as port:
        condition = f"[BODY] matches {SLOW}"
        result = await threadless.check("tcp", f"{HOST}:{port}", condition)
        free = await prober.check("tcp", f"{HOST}:{port}", condition)
    assert is_done(free)
    assert result.unknown_reason is UnknownReason.LOCAL_RESOURCES


class Answering(trio.abc.Stream):
    """Returns as many bytes as are requested, without waiting, and records each requested size."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.asked: list[int] = []

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        assert max_bytes is not None
        self.asked.append(max_bytes)
        piece, self._data = self._data[:max_bytes], self._data[max_bytes:]
        return piece

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def exchange(stream: Answering) -> RawResponse:
    request = HttpRequest(method="GET", url=read_url(f"http://{HOST}/"))
    return await http1.exchange(stream, request, Stopwatch(), "us")  # type: ignore[arg-type]


async def test_a_body_of_tiny_chunks_is_read_in_small_pieces() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    stream = Answering(head + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
    response = await exchange(stream)
    assert response.body == b"x" * 50_000
    assert max(stream.asked) <= 4_096


async def test_a_head_with_too_many_lines_is_too_large(prober: Prober) -> None:
    with pytest.raises(TargetFailure) as failed:
        await exchange(Answering(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 12_000 + b"\r\n"))
    assert failed.value.failure is FailureClass.RESPONSE_TOO_LARGE
    whole = await exchange(Answering(answer(b"ok", "200 OK", *["a: b"] * 1_000)))
    assert whole.body == b"ok"
    async with serving(answering(answer(b"ok", "200 OK", *["a:"] * 12_000))) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/")
    assert result.msg == message(FailureClass.RESPONSE_TOO_LARGE, HOST)


# DNS.

# Made before the checks, because the nameserver runs on the loop that the test observes.
ADDRESSES = [f"10.0.{n >> 8}.{n & 255}" for n in range(1_900)]
MANY = dns.rrset.from_text_list("many.test.", 60, "IN", "A", ADDRESSES)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_dns_answer_with_many_records_is_parsed_in_a_thread(
    prober: Prober, threadless: Prober, names: Names, transport: str
) -> None:
    names.records |= {("many.test", "A"): [[MANY]], ("one.test", "A"): [["10.0.0.0"]]}
    at = {"resolver": f"{HOST}:{names.port}", "transport": transport}
    few = await threadless.check("dns", "one.test", "[RESULT] == 10.0.0.0", **at)
    many = await threadless.check("dns", "many.test", "[RESULT] contains 10.0.6.9", **at)
    free = await prober.check("dns", "many.test", "[RESULT] contains 10.0.6.9", **at)
    assert is_done(few), few
    assert is_done(free), free
    assert many.unknown_reason is UnknownReason.LOCAL_RESOURCES


async def test_a_dns_answer_with_too_many_records_is_too_large(
    prober: Prober, names: Names
) -> None:
    names.records |= {("more.test", "A"): [[f"10.0.{n >> 8}.{n & 255}" for n in range(2_500)]]}
    at = {"resolver": f"{HOST}:{names.port}", "transport": "tcp"}
    result = await prober.check("dns", "more.test", **at)
    assert result.msg == message(FailureClass.RESPONSE_TOO_LARGE, "more.test")


async def test_only_the_first_addresses_of_a_host_are_parsed(prober: Prober, names: Names) -> None:
    local = dns.rrset.from_text_list("many.test.", 60, "IN", "A", ["127.0.0.1", *ADDRESSES])
    names.records |= {("many.test", "A"): [[local]]}
    wire = names.reply(dns.message.make_query("many.test", "A").to_wire())
    assert wire is not None
    message = read_first(wire)
    assert message is not None
    assert sum(len(records) for records in message.answer) == RECORDS_ON_LOOP_MOST
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://many.test:{port}/")
    assert result.outcome is RunOutcome.UP


def test_undefined_bytes_are_replaced() -> None:
    body = bytes(range(256))
    response = HttpResponse(
        status=200,
        headers={"content-type": "text/plain; charset=ISO-8859-1"},
        body=body,
        whole=True,
        address=HOST,
        url=read_url(f"http://{HOST}/"),
    )
    assert response.text == body.decode("cp1252", "replace")


LEAVING = f"""
import atexit
# Registered first, so that it is called last.
atexit.register(lambda: print(len(condition_worker._under_way)))
import trio
from leadline.probes.kinds import condition_worker
from leadline.probes.check.condition import parse
from leadline.probes.check.condition_evaluation import ProbeValues
from leadline.probes.kinds.condition_worker import evaluate_conditions
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy

async def main():
    reach = make_reach(probe_policy())
    with trio.move_on_after(0.05) as left:
        slow = parse(r"[BODY] matches {SLOW}")
        await evaluate_conditions([slow], ProbeValues(body="a" * 100_000), reach)
    assert left.cancelled_caught

trio.run(main)
"""


def test_a_process_can_exit_during_a_search() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
