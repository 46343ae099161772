"""Whatever a peer does, every kind tells it in time, in a word that fits, and leaves nothing open.

One table of kinds and one of peers; what a kind makes of a peer in particular is in its own tests.
"""

import random
import ssl
import struct
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Union

import pytest
import trio
import trustme

from leadline.probes.check import validate
from leadline.probes.kinds import FILES, spec_of
from leadline.probes.result import FailureClass, Outcome, Result
from tests.probes.leaks import cancelled_often, nothing_left_behind
from tests.probes.servers import Prober, answer, serving

HOST = "127.0.0.1"
TIMEOUT_SECONDS = 1
LATE_SECONDS_MOST = 0.2
# At once; more would measure this machine and not the deadline.
ENDLESS_AT_ONCE = 2

Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]
Peer = Callable[["Form", Stream], Awaitable[None]]

CONNECT_ERROR, TIMEOUT = FailureClass.CONNECT_ERROR, FailureClass.TIMEOUT
PROTOCOL, TLS = FailureClass.PROTOCOL_ERROR, FailureClass.TLS_ERROR
TOO_LARGE, CONDITION = FailureClass.RESPONSE_TOO_LARGE, FailureClass.CONDITION_FAILED


@dataclass(frozen=True)
class Form:
    """One way to ask a peer. `opening` and then `more` for ever is what would be listened to."""

    kind: str
    target: str = f"{HOST}:{{port}}"
    config: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    opening: bytes = b""
    more: bytes = b"a"
    # The peer speaks TLS, and then misbehaves.
    inside_tls: bool = False
    # The first that this kind says is a handshake of TLS.
    begins_with_tls: bool = False
    reads_bodies: bool = False
    # It says nothing before the peer does.
    listens_first: bool = False
    # What a peer of another protocol is here, beside a `protocol_error`.
    also: frozenset[FailureClass] = frozenset()
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


HEAD = b"HTTP/1.1 200 OK\r\nx: "
BODY = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
WANTS = ("[BODY] contains zebra",)
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
NOTICE = b"N\x00\x00\x00\x06a\x00"
IGNORE = b"\x00\x00\x00\x0c\x06\x02\x00\x00\x00\x00" + bytes(6)
# What another protocol says may be the beginning of what is listened to, or come before it.
WAITS = frozenset({TIMEOUT})
RECORD = b"\x16\x03\x03\x40\x00\x02\x00\xff\xff"
LOGIN = {"username": "watcher", "password": "canary-50f1c2"}
STEP = {"method": "GET", "assert": [{"kind": "body_contains", "op": "contains", "value": "zebra"}]}
PIN = "SHA256:" + "A" * 43


def _scenario(scheme: str) -> dict[str, Any]:
    return {"scenario": {"steps": [{**STEP, "url": f"{scheme}://{HOST}:PORT/"}]}}


