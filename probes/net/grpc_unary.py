"""One unary gRPC call over HTTP/2 on a given stream, with a failure class for each end.

h2 encodes and decodes the frames. grpcio is not used: it reports most failures with one status and
a text (docs/adr/0006).
"""

import ssl
from dataclasses import dataclass, field
from typing import Union

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from .http2 import FRAME_HEAD, GoAwayFilter, demand_settings
from .tls_contexts import broken_by

# Limit of all received bytes of a call, frames and headers included. It is below the initial window
# of HTTP/2.
RECEIVED_BYTES_MOST = 60 * 1024
# Bytes handled without a checkpoint: about 400 of the smallest frames.
_CHUNK = 4 * 1024
_PREFIX_BYTES = 5
CONTENT_TYPE = "application/grpc"

Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryCall:
    """Parameters of one call.

    `path` is `/service/Method`. `timeout_ms` is sent to the server as its deadline.
    """

    scheme: str
    authority: str
    path: str
    message: bytes
    user_agent: str
    timeout_ms: int


@dataclass(slots=True)
class _Heard:
    """State received on the single stream of the connection."""

    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""
    ended: bool = False


async def call(stream: Stream, request: UnaryCall, watch: Stopwatch) -> tuple[int, bytes]:
    """Returns the status and the message, which is empty unless the status is 0 (OK)."""
    http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    watch.begin(ProbePhase.FIRST_BYTE)
    _start(http, request)
    heard, farewells = _Heard(), GoAwayFilter()
    left = RECEIVED_BYTES_MOST
    first = b""
    while not heard.ended:
        piece = await _exchange(http, stream)
        watch.done()
        left -= len(piece)
        if left < 0:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
        if len(first) < FRAME_HEAD:
            first += piece
            demand_settings(first)
        try:
            for event in http.receive_data(farewells.without(piece)):
                _note(event, heard)
        except (h2.exceptions.ProtocolError, UnicodeDecodeError) as error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
    return _read(heard)


def _start(http: h2.connection.H2Connection, request: UnaryCall) -> None:
    length = len(request.message).to_bytes(4, "big")
    http.initiate_connection()
    http.send_headers(
        1,
        [
            (":method", "POST"),
            (":scheme", request.scheme),
            (":path", request.path),
            (":authority", request.authority),
            ("te", "trailers"),
            ("content-type", CONTENT_TYPE),
            ("user-agent", request.user_agent),
            ("grpc-timeout", f"{request.timeout_ms}m"),
        ],
    )
    http.send_data(1, b"\x00" + length + request.message, end_stream=True)


async def _exchange(http: h2.connection.H2Connection, stream: Stream) -> bytes:
    """Sends the pending bytes and returns the next received bytes.

    If the peer has stopped reading, its last bytes may state the reason, so they are read first.
    """
    unsent: trio.BrokenResourceError | None = None
    try:
        await stream.send_all(http.data_to_send())
    except trio.BrokenResourceError as error:
        unsent = error
    try:
        piece = bytes(await stream.receive_some(_CHUNK))
    except (trio.BrokenResourceError, ssl.SSLError) as error:
        raise TargetFailure(broken_by(error)) from error
    if not piece:
        raise TargetFailure(FailureClass.CONNECT_ERROR if unsent else FailureClass.PROTOCOL_ERROR)
    return piece


def _note(event: h2.events.Event, heard: _Heard) -> None:
    match event:
        case h2.events.ResponseReceived() | h2.events.TrailersReceived():
            heard.headers.update((str(name), str(value)) for name, value in event.headers or ())
        case h2.events.DataReceived():
            heard.data += event.data or b""
        case h2.events.StreamEnded():
            heard.ended = True
        case h2.events.StreamReset() | h2.events.ConnectionTerminated() if not heard.ended:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)


def _read(heard: _Heard) -> tuple[int, bytes]:
    """Returns the status and the message (gRPC over HTTP/2, Responses).

    Raises: `TargetFailure(http_status)` for the response of a proxy in place of the server.
    """
    http_status = _number(heard.headers.get(":status", ""))
    if http_status is None:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    if http_status != 200:
        raise TargetFailure(FailureClass.HTTP_STATUS, http_status)
    status = _number(heard.headers.get("grpc-status", ""))
    if status is None or not heard.headers.get("content-type", "").startswith(CONTENT_TYPE):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    if status != 0:
        return status, b""
    prefix, message = heard.data[:_PREFIX_BYTES], heard.data[_PREFIX_BYTES:]
    # A first byte of 1 means compressed, which the request does not offer.
    if prefix != b"\x00" + len(message).to_bytes(4, "big"):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return 0, message


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else None
