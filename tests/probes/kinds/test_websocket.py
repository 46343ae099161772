"""WebSocket checks against a real server, with and without TLS, and against malformed peers."""

import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import perf_counter_ns

import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, RunOutcome, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Handler, Prober, answering, read_head, serving
from tests.support.processes.ports import refusing_port

HOST = "127.0.0.1"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


class Echo:
    """Echoes messages, sends the headers for /headers and a greeting on /greet, and stores the
    close code.
    """

    def __init__(self) -> None:
        self._ending, self.ended = trio.open_memory_channel[int](8)
        self.greeted: list[tuple[str, tuple[str, ...]]] = []

    async def serve(self, request: WebSocketRequest) -> None:
        headers = {n.decode(): v.decode() for n, v in request.headers}
        if request.path.startswith("/guarded") and headers.get("authorization") != "Bearer open":
            await request.reject(401, body=b"who are you")
            return
        proposed = request.proposed_subprotocols
        self.greeted.append((request.path, proposed))
        chosen = proposed[0] if proposed and proposed[0] != "unheard" else None
        socket = await request.accept(subprotocol=chosen)
        if request.path == "/greet":
            await socket.send_message('{"hello": {"to": "you"}}')
        await self._echo(socket, headers)

    async def _echo(self, socket: WebSocketConnection, headers: dict[str, str]) -> None:
        with suppress(ConnectionClosed):
            while True:
                message = await socket.get_message()
                if message == "binary":
                    await socket.send_message(b"\xffbytes")
                elif message == "user-agent":
                    await socket.send_message(headers["user-agent"])
                elif message == "long":
                    await socket.send_message("x" * 200_000)
                else:
                    await socket.send_message(f"you said {message!s}")
        assert socket.closed is not None
        await self._ending.send(socket.closed.code)


@asynccontextmanager
async def echo_server(
    certificate: trustme.LeafCert | None = None,
) -> AsyncIterator[tuple[Echo, str]]:
    """Yields the server and the part of its URL before the path."""
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(context)
    echo = Echo()
    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, echo.serve, HOST, 0, context))
        yield echo, f"{'wss' if context else 'ws'}://{HOST}:{server.port}"
        nursery.cancel_scope.cancel()


# A real server.


async def test_a_completed_handshake_is_up_and_closed_properly(prober: Prober) -> None:
    async with echo_server() as (echo, url):
        plain = await prober.check("websocket", url)
        read = await prober.check(
            "websocket", f"{url}/a?b=c", "[STATUS] == 101", "[CONNECTED] == true", "[IP] == " + HOST
        )
        with trio.fail_after(30):
            codes = [await echo.ended.receive() for _ in range(2)]
    assert plain.outcome is read.outcome is RunOutcome.UP, (plain, read)
    assert plain.code == 101
    assert codes == [1000, 1000]
    assert [path for path, _ in echo.greeted] == ["/", "/a?b=c"]


@pytest.mark.parametrize(
    ("path", "conditions", "config", "failure"),
    [
        ("/", ["[RESULT] == you said PING"], {"send": "PING"}, None),
        ("/", ["[BODY] contains said", "[RESPONSE_TIME] < 1m"], {"send": "PING"}, None),
        ("/", ["[RESULT] == PONG"], {"send": "PING"}, FailureClass.CONDITION_FAILED),
        ("/", ["[RESULT] contains bytes"], {"send": "binary"}, None),
        ("/", ["[RESULT] == leadline"], {"send": "user-agent"}, None),
        ("/", ["[RESULT] == me"], {"send": "user-agent", "headers": {"User-Agent": "me"}}, None),
        ("/greet", ["[BODY].hello.to == you"], {}, None),
        ("/greet", [], {"send": "PING"}, None),
        ("/", ["[RESULT] exists"], {"send": "long"}, FailureClass.RESPONSE_TOO_LARGE),
        ("/", [], {"send": "long"}, FailureClass.RESPONSE_TOO_LARGE),
        ("/", [], {"subprotocol": "chat"}, None),
        ("/", [], {"subprotocol": "unheard"}, FailureClass.PROTOCOL_ERROR),
        ("/guarded", [], {"headers": {"Authorization": "Bearer open"}}, None),
        ("/guarded", [], {}, FailureClass.HTTP_STATUS),
        ("/guarded", ["[STATUS] == 401"], {}, None),
        ("/guarded", ["[STATUS] == 101"], {}, FailureClass.CONDITION_FAILED),
    ],
)
async def test_conditions_apply_to_the_received_message(
    prober: Prober,
    path: str,
    conditions: list[str],
    config: dict[str, object],
    failure: FailureClass | None,
) -> None:
    async with echo_server() as (_, url):
        result = await prober.check("websocket", url + path, *conditions, **config)
    assert result.msg == (down(failure) if failure else ""), result
    if failure is FailureClass.HTTP_STATUS:
        assert result.code == 401