FORMS = [
    Form("http", "http://{host}:{port}/", opening=HEAD, name="head"),
    Form("http", "http://{host}:{port}/", {}, WANTS, opening=BODY, reads_bodies=True, name="body"),
    Form("http", "https://{host}:{port}/", opening=RECORD, begins_with_tls=True, name="tls"),
    Form("http", "https://{host}:{port}/", {}, WANTS, opening=BODY, inside_tls=True,
         reads_bodies=True, name="inside tls"),
    Form("http", "https://{host}:{port}/", {"http_version": "2"}, opening=SETTINGS, more=SETTINGS,
         inside_tls=True, name="2"),
    Form("promql", "http://{host}:{port}/", {"query": "up"}, opening=BODY, reads_bodies=True),
    Form("synthetic", "", _scenario("http"), opening=BODY, reads_bodies=True),
    Form("synthetic", "", _scenario("https"), opening=BODY, reads_bodies=True, inside_tls=True,
         name="inside tls"),
    Form("websocket", "ws://{host}:{port}/", opening=HEAD.replace(b"200 OK", b"101 Go")),
    Form("websocket", "wss://{host}:{port}/", opening=HEAD.replace(b"200 OK", b"101 Go"),
         inside_tls=True, name="inside tls"),
    Form("grpc", opening=SETTINGS, more=SETTINGS),
    Form("grpc", config={"tls": True}, opening=SETTINGS, more=SETTINGS, inside_tls=True,
         name="inside tls"),
    Form("tcp", config={"send": "hello"}, conditions=WANTS, also=frozenset({CONDITION, TIMEOUT})),
    Form("tls", opening=RECORD, begins_with_tls=True),
    Form("tls", config={"starttls": "smtp"}, opening=b"220-", listens_first=True, name="smtp"),
    Form("dns", "shop.example", {"resolver": f"{HOST}:PORT", "transport": "tcp"},
         opening=b"\xff\xff", also=WAITS, name="tcp"),
    Form("dns", "shop.example", {"resolver": f"{HOST}:PORT", "transport": "dot"},
         opening=RECORD, begins_with_tls=True, name="dot"),
    Form("redis", config={"key": "queue"}, opening=b"+"),
    Form("redis", config={"key": "queue", "tls": True}, opening=b"+", inside_tls=True,
         name="inside tls"),
    Form("postgres", config={**LOGIN, "sslmode": "disable"}, opening=NOTICE, more=NOTICE),
    Form("postgres", config={**LOGIN, "sslmode": "verify-full"}, opening=b"S" + RECORD,
         also=frozenset({TLS}), name="tls"),
    Form("mysql", config=dict(LOGIN), opening=b"\xff\x3f\x00\x00\x0a", listens_first=True),
    Form("rabbitmq", config=dict(LOGIN), opening=b"\x08\x00\x00\x00\x00\x00\x00\xce",
         more=b"\x08\x00\x00\x00\x00\x00\x00\xce"),
    Form("rabbitmq", config={**LOGIN, "tls": True}, opening=b"\x08\x00\x00\x00\x00\x00\x00\xce",
         more=b"\x08\x00\x00\x00\x00\x00\x00\xce", inside_tls=True, name="inside tls"),
    Form("rabbitmq", config={**LOGIN, "mode": "management"}, opening=BODY, reads_bodies=True,
         name="management"),
    Form("ssh", opening=b"hello\r\n", more=b"hello\r\n", also=WAITS),
    Form("ssh", config={"host_key_sha256": PIN}, opening=b"SSH-2.0-x\r\n", more=IGNORE,
         also=WAITS, name="key"),
    Form("ssh", config={"username": "root", "password_ref": "x"}, secrets={"password": "word"},
         opening=b"SSH-2.0-x\r\n", more=IGNORE, also=WAITS, name="login"),
]  # fmt: skip

# These open no stream to a target: their own tests have peers of another sort.
WITHOUT_STREAMS = {"icmp"}


def test_no_kind_is_forgotten() -> None:
    probed = {kind for kind in FILES if (spec := spec_of(kind)) is not None and spec.probed}
    assert probed == {form.kind for form in FORMS} | WITHOUT_STREAMS


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_each_form_is_one_that_may_be_saved(form: Form) -> None:
    target, config = _asked(form, 4_321)
    refs = {f"{key}_ref": "x" for key in form.secrets}
    assert validate(form.kind, target, None, config | refs, form.conditions) == []


# The peers.


async def _hear(form: Form, stream: Stream) -> None:
    """All that was said so far, or a socket that is closed would say that it was not read."""
    if not form.listens_first:
        await stream.receive_some(65_536)


async def silent(form: Form, stream: Stream) -> None:
    while await stream.receive_some():
        pass


async def dripping(form: Form, stream: Stream) -> None:
    await stream.send_all(form.opening)
    while True:
        await stream.send_all(form.more)
        await trio.sleep(0.05)


