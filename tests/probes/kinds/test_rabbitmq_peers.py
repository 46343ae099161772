"""RabbitMQ checks against malformed, hostile and interrupted peers, which use pamqp."""

import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
import trio
import trio.testing
import trustme
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame

from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.bounded_reader import Reader
from leadline.probes.net.sessions.amqp_session import FRAME_BYTES_MOST, AmqpSession
from tests.probes.kinds.test_http import serving_tls
from tests.support.peers.real_servers import HOST
from tests.support.peers.servers import Prober, answer, answering, deadline_for, serving

HEADER = b"AMQP\x00\x00\x09\x01"
PASSWORD = "canary-50f1c2"
WATCHER: dict[str, object] = {"username": "watcher", "password": PASSWORD}


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


def wire(method: "frame.FrameTypes", channel: int = 0) -> bytes:
    return frame.marshal(method, channel)


START = wire(
    commands.Connection.Start(
        server_properties={"product": "RabbitMQ", "capabilities": {"basic.nack": True}},
        mechanisms="AMQPLAIN PLAIN",
    )
)
TUNE = wire(commands.Connection.Tune(2_047, 131_072, 60))
OPEN_OK = wire(commands.Connection.OpenOk())
CHANNEL_OK = wire(commands.Channel.OpenOk(), 1)
DECLARED = wire(commands.Queue.DeclareOk("jobs", 3, 0), 1)
CLOSE_OK = wire(commands.Connection.CloseOk())
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
LOGIN = [START, TUNE, OPEN_OK]


def closing(code: int) -> bytes:
    return wire(commands.Connection.Close(code, "secret text", 0, 0))


def closing_channel(code: int) -> bytes:
    return wire(commands.Channel.Close(code, "secret text", 50, 10), 1)


def raw(channel: int, payload: bytes) -> bytes:
    return struct.pack("!BHI", 1, channel, len(payload)) + payload + b"\xce"


def started(properties: bytes) -> bytes:
    """Returns a Start whose table of properties has this content."""
    table = len(properties).to_bytes(4, "big") + properties
    return raw(0, b"\x00\x0a\x00\x0a\x00\x09" + table + b"\x00\x00\x00\x05PLAIN" + bytes(4))


def nested(kind: bytes, size: int) -> bytes:
    """Returns tables, or arrays, nested as deeply as the number of bytes allows."""
    name = b"\x00" if kind == b"F" else b""
    held = b""
    while len(held) < size - 10:
        held = name + kind + len(held).to_bytes(4, "big") + held
    return held if kind == b"F" else b"\x00" + held


# A Start has 26 bytes in addition to the table.
PROPERTIES_MOST = FRAME_BYTES_MOST - 26


class Peer:
    """Reads a method (or the first header) and sends the next part of its script."""

    def __init__(self, *script: bytes) -> None:
        self.script = script
        self.heard: list[object] = []

    async def __call__(self, stream: trio.SocketStream) -> None:
        held = b""
        for reply in self.script:
            held = await self._hear(stream, held)
            if getattr(self.heard[-1], "name", "") == "Connection.TuneOk":
                held = await self._hear(stream, held)
            await stream.send_all(reply)
        await stream.send_eof()
        while True:
            held = await self._hear(stream, held)

    async def _hear(self, stream: trio.SocketStream, held: bytes) -> bytes:
        while True:
            if held[:4] == b"AMQP" and len(held) >= 8:
                self.heard.append(held[:8])
                return held[8:]
            size = int.from_bytes(held[3:7], "big")
            if len(held) >= 8 and held[:4] != b"AMQP" and len(held) >= size + 8:
                taken, _, method = frame.unmarshal(held)
                self.heard.append(method)
                return held[taken:]
            more = await stream.receive_some(65_536)
            if not more:
                raise trio.BrokenResourceError
            held += bytes(more)


async def test_another_codec_reads_the_sent_methods(prober: Prober) -> None:
    peer = Peer(START, HEARTBEAT + TUNE, OPEN_OK, CHANNEL_OK, HEARTBEAT + DECLARED, CLOSE_OK)
    async with serving(peer) as port:
        config = {**WATCHER, "vhost": "shop", "queue": "jobs"}
        result = await prober.check("rabbitmq", f"{HOST}:{port}", "[RESULT] == 3", **config)
    assert result.msg == ""
    header, start, tune, opened, channel, declare, close = peer.heard
    assert header == HEADER
    assert isinstance(start, commands.Connection.StartOk)
    assert start.client_properties == {"capabilities": {"authentication_failure_close": True}}
    assert (start.mechanism, start.response) == ("PLAIN", f"\x00watcher\x00{PASSWORD}")
    assert isinstance(tune, commands.Connection.TuneOk)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (1, 131_072, 0)
    assert isinstance(opened, commands.Connection.Open)
    assert opened.virtual_host == "shop"
    assert isinstance(channel, commands.Channel.Open)
    assert isinstance(declare, commands.Queue.Declare)
    assert (declare.queue, declare.passive, declare.nowait) == ("jobs", True, False)
    assert isinstance(close, commands.Connection.Close)
    assert close.reply_code == 200


