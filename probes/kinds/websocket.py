"""WebSocket probe: the opening handshake, and optionally a message and its reply.

trio-websocket implements the protocol on a bounded stream that records the reason for its end. The
library alone waits without end if a peer closes before the handshake. It also hides the status of a
refusal whose body ends with the connection.
"""

import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Union, cast

import h11
import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
)
from wsproto.utilities import LocalProtocolError

from ..check.check import Check
from ..check.client_certificate import (
    CLIENT_CERTIFICATE_FIELDS,
    certificate_faults,
    client_certificate,
)
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.cpu_meter import metered_child
from ..check.failure import TargetFailure
from ..check.monitor_spec import (
    BODY_LONGEST,
    Config,
    Field,
    FieldType,
    MonitorType,
    Spec,
    SpecFault,
    TargetForm,
)
from ..check.oauth2 import OAUTH2, OAUTH2_FIELDS, oauth2_faults, uses_oauth2
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.proxy import PROXY_FIELDS, proxy_faults, proxy_of
from ..check.result import FailureClass, ProbePhase
from ..check.target import Url, read_url
from ..net.access_token import UNAUTHORIZED, with_token
from ..net.certificate_expiry import expires_at_us
from ..net.egress import Egress
from ..net.proxy_tunnel import dial_through
from ..net.tls_contexts import HTTP_ALPN, broken_by

# Limit of received bytes in one conversation, the handshake included.
RECEIVED_BYTES_MOST = 128 * 1024
# Wait for the peer's part of the closing handshake. It does not affect the result.
CLOSE_SECONDS = 0.5
SWITCHED = 101
# Bytes handled without a checkpoint: about 500 of the smallest frames.
_CHUNK = 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r\n]")
_STATUS_LINE_BYTES = len(b"HTTP/1.1 101 ")
_SUBPROTOCOL = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

# Errors of h11 and wsproto for a message in the wrong state, and for text that is not ASCII.
_STUMBLES = (h11.LocalProtocolError, LocalProtocolError, UnicodeDecodeError)

Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]


def _rule(target: str, config: Config) -> list[SpecFault]:
    faults = []
    if config.get("subprotocol") and not _SUBPROTOCOL.fullmatch(str(config["subprotocol"])):
        faults.append(SpecFault("config.subprotocol", "is one name, without spaces or commas"))
    headers = config.get("headers")
    named = [str(name).lower() for name in headers] if isinstance(headers, dict) else []
    if any(name.startswith("sec-websocket-") for name in named):
        faults.append(SpecFault("config.headers", "must not set headers of the handshake"))
    if config.get("auth_mode") == OAUTH2 and "authorization" in named:
        faults.append(SpecFault("config.headers", "must not set authorization with auth_mode"))
    faults += [*certificate_faults(target, config), *oauth2_faults(config)]
    return faults + proxy_faults(config)