async def endless(form: Form, stream: Stream) -> None:
    await stream.send_all(form.opening)
    piece = form.more * (16_384 // len(form.more))
    while True:
        await stream.send_all(piece)


async def garbage(form: Form, stream: Stream) -> None:
    await stream.send_all(random.Random(7).randbytes(4_096))
    await silent(form, stream)


async def garbage_and_an_end(form: Form, stream: Stream) -> None:
    await _hear(form, stream)
    await stream.send_all(random.Random(7).randbytes(4_096))
    await stream.aclose()


async def http_400(form: Form, stream: Stream) -> None:
    """And stays, as some do."""
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await silent(form, stream)


async def leaving(form: Form, stream: Stream) -> None:
    await _hear(form, stream)


async def breaking_off(form: Form, stream: Stream) -> None:
    await _hear(form, stream)
    await stream.send_all(form.opening)


async def resetting(form: Form, stream: Stream) -> None:
    await _hear(form, stream)
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    linger = struct.pack("ii", 1, 0)
    plain.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
    plain.socket.close()


def _packed() -> bytes:
    """Sixty-four megabytes of nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()


BOMB = _packed()


async def bomb(form: Form, stream: Stream) -> None:
    await _hear(form, stream)
    await stream.send_all(answer(BOMB, "200 OK", "content-encoding: gzip"))
    await silent(form, stream)


# What they are called.


def _otherwise(form: Form, *classes: FailureClass) -> set[FailureClass]:
    return {TLS} if form.begins_with_tls else {*classes, *form.also}


def told_of_silence(form: Form) -> set[FailureClass]:
    return {TIMEOUT, *form.also}


def told_of_a_drip(form: Form) -> set[FailureClass]:
    return {TIMEOUT, *form.also} | ({TLS} if form.begins_with_tls else set())


def told_of_no_end(form: Form) -> set[FailureClass]:
    # Named by whoever meets its bound first: the length of a line, of a packet, of it all.
    return {TOO_LARGE, TIMEOUT, PROTOCOL, TLS}


def told_of_garbage(form: Form) -> set[FailureClass]:
    # Which may be the beginning of something.
    return _otherwise(form, PROTOCOL, TLS, TOO_LARGE, TIMEOUT)


def told_of_mere_garbage(form: Form) -> set[FailureClass]:
    return _otherwise(form, PROTOCOL, TLS, TOO_LARGE) - ({TIMEOUT} if form.kind != "tcp" else set())


def told_of_http(form: Form) -> set[FailureClass]:
    if form.opening in (HEAD, BODY) or form.kind == "websocket":
        # Where there are conditions, they alone decide.
        return {CONDITION if form.conditions else FailureClass.HTTP_STATUS}
    return _otherwise(form, PROTOCOL, TLS, TOO_LARGE)


def told_of_an_end(form: Form) -> set[FailureClass]:
    return _otherwise(form, PROTOCOL, CONNECT_ERROR)


def told_of_an_early_end(form: Form) -> set[FailureClass]:
    # A body without a length ends with the connection: it lacks what is wanted, and is no JSON.
    return _otherwise(form, PROTOCOL, CONNECT_ERROR, CONDITION)


def told_of_a_reset(form: Form) -> set[FailureClass]:
    return _otherwise(form, CONNECT_ERROR)


PEERS: list[tuple[Peer, Callable[[Form], set[FailureClass]]]] = [
    (silent, told_of_silence),
    (dripping, told_of_a_drip),
    (endless, told_of_no_end),
    (garbage, told_of_garbage),
    (garbage_and_an_end, told_of_mere_garbage),
    (http_400, told_of_http),
    (leaving, told_of_an_end),
    (breaking_off, told_of_an_early_end),
    (resetting, told_of_a_reset),
]


@pytest.mark.parametrize(("peer", "told"), PEERS, ids=[peer.__name__ for peer, _ in PEERS])
async def test_every_kind_has_a_word_for_it_in_time(
    prober: Prober,
    authority: trustme.CA,
    peer: Peer,
    told: Callable[[Form], set[FailureClass]],
) -> None:
    places = trio.CapacityLimiter(ENDLESS_AT_ONCE if peer is endless else len(FORMS))
    wrong: list[str] = []

    async def judge(form: Form) -> None:
        async with places, playing(form, peer, authority) as port:
            wrong.extend(await _judged(prober, form, port, told(form)))

    async with trio.open_nursery() as nursery:
        for form in FORMS:
            nursery.start_soon(judge, form)
    assert not wrong, "\n".join(wrong)


async def test_a_small_answer_that_unpacks_to_a_large_one_is_too_large(
    prober: Prober, authority: trustme.CA
) -> None:
    wrong: list[str] = []
    for form in FORMS:
        if form.reads_bodies:
            async with playing(form, bomb, authority) as port:
                wrong += await _judged(prober, form, port, {TOO_LARGE})
    assert not wrong, "\n".join(wrong)


async def test_a_closed_port_refuses_every_kind(prober: Prober) -> None:
    async with serving(trio.SocketStream.aclose) as port:
        pass
    wrong: list[str] = []
    for form in FORMS:
        wrong += await _judged(prober, form, port, {FailureClass.CONNECT_REFUSED})
    assert not wrong, "\n".join(wrong)


async def test_a_black_hole_is_a_connection_that_timed_out(prober: Prober) -> None:
    wrong: list[str] = []

    async def judge(form: Form, port: int) -> None:
        wrong.extend(await _judged(prober, form, port, {FailureClass.CONNECT_TIMEOUT}))

    with black_hole() as port:
        async with trio.open_nursery() as nursery:
            for form in FORMS:
                nursery.start_soon(judge, form, port)
    assert not wrong, "\n".join(wrong)


async def test_cancelled_at_any_instant_nothing_of_any_kind_is_left(
    prober: Prober, authority: trustme.CA
) -> None:
    async def cancel_often(form: Form, peer: Peer) -> None:
        async with playing(form, peer, authority) as port:
            await cancelled_often(lambda: _run(prober, form, port))

    async def all_of(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:
            for form in FORMS:
                nursery.start_soon(cancel_often, form, peer)

    # Once, so that what stays (contexts, the thread of asyncio) is there.
    for form in FORMS:
        async with playing(form, leaving, authority) as port:
            await _run(prober, form, port)
    with nothing_left_behind():
        for peer in (dripping,):
            await all_of(peer)
        # Whose peers were told late that nobody is there any more.
        await trio.sleep(0.3)


# What they need.


@asynccontextmanager
async def playing(form: Form, peer: Peer, authority: trustme.CA) -> AsyncIterator[int]:
    """The port of a peer that forgives probes that leave."""

    async def handle(stream: trio.SocketStream) -> None:
        gone = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError)
        with suppress(*gone):
            if not form.inside_tls:
                await peer(form, stream)
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(HOST).configure_cert(context)
            context.set_alpn_protocols(["h2", "http/1.1"])
            wrapped = trio.SSLStream(stream, context, server_side=True)
            await wrapped.do_handshake()
            await peer(form, wrapped)
            await wrapped.aclose()

    async with serving(handle) as port:
        yield port


@contextmanager
def black_hole() -> Iterator[int]:
    """A port whose queue is full: what comes is dropped, and not refused."""
    import socket

    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex((HOST, port))
        time.sleep(0.05)
        yield port
        for one in waiting:
            one.close()


def _asked(form: Form, port: int) -> tuple[str, dict[str, Any]]:
    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: placed(v) for k, v in value.items()}
        if isinstance(value, list):
            return [placed(v) for v in value]
        return value.replace("PORT", str(port)) if isinstance(value, str) else value

    return form.target.format(host=HOST, port=port), placed(form.config)


async def _run(prober: Prober, form: Form, port: int) -> Result:
    target, config = _asked(form, port)
    settings = {"secrets": form.secrets, "timeout_seconds": TIMEOUT_SECONDS}
    return await prober.check(form.kind, target, *form.conditions, **config, **settings)


async def _judged(prober: Prober, form: Form, port: int, expected: set[FailureClass]) -> list[str]:
    began = time.monotonic()
    result = await _run(prober, form, port)
    took = time.monotonic() - began
    wrong = []
    if took > TIMEOUT_SECONDS + LATE_SECONDS_MOST:
        wrong.append(f"{form}: took {took:.2f} s")
    said = result.msg.partition(" ")[0]
    if result.outcome is not Outcome.DOWN or said not in expected:
        reason = f"{result.unknown_reason or ''} {result.bug or ''}"
        wrong.append(f"{form}: {result.outcome} {said} {reason}".strip())
    return wrong