async def test_a_missing_message_is_a_timeout(prober: Prober) -> None:
    async with echo_server() as (_, url):
        result = await prober.check("websocket", url, "[RESULT] exists", timeout_seconds=1)
    assert result.msg == down(FailureClass.TIMEOUT)


async def test_the_tls_certificate_is_verified_and_its_expiry_known(
    prober: Prober, authority: trustme.CA
) -> None:
    async with echo_server(authority.issue_cert(HOST)) as (_, url):
        good = await prober.check(
            "websocket", url, "[CERT_EXPIRY] > 1d", "[RESULT] == you said a", send="a"
        )
    async with echo_server(trustme.CA().issue_cert(HOST)) as (_, url):
        foreign = await prober.check("websocket", url)
    async with echo_server(authority.issue_cert("other.example")) as (_, url):
        misnamed = await prober.check("websocket", url)
    async with echo_server() as (_, url):
        plain = await prober.check("websocket", url.replace("ws:", "wss:"))
    assert good.outcome is RunOutcome.UP, good
    assert foreign.msg == misnamed.msg == plain.msg == down(FailureClass.TLS_ERROR)


async def test_cancelled_runs_leave_nothing_open(prober: Prober, authority: trustme.CA) -> None:
    """Servers of the tests, because the real one keeps connections that left before the handshake
    for a minute.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)

    async def secure(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        await wrapped.receive_some(1_000)
        await wrapped.send_all(b"HTTP/1.1 401 Unauthorized\r\n\r\n")

    async with serving(raw(TEXT)) as port:
        await leaves_nothing(
            lambda: prober.check("websocket", f"ws://{HOST}:{port}", "[RESULT] == ok", send="a")
        )
    async with serving(secure) as port:
        await leaves_nothing(lambda: prober.check("websocket", f"wss://{HOST}:{port}"))


# Malformed peers.


def raw(
    *said: bytes,
    reset: bool = False,
    extra: bytes = b"",
    at_goodbye: bytes = b"",
    goodbyes_ns: list[int] | None = None,
) -> Handler:
    """Accepts the handshake, sends these frames, and closes or resets. `goodbyes_ns` has the
    instants of received close frames.
    """

    async def handle(stream: trio.SocketStream) -> None:
        head = await read_head(stream)
        keys = [
            line.split(b": ")[1]
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key")
        ]
        if not keys:
            return
        accept = base64.b64encode(hashlib.sha1(keys[0] + GUID).digest())
        await stream.send_all(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n" + extra + b"\r\n"
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_frames, stream)
            for piece in said:
                await stream.send_all(piece)
            if reset:
                linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
                stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
                stream.socket.close()
            elif not said or said[-1] != MUTE:
                await stream.send_eof()

    async def read_frames(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await stream.receive_some():
                if data[:1] == b"\x88" and goodbyes_ns is not None:
                    goodbyes_ns.append(perf_counter_ns())
                if data[:1] == b"\x88" and at_goodbye:
                    await stream.send_all(at_goodbye)

    return handle


MUTE = b"\x81\x02no"
TEXT = b"\x81\x02ok"


@pytest.mark.parametrize(
    ("handler", "failure", "code"),
    [
        (answering(b"HTTP/1.1 401 Unauthorized\r\n\r\n"), FailureClass.HTTP_STATUS, 401),
        (answering(b"HTTP/1.1 403 Forbidden\r\n\r\nno body ends"), FailureClass.HTTP_STATUS, 403),
        (answering(b"HTTP/1.0 302 Found\r\nLocation: /x\r\n\r\n"), FailureClass.HTTP_STATUS, 302),
        (
            answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
            FailureClass.HTTP_STATUS,
            200,
        ),
        (answering(b"HTTP/1.1 103 Early Hints\r\n\r\n"), FailureClass.HTTP_STATUS, 103),
        (answering(b"HTTP/1.1 101 Switching\r\n\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (answering(b"SSH-2.0-OpenSSH_9.2 and so on\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (answering(b"HTTP"), FailureClass.PROTOCOL_ERROR, None),
        (answering(b""), FailureClass.PROTOCOL_ERROR, None),
        (
            answering(b"HTTP/1.1 101 S\r\n" + b"x: y\r\n" * 30_000),
            FailureClass.PROTOCOL_ERROR,
            None,
        ),
        (raw(extra=b"Sec-WebSocket-Protocol: \xff\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (raw(extra=b"Sec-WebSocket-Protocol: foreign\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (raw(extra=b"Sec-WebSocket-Extensions: deflate\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (raw(b""), FailureClass.PROTOCOL_ERROR, None),
        (raw(b"\x88\x00"), FailureClass.PROTOCOL_ERROR, None),
        (raw(b"\x88\x02\x03\xf1"), FailureClass.PROTOCOL_ERROR, None),
        (raw(b"\xff" * 64), FailureClass.PROTOCOL_ERROR, None),
        (raw(b"\x81\x82abcdef"), FailureClass.PROTOCOL_ERROR, None),
        (raw(b"\x81\x02\xff\xfe"), FailureClass.PROTOCOL_ERROR, None),
        (
            raw(b"\x81\x7f" + (1 << 40).to_bytes(8, "big") + b"x" * 200_000),
            FailureClass.RESPONSE_TOO_LARGE,
            None,
        ),
        (
            raw(b"\x01\x01a", *[b"\x00\x7e\xff\xff" + b"a" * 65_535] * 3),
            FailureClass.RESPONSE_TOO_LARGE,
            None,
        ),
        (raw((b"\x89\x7d" + b"p" * 125) * 2_000), FailureClass.RESPONSE_TOO_LARGE, None),
        (raw(b"\x81\x05on", reset=True), FailureClass.CONNECT_ERROR, None),
    ],
)
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, handler: Handler, failure: FailureClass, code: int | None
) -> None:
    async with serving(handler) as port:
        target = f"ws://{HOST}:{port}/"
        # The probe answers twenty thousand pings one by one, which takes seconds on a busy machine.
        result = await prober.check("websocket", target, "[RESULT] exists", timeout_seconds=60)
    assert (result.msg, result.code) == (down(failure), code), result.bug


async def test_messages_before_a_close_count_and_the_close_is_optional(
    prober: Prober,
) -> None:
    async with serving(raw(TEXT + b"\x88\x02\x03\xe8")) as port:
        closed = await prober.check("websocket", f"ws://{HOST}:{port}", "[RESULT] == ok")
    async with serving(raw(b"\x89\x04ping", b"\x01\x01o", b"\x80\x01k")) as port:
        pieces = await prober.check("websocket", f"ws://{HOST}:{port}", "[RESULT] == ok")
    goodbyes_ns: list[int] = []
    async with serving(raw(MUTE, goodbyes_ns=goodbyes_ns)) as port:
        began_ns = perf_counter_ns()
        mute = await prober.check(
            "websocket", f"ws://{HOST}:{port}", "[RESULT] == no", timeout_seconds=1
        )
    assert closed.outcome is pieces.outcome is mute.outcome is RunOutcome.UP, (closed, pieces, mute)
    until_goodbye_us = (goodbyes_ns[0] - began_ns) // 1_000
    assert mute.phases.total_us <= until_goodbye_us, (
        "the closing handshake is not part of the latency"
    )


async def test_a_ping_that_crosses_the_close_is_no_failure(prober: Prober) -> None:
    handle = raw(MUTE, at_goodbye=b"\x89\x04ping\x88\x02\x03\xe8")
    async with serving(handle) as port:
        for _ in range(20):
            result = await prober.check("websocket", f"ws://{HOST}:{port}", timeout_seconds=20)
            assert result.outcome is RunOutcome.UP, result.bug


async def test_silence_slow_bytes_and_a_closed_port_get_their_class(prober: Prober) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 101 Switching Protocols\r\n")
        while True:
            await stream.send_all(b"x")
            await trio.sleep(0.05)

    handlers: list[Callable[[trio.SocketStream], Awaitable[None]]] = [silent, dripping]
    for handler in handlers:
        async with serving(handler) as port:
            result = await prober.check("websocket", f"ws://{HOST}:{port}", timeout_seconds=1)
        assert result.msg == down(FailureClass.TIMEOUT)
    with refusing_port(HOST) as port:
        refused = await prober.check("websocket", f"ws://{HOST}:{port}")
    assert refused.msg == down(FailureClass.CONNECT_REFUSED)


@given(st.binary(max_size=200))
def test_arbitrary_frames_are_no_probe_bug(said: bytes) -> None:
    from leadline.probes.net.egress import make_reach
    from leadline.probes.net.egress_policy import probe_policy

    async def main() -> None:
        reach = make_reach(probe_policy())
        async with trio.open_nursery() as nursery:
            await nursery.start(reach.lag.watch)
            async with serving(raw(said)) as port:
                result = await Prober(reach).check(
                    "websocket", f"ws://{HOST}:{port}", "[RESULT] exists", timeout_seconds=1
                )
            nursery.cancel_scope.cancel()
        assert result.outcome is not RunOutcome.UNKNOWN, result.bug

    trio.run(main)


def test_invalid_definitions_are_refused() -> None:
    def faulty_fields(target: str = "wss://a.example/live", **config: object) -> list[str]:
        return [f.field for f in validate("websocket", target, None, config, [])]

    assert faulty_fields(send="a\nb", subprotocol="graphql-transport-ws") == []
    assert faulty_fields("https://a.example") == ["target"]
    assert faulty_fields(subprotocol="a, b") == ["config.subprotocol"]
    assert faulty_fields(headers={"Sec-WebSocket-Key": "x"}) == ["config.headers"]
    assert faulty_fields(headers={"Upgrade": "x"}) == ["config.headers"]