SPEC = Spec(
    type=MonitorType.WEBSOCKET,
    help="Opens a WebSocket; optionally sends a message and reads the answer.",
    target=TargetForm.URL,
    schemes=("ws", "wss"),
    fields=(
        Field(
            name="headers",
            type=FieldType.HEADERS,
            help="Sent with the handshake; credential-bearing ones are stored encrypted.",
            secret=True,
        ),
        Field(
            name="subprotocol",
            type=FieldType.TEXT,
            help="Asked for in the handshake; a server that does not choose it is a failure.",
        ),
        Field(
            name="send",
            type=FieldType.TEXT,
            help="Sent as a text message; the next message that comes is [RESULT] and [BODY].",
            multiline=True,
            longest=BODY_LONGEST,
        ),
        Field(
            name="auth_mode",
            type=FieldType.CHOICE,
            help="Authentication of the handshake.",
            default="none",
            choices=("none", OAUTH2),
        ),
        *CLIENT_CERTIFICATE_FIELDS,
        *OAUTH2_FIELDS,
        *PROXY_FIELDS,
    ),
    placeholders=frozenset(
        {"RESULT", "BODY", "STATUS", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}
    ),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    if not uses_oauth2(check):
        return await _attempt(check, reach, watch)

    async def send(token: str) -> Observation | TargetFailure:
        try:
            return await _attempt(check, reach, watch, token)
        except TargetFailure as failed:
            return failed

    seen = await with_token(reach, check, watch, send, lambda seen: seen.code == UNAUTHORIZED)
    if isinstance(seen, TargetFailure):
        raise seen
    return seen


async def _attempt(check: Check, reach: Egress, watch: Stopwatch, token: str = "") -> Observation:
    url = read_url(check.target, SPEC.schemes)
    identity = client_certificate(check)
    connection = await dial_through(reach, proxy_of(check), url.host, url.port, watch)
    hidden = (token,) if token else ()
    facts = ProbeValues(connected=True, ip=connection.address or None, hidden=hidden)
    stream: Stream = connection.carrier
    ends_at = None
    try:
        if url.scheme == "wss":
            stream = wrapped = await reach.encrypt(
                connection, url.host, watch, alpn=HTTP_ALPN, identity=identity
            )
            ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
        watch.begin(ProbePhase.FIRST_BYTE)
        guarded = _Guarded(stream, watch)
        message, took_us = await _converse(guarded, check, url, reach.user_agent, token)
    except TargetFailure as failed:
        if failed.failure is not FailureClass.HTTP_STATUS or not check.wants("STATUS"):
            raise
        # A condition on the status may expect a status that is a failure otherwise.
        facts.status = failed.code
        return Observation(facts, code=failed.code, failure=failed.failure, cert_ends_at=ends_at)
    finally:
        connection.stream.socket.close()
    facts.status = SWITCHED
    if message is not None:
        facts.body = message if isinstance(message, str) else message.decode("utf-8", "replace")
    facts.result = MISSING if facts.body is None else facts.body
    return Observation(facts, code=SWITCHED, cert_ends_at=ends_at, took_us=took_us)


async def _converse(
    stream: "_Guarded", check: Check, url: Url, user_agent: str, token: str
) -> tuple[str | bytes | None, int]:
    """Returns the received message, and the time without the closing handshake, in µs.

    The nursery raises only cancellation, so that the caller never receives an exception group.
    """
    failed: TargetFailure | None = None
    message, took_us = None, 0
    async with trio.open_nursery() as nursery:
        try:
            socket = await _open(nursery, stream, check, url, _headers(check, user_agent, token))
            message = await _exchange(socket, stream, check)
            took_us = stream.watch.elapsed_us()
            await _close(socket)
        except TargetFailure as failure:
            failed = failure
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return message, took_us


def _headers(check: Check, user_agent: str, token: str) -> dict[str, str]:
    given = check.config.get("headers")
    headers = {str(n).lower(): str(v) for n, v in given.items()} if isinstance(given, dict) else {}
    headers.setdefault("user-agent", user_agent)
    if token:
        headers["authorization"] = f"Bearer {token}"
    return headers


async def _open(
    nursery: trio.Nursery, stream: "_Guarded", check: Check, url: Url, headers: dict[str, str]
) -> WebSocketConnection:
    host = headers.pop("host", url.authority)
    subprotocol = check.text("subprotocol")
    opened: WebSocketConnection | None = None
    with trio.CancelScope() as opening:
        opened = await wrap_client_stream(
            cast("trio.Nursery", _Starter(nursery, opening)),
            cast("trio.SocketStream", stream),
            host,
            url.path,
            subprotocols=[subprotocol] if subprotocol else None,
            extra_headers=[(n.encode(), v.encode()) for n, v in headers.items()],
            max_message_size=RECEIVED_BYTES_MOST,
        )
    if opened is None or (opened.subprotocol or "") != subprotocol:
        raise stream.failed or TargetFailure(FailureClass.PROTOCOL_ERROR)
    return opened


async def _exchange(
    socket: WebSocketConnection, stream: "_Guarded", check: Check
) -> str | bytes | None:
    send = check.text("send")
    try:
        if send:
            await socket.send_message(send)
        if send or check.wants("BODY") or check.wants("RESULT"):
            return await socket.get_message()
    except (ConnectionClosed, LocalProtocolError):
        raise stream.failed or TargetFailure(FailureClass.PROTOCOL_ERROR) from None
    return None


async def _close(socket: WebSocketConnection) -> None:
    """Closes the connection in order. Uses at most half of the time left."""
    left = trio.current_effective_deadline() - trio.current_time()
    with (
        trio.move_on_after(max(0.0, min(CLOSE_SECONDS, left / 2))),
        suppress(TargetFailure, LocalProtocolError),
    ):
        await socket.aclose()


class _Starter:
    """Substitute for the nursery in which the library starts its reader.

    The end of the reader must cancel the wait for a handshake. The stream reports its errors.
    """

    def __init__(self, nursery: trio.Nursery, opening: trio.CancelScope) -> None:
        self._nursery = nursery
        self._opening = opening

    def start_soon(self, read: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(self._run, read)

    async def _run(self, read: Callable[[], Awaitable[None]]) -> None:
        # The library raises these errors for responses that are not a handshake, and for a ping
        # after our close frame. If the conversation is not finished then, it is a `protocol_error`
        # of the peer.
        try:
            with suppress(TargetFailure, ConnectionRejected, *_STUMBLES):
                await metered_child(read)
        finally:
            self._opening.cancel()


class _Guarded(trio.abc.Stream):
    """Bounded stream for the library. The caller closes the underlying stream.

    `failed` is the reason for its end, set before the library sees the end.
    """

    def __init__(self, stream: Stream, watch: Stopwatch) -> None:
        self._stream = stream
        self.watch = watch
        self._left = RECEIVED_BYTES_MOST
        self._head: bytes | None = b""
        self.failed: TargetFailure | None = None

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
            raise self._fail(FailureClass.CONNECT_ERROR) from error

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            piece = bytes(await self._stream.receive_some(min(max_bytes or _CHUNK, _CHUNK)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
            raise self._fail(broken_by(error)) from error
        self.watch.done()
        self._left -= len(piece)
        if not piece:
            raise self._fail(FailureClass.PROTOCOL_ERROR)
        self._read_status(piece)
        if self._left < 0:
            raise self._fail(FailureClass.RESPONSE_TOO_LARGE)
        return piece

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def _read_status(self, piece: bytes) -> None:
        """Checks the status line, and fails immediately if it refuses the handshake."""
        if self._head is None:
            return
        self._head += piece[:_STATUS_LINE_BYTES]
        if len(self._head) < _STATUS_LINE_BYTES:
            return
        found = _STATUS_LINE.match(self._head)
        self._head = None
        status = int(found[1]) if found else SWITCHED
        if status != SWITCHED:
            raise self._fail(FailureClass.HTTP_STATUS, status)

    def _fail(self, failure: FailureClass, code: int | None = None) -> TargetFailure:
        self.failed = TargetFailure(failure, code)
        return self.failed
