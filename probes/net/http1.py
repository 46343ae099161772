"""HTTP/1.1 on a stream. Every read is bounded.

h11 implements the protocol. Almost every response has a head of the usual form that arrives in one
piece. Such a head is split by a pattern that accepts a subset of what h11 accepts, which costs a
tenth. All others go to h11, with the bytes received so far: the result is the same.
"""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import h11
import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from .http_exchange import (
    HEADERS_BYTES_MOST,
    INFORMATIONAL_MOST,
    HttpRequest,
    RawResponse,
    Stream,
    request_headers,
)
from .tls_contexts import broken_by

# Limit of header lines, checked before each read. Each line costs one or two microseconds.
LINES_MOST = 2_000
# Bytes handled without a checkpoint. A body of many small chunks is read in small pieces: 512 bytes
# hold about 85 chunks of one byte, which h11 parses in 2 ms.
CHUNK_LEAST, CHUNK = 512, 4_096
DENSE = 16
# A body without chunked coding is not parsed piece by piece.
PLAIN_CHUNK = 65_536

# Usual head: a final status, and lines without folding, in ASCII or Latin-1.
_TEXT: Final = rb"[\t\x20-\x7e\x80-\xff]*+"
_LINE: Final = rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++):(" + _TEXT + rb")\r\n"
_LINES: Final = re.compile(_LINE)
_HEAD: Final = re.compile(
    rb"HTTP/1\.[01] ([2-5][0-9]{2}) " + _TEXT + rb"\r\n((?:" + _LINE + rb")*+)\r\n"
)
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_WITHOUT_BODY: Final = frozenset({204, 304})


async def exchange(
    stream: Stream, request: HttpRequest, watch: Stopwatch, user_agent: str
) -> RawResponse:
    """Returns the response. The caller closes the stream.

    Raises: `TargetFailure` with the class.
    """
    with _failures_named():
        watch.begin(ProbePhase.FIRST_BYTE)
        await _send(stream, request, _wire_of(request, user_agent))
        data = bytes(await stream.receive_some(CHUNK))
        if data:
            watch.done()
        usual = _usual_head(data, request.method)
        if usual is not None:
            body, whole = await _read_plain_body(stream, request, usual)
            return RawResponse(usual.status, usual.headers, body, whole)
        http = _sent(request, user_agent)[0]
        return await _exchange_by_h11(http, stream, request, watch, data)


async def _exchange_by_h11(
    http: h11.Connection, stream: Stream, request: HttpRequest, watch: Stopwatch, data: bytes
) -> RawResponse:
    """Returns the response, of which `data` is received. No data is the end of the stream."""
    http.receive_data(data)
    head = await _read_head(http, stream, watch, data.count(b"\n"))
    chunked = any(name == b"transfer-encoding" for name, _ in head.headers)
    body, whole = await _read_body(http, stream, request, CHUNK if chunked else PLAIN_CHUNK)
    return RawResponse(head.status_code, list(head.headers), body, whole)


async def begin(
    stream: Stream, request: HttpRequest, watch: Stopwatch, user_agent: str
) -> "Http1Response":
    """Returns the response head. The caller reads the body with `receive`.

    Raises: `TargetFailure` with the class.
    """
    with _failures_named():
        http, head = await _begin(stream, request, watch, user_agent)
    return Http1Response(http, stream, head)


class Http1Response:
    """Response whose body is read piece by piece.

    `received_bytes` counts the bytes of the body as received, chunk framing included. Bytes that
    arrived together with the head are not counted.
    """

    def __init__(self, http: h11.Connection, stream: Stream, head: h11.Response) -> None:
        self.status: int = head.status_code
        self.headers = list(head.headers)
        self.received_bytes = 0
        self._http = http
        self._stream = stream

    async def receive(self) -> bytes:
        """Returns the next bytes of the body, or b"" at its end.

        Raises: `TargetFailure` if the body ends too early.
        """
        with _failures_named():
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    data = bytes(await self._stream.receive_some(CHUNK))
                    self.received_bytes += len(data)
                    self._http.receive_data(data)
                elif isinstance(event, h11.EndOfMessage):
                    return b""
                elif not isinstance(event, h11.Data):
                    raise TargetFailure(FailureClass.PROTOCOL_ERROR)
                elif event.data:
                    return bytes(event.data)


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    except h11.RemoteProtocolError as error:
        too_large = error.error_status_hint == 431
        raise TargetFailure(
            FailureClass.RESPONSE_TOO_LARGE if too_large else FailureClass.PROTOCOL_ERROR
        ) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
        raise TargetFailure(broken_by(error)) from error