@pytest.mark.parametrize(
    ("script", "failure", "code"),
    [
        ([*LOGIN, CHANNEL_OK, DECLARED], None, None),
        ([*LOGIN, CHANNEL_OK, DECLARED, HEARTBEAT * 40_000], None, None),
        ([HEADER], FailureClass.PROTOCOL_ERROR, None),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], FailureClass.PROTOCOL_ERROR, None),
        ([b""], FailureClass.PROTOCOL_ERROR, None),
        ([START[:-1] + b"\x00"], FailureClass.PROTOCOL_ERROR, None),
        ([START[:20]], FailureClass.PROTOCOL_ERROR, None),
        ([b"\x01\x00\x00\x00\x00\x00\x00\xce"], FailureClass.PROTOCOL_ERROR, None),
        ([b"\x01\x00\x00\x7f\xff\xff\xff"], FailureClass.PROTOCOL_ERROR, None),
        ([b"\x03" + START[1:]], FailureClass.PROTOCOL_ERROR, None),
        ([started(nested(b"F", PROPERTIES_MOST))], FailureClass.PROTOCOL_ERROR, None),
        ([started(nested(b"A", PROPERTIES_MOST))], FailureClass.PROTOCOL_ERROR, None),
        ([started(b"\x00D\xff\x7f\xff\xff\xff"), TUNE, closing(530)],
         FailureClass.AUTH_FAILED, 530),
        ([started(b"\x00V" * (PROPERTIES_MOST // 2)), TUNE, closing(530)],
         FailureClass.AUTH_FAILED, 530),
        ([started(b"\x00V" * PROPERTIES_MOST), TUNE, closing(530)],
         FailureClass.PROTOCOL_ERROR, None),
        ([started(b"\x01")], FailureClass.PROTOCOL_ERROR, None),
        ([started(b"\x00T" + b"\xff" * 8)], FailureClass.PROTOCOL_ERROR, None),
        ([TUNE], FailureClass.PROTOCOL_ERROR, None),
        ([HEARTBEAT * 40_000], FailureClass.RESPONSE_TOO_LARGE, None),
        ([wire(commands.Connection.Start(mechanisms="EXTERNAL"))], FailureClass.AUTH_FAILED, None),
        ([START], FailureClass.PROTOCOL_ERROR, None),
        ([START, closing(403)], FailureClass.AUTH_FAILED, 403),
        ([START, raw(0, b"\x00\x0a\x00\x1e")], FailureClass.PROTOCOL_ERROR, None),
        ([START, TUNE, closing(530)], FailureClass.AUTH_FAILED, 530),
        ([START, TUNE, closing(320)], FailureClass.PROTOCOL_ERROR, 320),
        ([*LOGIN, closing(504)], FailureClass.PROTOCOL_ERROR, 504),
        ([*LOGIN, CHANNEL_OK, closing_channel(404)], FailureClass.PROTOCOL_ERROR, 404),
        ([*LOGIN, CHANNEL_OK, closing_channel(403), CLOSE_OK], FailureClass.AUTH_FAILED, 403),
        ([*LOGIN, CHANNEL_OK, raw(1, b"\x00\x32\x00\x0b")], FailureClass.PROTOCOL_ERROR, None),
        ([*LOGIN, CHANNEL_OK, raw(1, b"\x00\x32\x00\x0b\xff")], FailureClass.PROTOCOL_ERROR, None),
    ],
)  # fmt: skip
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, script: list[bytes], failure: FailureClass | None, code: int | None
) -> None:
    async with serving(Peer(*script)) as port:
        deadline = deadline_for(failure)
        result = await prober.check(
            "rabbitmq", f"{HOST}:{port}", queue="jobs", timeout_seconds=deadline, **WATCHER
        )
    assert (result.msg, result.code) == (down(failure) if failure else "", code)


@given(st.lists(st.binary(min_size=4, max_size=60), max_size=6))
def test_any_bytes_are_parsed_or_refused(payloads: list[bytes]) -> None:
    async def converse(session: AmqpSession) -> None:
        await session.log_in("watcher", PASSWORD, "/")
        await session.messages("jobs")

    async def play() -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        known = [frame_[7:-1] for frame_ in LOGIN]
        for payload in [*known, *payloads] if len(payloads) % 2 else payloads:
            await theirs.send_all(raw(0, payload))
        await theirs.send_eof()
        session = AmqpSession(Reader(ours, Stopwatch(), 10_000))  # type: ignore[arg-type]
        with pytest.raises(TargetFailure):
            await converse(session)

    trio.run(play)


