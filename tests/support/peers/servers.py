"""Servers that misbehave, a nameserver, and the prober of the tests."""

import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import trio

from leadline.probes.check.check import make_check
from leadline.probes.check.result import FailureClass, Result, UnknownReason
from leadline.probes.net.egress import Egress
from leadline.probes.net.resolver_files import Nameserver
from leadline.probes.runner import run

Secure: TypeAlias = "trio.SSLStream[trio.SocketStream]"
Handler = Callable[[trio.SocketStream], Awaitable[None]]

# A run that is still active this long after its deadline hangs. No test asserts a duration: a test
# of a deadline has a peer that never finishes, and fails by this limit if the deadline does not
# work.
HANGS_SECONDS = 60
# Runs of one check whose loop was held up.
STALLED_MOST = 5


def now() -> int:
    return time.time_ns() // 1_000


def deadline_for(failure: FailureClass | None) -> int:
    """Returns the timeout of a check of a misbehaving peer, s. Only one that ends by its deadline
    gets a short one: on a busy machine, other ends take seconds.
    """
    return 1 if failure is FailureClass.TIMEOUT else 30


@asynccontextmanager
async def not_hanging(seconds: float = HANGS_SECONDS) -> AsyncIterator[None]:
    """Raises `TooSlowError` if the block takes longer.

    `trio.fail_after` would be a deadline, and some kinds decide shortly before the next deadline.
    """

    async def watch() -> None:
        await trio.sleep(seconds)
        raise trio.TooSlowError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        yield
        nursery.cancel_scope.cancel()


async def read_head(stream: trio.abc.ReceiveStream) -> bytes:
    """Reads the head of a request, and the bytes that arrived with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some(65_536)
        if not more:
            break
        data += more
    return data


def answer(body: bytes = b"ok", status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answering(data: bytes) -> Handler:
    async def handle(stream: trio.SocketStream) -> None:
        await read_head(stream)
        await stream.send_all(data)

    return handle


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[int]:
    """Yields the port of a server that ignores errors of clients that disconnect."""

    async def forgiving(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await handler(stream)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host=host)
        port: int = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, forgiving, listeners)
        yield port
        nursery.cancel_scope.cancel()


@dataclass
class Names:
    """A nameserver.

    `records` maps (name, type) to the answers in order; the last one repeats. An answer is a list
    of records as text or as sets, an rcode, or None for no answer.
    """

    port: int = 0
    records: dict[tuple[str, str], list[object]] = field(default_factory=dict)
    root: object = dns.rcode.NOERROR
    asked: list[tuple[str, str]] = field(default_factory=list)
    truncate: bool = False
    ttl: int = 60

    @property
    def server(self) -> Nameserver:
        return Nameserver("127.0.0.1", self.port)

    def reply(self, wire: bytes, *, tcp: bool = False) -> bytes | None:
        query = dns.message.from_wire(wire)
        question = query.question[0]
        name = question.name.to_text().rstrip(".").lower()
        rdtype = dns.rdatatype.to_text(question.rdtype)
        self.asked.append((name, rdtype))
        said = self.root if not name else self._next(name, rdtype)
        if said is None:
            return None
        response = dns.message.make_response(query)
        if self.truncate and name and not tcp:
            response.flags |= dns.flags.TC
        elif isinstance(said, list):
            if said and isinstance(said[0], dns.rrset.RRset):
                response.answer += said
            elif said:
                response.answer.append(
                    dns.rrset.from_text_list(question.name, self.ttl, "IN", rdtype, said)
                )
        else:
            assert isinstance(said, dns.rcode.Rcode)
            response.set_rcode(said)
        return response.to_wire(want_shuffle=False)

    async def converse(self, stream: "trio.SocketStream | Secure") -> None:
        """Answers one question on a stream; a client that disconnects gets none."""
        length = int.from_bytes(await stream.receive_some(2), "big")
        wire = await stream.receive_some(length) if length else b""
        reply = self.reply(bytes(wire), tcp=True) if wire else None
        if reply is not None:
            await stream.send_all(len(reply).to_bytes(2, "big") + reply)

    def _next(self, name: str, rdtype: str) -> object:
        said = self.records.get((name, rdtype))
        if said is None:
            known = any(known == name for known, _ in self.records)
            return [] if known else dns.rcode.NXDOMAIN
        return said.pop(0) if len(said) > 1 else said[0]


async def open_names(nursery: trio.Nursery) -> Names:
    """Starts a nameserver on its own port, over UDP and TCP."""
    names = Names()
    while True:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        names.port = listeners[0].socket.getsockname()[1]
        sock = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
        try:
            await sock.bind(("127.0.0.1", names.port))
            break
        except OSError:
            # Another test has this port for UDP.
            sock.close()
            await listeners[0].aclose()

    async def by_udp() -> None:
        with sock:
            while True:
                wire, peer = await sock.recvfrom(4_096)
                reply = names.reply(wire)
                if reply is not None:
                    await sock.sendto(reply, peer)

    async def by_tcp(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await names.converse(stream)

    nursery.start_soon(by_udp)
    nursery.start_soon(trio.serve_listeners, by_tcp, listeners)
    return names


def gzip_bomb(mebibytes: int = 64) -> bytes:
    """Returns a gzip stream of zeros without its trailer; a client stops before that.

    Two mebibytes are compressed. A full flush makes the following blocks equal to the second. To
    compress all of them would stop the loop, and the run of the probe would be unknown.
    """
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS), bytes(1 << 20)
    first, block = (packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + (mebibytes - 1) * block


@dataclass
class Prober:
    """Runs checks for a test.

    `check` runs one definition; it raises `TooSlowError` if the deadline of the definition does not
    end it. A busy machine can hold up the loop for a second; such a run shows nothing about the
    target, so `check` repeats it, at most `STALLED_MOST` times.
    """

    reach: Egress

    async def check(self, kind: str, target: str, *conditions: str, **settings: object) -> Result:
        known = ("retries", "timeout_seconds", "secrets", "method", "show_values")
        given = {k: settings.pop(k) for k in known if k in settings}
        method = str(given.pop("method", "GET"))
        check = make_check(kind, target, method, settings, conditions, **given)  # type: ignore[arg-type]
        for _ in range(STALLED_MOST):
            async with not_hanging(check.timeout_seconds + HANGS_SECONDS):
                result = await run(check, self.reach, now)
            if result.unknown_reason is not UnknownReason.LOOP_STALLED:
                break
        return result

    def with_(self, **fields: object) -> "Prober":
        return Prober(replace(self.reach, **fields))  # type: ignore[arg-type]