async def _begin(
    stream: Stream, request: HttpRequest, watch: Stopwatch, user_agent: str
) -> tuple[h11.Connection, h11.Response]:
    watch.begin(ProbePhase.FIRST_BYTE)
    http, wire = _sent(request, user_agent)
    await _send(stream, request, wire)
    return http, await _read_head(http, stream, watch)


def _sent(request: HttpRequest, user_agent: str) -> tuple[h11.Connection, bytes]:
    """Returns a connection that waits for the response, and the request in bytes."""
    headers = request_headers(request, user_agent)
    if not any(name.lower() == "host" for name, _ in headers):
        headers.insert(0, ("host", request.url.authority))
    headers.append(("connection", "close"))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADERS_BYTES_MOST)
    wire = http.send(
        h11.Request(
            method=request.method,
            target=request.url.path.encode("ascii"),
            headers=[(n.encode("ascii"), v.encode("utf-8")) for n, v in headers],
        )
    )
    assert wire is not None
    if request.body:
        wire += http.send(h11.Data(data=request.body)) or b""
    wire += http.send(h11.EndOfMessage()) or b""
    return http, wire


def _wire_of(request: HttpRequest, user_agent: str) -> bytes:
    """Returns the request in bytes. A request without a jar is built once."""
    wire = request.made.get(user_agent) if request.jar is None else None
    if wire is None:
        wire = _sent(request, user_agent)[1]
        if request.jar is None:
            request.made[user_agent] = wire
    return wire


async def _send(stream: Stream, request: HttpRequest, wire: bytes) -> None:
    """Sends the request. A broken write of a request with a body is ignored.

    A target may respond without reading the whole body, and its response is still read.
    """
    try:
        await stream.send_all(wire)
    except trio.BrokenResourceError:
        if not request.body:
            raise


class _UsualHead(NamedTuple):
    """Head of a response, with the bytes of the body that arrived together with it.

    `length` is the length of the body, None if the end of the stream ends it.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    length: int | None
    rest: bytes


def _usual_head(data: bytes, method: str) -> _UsualHead | None:
    """Splits a head of the usual form. Returns None for any other, which h11 judges."""
    found = _HEAD.match(data)
    if found is None:
        return None
    status, length = int(found[1]), None
    headers = [(n.lower(), v.strip(b" \t")) for n, v in _LINES.findall(found[2])]
    for name, value in headers:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length":
            if length is not None or _LENGTH.fullmatch(value) is None:
                return None
            length = int(value)
    if status in _WITHOUT_BODY or method == "HEAD":
        length = 0
    return _UsualHead(status, headers, length, data[found.end() :])


async def _read_plain_body(
    stream: Stream, request: HttpRequest, head: _UsualHead
) -> tuple[bytes, bool]:
    """Returns the body as `_read_body` does."""
    body = bytearray()
    left, data = head.length, head.rest
    size = 0
    while left != 0:
        if left is not None:
            data = data[:left]
            left -= len(data)
        size += len(data)
        if request.keep_body:
            body += data
        if size > request.body_bytes_most:
            return bytes(body[: request.body_bytes_most]), False
        if left == 0:
            break
        data = bytes(await stream.receive_some(PLAIN_CHUNK))
        if not data:
            if left is not None:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            break
    return bytes(body), True


async def _read_head(
    http: h11.Connection,
    stream: Stream,
    watch: Stopwatch,
    lines: int = 0,
) -> h11.Response:
    """Returns the final head. `lines` of the response are received already."""
    informational = 0
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            if lines > LINES_MOST:
                raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
            data = await stream.receive_some(CHUNK)
            if data:
                watch.done()
            http.receive_data(bytes(data))
            lines += data.count(b"\n")
        elif isinstance(event, h11.Response):
            return event
        elif isinstance(event, h11.InformationalResponse):
            informational += 1
            if informational > INFORMATIONAL_MOST or event.status_code == 101:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        else:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)


async def _read_body(
    http: h11.Connection,
    stream: Stream,
    request: HttpRequest,
    chunk_most: int,
) -> tuple[bytes, bool]:
    """Returns the encoded body, empty unless `keep_body`, and whether it is complete."""
    # One buffer: joining and freeing a hundred thousand pieces would block the event loop.
    body = bytearray()
    size = pieces = 0
    chunk = chunk_most
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            chunk = CHUNK_LEAST if pieces > DENSE else min(chunk * 2, chunk_most)
            pieces = 0
            http.receive_data(bytes(await stream.receive_some(chunk)))
        elif isinstance(event, h11.Data):
            pieces += 1
            size += len(event.data)
            if request.keep_body:
                body += event.data
            if size > request.body_bytes_most:
                return bytes(body[: request.body_bytes_most]), False
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body), True
        else:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