async def test_abrupt_ends_get_their_failure_class(prober: Prober) -> None:
    async def resetting(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        while True:
            await stream.send_all(HEARTBEAT)
            await trio.sleep(0.05)

    async def without_close_ok(stream: trio.SocketStream) -> None:
        await Peer(*LOGIN)(stream)

    handlers: list[tuple[Callable[[trio.SocketStream], Awaitable[None]], FailureClass]] = [
        (resetting, FailureClass.CONNECT_ERROR),
        (silent, FailureClass.TIMEOUT),
        (dripping, FailureClass.TIMEOUT),
    ]
    for handler, failure in handlers:
        async with serving(handler) as port:
            deadline = deadline_for(failure)
            result = await prober.check(
                "rabbitmq", f"{HOST}:{port}", timeout_seconds=deadline, **WATCHER
            )
        assert result.msg == down(failure), handler
    async with serving(without_close_ok) as port:
        result = await prober.check("rabbitmq", f"{HOST}:{port}", **WATCHER)
    assert result.msg == ""


async def test_an_expired_certificate_is_a_tls_error(prober: Prober, authority: trustme.CA) -> None:
    expired = authority.issue_cert(HOST, not_after=datetime.now(UTC) - timedelta(days=1))
    heard: list[bytes] = []

    async def hearing(stream: trio.SocketStream) -> None:
        heard.append(bytes(await stream.receive_some(100)))

    async with serving_tls(hearing, expired) as port:
        for mode in ("amqp", "management"):
            target = f"{HOST}:{port}"
            result = await prober.check("rabbitmq", target, mode=mode, tls=True, **WATCHER)
            assert result.msg == down(FailureClass.TLS_ERROR)
    assert b"".join(heard) == b""


@pytest.mark.parametrize(
    ("body", "status", "config", "failure"),
    [
        (b'{"messages_ready": 3}', "200 OK", {"queue": "q"}, None),
        (b'{"messages_ready": 3, "state": "running"}', "200 OK", {"queue": "q"}, None),
        (b'{"queue_totals": {"messages_ready": 3}}', "200 OK", {}, None),
        (b'{"messages_ready": 3}', "200 OK", {}, FailureClass.CONDITION_FAILED),
        (b'{"queue_totals": []}', "200 OK", {}, FailureClass.CONDITION_FAILED),
        (
            b'{"messages_ready": 3, "state": "down"}',
            "200 OK",
            {"queue": "q"},
            FailureClass.CONDITION_FAILED,
        ),
        (b'{"messages_ready": "3"}', "200 OK", {"queue": "q"}, FailureClass.PROTOCOL_ERROR),
        (b"[]", "200 OK", {}, FailureClass.PROTOCOL_ERROR),
        (b"<html>", "200 OK", {}, FailureClass.PROTOCOL_ERROR),
        (b"[" * 100_000, "200 OK", {}, FailureClass.PROTOCOL_ERROR),
        (b" " * 2_000_000, "200 OK", {}, FailureClass.RESPONSE_TOO_LARGE),
        (b"", "302 Found", {}, FailureClass.HTTP_STATUS),
        (b"", "403 Forbidden", {}, FailureClass.AUTH_FAILED),
        (b"", "500 Oops", {}, FailureClass.HTTP_STATUS),
    ],
)
async def test_malformed_management_answers_get_their_failure_class(
    prober: Prober,
    body: bytes,
    status: str,
    config: dict[str, object],
    failure: FailureClass | None,
) -> None:
    reply = answer(body, status, "location: http://192.0.2.1/")
    async with serving(answering(reply)) as port:
        given = {"mode": "management", **WATCHER, **config}
        result = await prober.check("rabbitmq", f"{HOST}:{port}", "[RESULT] == 3", **given)
    assert result.msg == (down(failure) if failure else "")


async def test_a_crashed_queue_is_down_without_a_condition(prober: Prober) -> None:
    reply = answer(b'{"messages_ready": 3, "state": "crashed"}')
    async with serving(answering(reply)) as port:
        given = {"mode": "management", "queue": "q", **WATCHER}
        result = await prober.check("rabbitmq", f"{HOST}:{port}", **given)
    assert result.msg == down(FailureClass.CONDITION_FAILED)


@pytest.mark.parametrize("mode", ["amqp", "management"])
@pytest.mark.parametrize(
    ("secret", "reason"),
    [({}, UnknownReason.MISSING_REFERENCE), ({"password": "a\x00b"}, UnknownReason.BAD_SECRET)],
)
async def test_a_secret_that_cannot_be_sent_is_a_local_failure(
    prober: Prober, mode: str, secret: dict[str, str], reason: UnknownReason
) -> None:
    config = {"username": "x", "password_ref": "mq", "mode": mode}
    result = await prober.check("rabbitmq", f"{HOST}:1", secrets=secret, **config)
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)
