"""HTTP/2 for one request on one connection (RFC 9113). Every read is bounded.

The settings disable server push. Frames that are not part of the response (pings, settings,
priorities) have their own limit, because they cost more time than bytes.
"""

import ssl
from collections.abc import Sequence

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
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

PIECES_MOST = 20_000
# Limit of frames outside the response: pings, settings, priorities, windows.
ASIDES_MOST = 1_000
# One read is handled without a checkpoint, and each frame has a fixed cost. A server that sends
# many small frames is read in small pieces. The smallest piece has space for about 100 of the
# smallest frames.
CHUNK_LEAST, CHUNK_MOST = 1_024, 16_384
DENSE = 16
_STREAM = 1
FRAME_HEAD = 9
_GOAWAY = 7
# Payload of a GOAWAY: last stream, code, and optional debug data.
_FAREWELL_LONGEST = 1_024
_CONFIG = h2.config.H2Configuration(client_side=True, header_encoding=None)
_SETTINGS = {
    h2.settings.SettingCodes.ENABLE_PUSH: 0,
    h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: HEADERS_BYTES_MOST,
    h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1,
}


async def exchange(
    stream: Stream, request: HttpRequest, watch: Stopwatch, user_agent: str
) -> RawResponse:
    """Returns the response. The caller closes the stream.

    Raises: `TargetFailure` with the class.
    """
    talk = _Talk(stream, request, watch)
    watch.begin(ProbePhase.FIRST_BYTE)
    try:
        return await talk.play(user_agent)
    except h2.exceptions.DenialOfServiceError as error:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE) from error
    except h2.exceptions.H2Error as error:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
        raise TargetFailure(broken_by(error)) from error


class GoAwayFilter:
    """Filter for a GOAWAY that refuses further requests but still answers ours.

    h2 treats such a frame as the end of the connection (RFC 9113, 6.8).
    """

    def __init__(self) -> None:
        self._head = b""
        # Remaining payload bytes of the current frame.
        self._left = 0

    def without(self, data: bytes) -> bytes:
        """Returns the bytes of `data` to process.

        A frame head and such a GOAWAY are kept back until they are complete.
        """
        heard = []
        while data:
            if self._left:
                heard.append(data[: self._left])
                self._left -= len(heard[-1])
                data = data[len(heard[-1]) :]
                continue
            wanted = self._wanted()
            piece, data = data[: wanted - len(self._head)], data[wanted - len(self._head) :]
            self._head += piece
            if len(self._head) < self._wanted():
                continue
            if not self._is_farewell():
                heard.append(self._head)
                self._left = FRAME_HEAD + int.from_bytes(self._head[:3], "big") - len(self._head)
            self._head = b""
        return b"".join(heard)

    def _wanted(self) -> int:
        """Returns how many bytes of the frame the filter needs: a GOAWAY completely."""
        head = self._head
        goes = len(head) >= FRAME_HEAD and head[3] == _GOAWAY
        length = int.from_bytes(head[:3], "big")
        return FRAME_HEAD + length if goes and length <= _FAREWELL_LONGEST else FRAME_HEAD

    def _is_farewell(self) -> bool:
        payload = self._head[FRAME_HEAD:]
        if self._head[3] != _GOAWAY or len(payload) < 8 or self._head[5:9] != bytes(4):
            return False
        last, code = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
        return last & 0x7FFFFFFF >= _STREAM and code == h2.errors.ErrorCodes.NO_ERROR


class _Talk:
    """One stream of one connection."""

    def __init__(self, stream: Stream, request: HttpRequest, watch: Stopwatch) -> None:
        self._stream = stream
        self._request = request
        self._watch = watch
        self._h2 = h2.connection.H2Connection(_CONFIG)
        self._h2.local_settings = h2.settings.Settings(client=True, initial_values=_SETTINGS)
        self._pieces_left, self._asides_left = PIECES_MOST, ASIDES_MOST
        self._chunk = CHUNK_LEAST
        self._informational_left = INFORMATIONAL_MOST
        self._status: int | None = None
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._first = b""
        self._farewells = GoAwayFilter()

    async def play(self, user_agent: str) -> RawResponse:
        self._h2.initiate_connection()
        ends = not self._request.body
        self._h2.send_headers(_STREAM, _fields(self._request, user_agent), end_stream=ends)
        await self._flush()
        if not ends:
            await self._send_body()
        while not self._ended and not self._is_too_large:
            await self._hear()
        if self._status is None:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        body = b"".join(self._pieces)
        whole = not self._is_too_large
        return RawResponse(
            self._status, self._headers, body[: self._request.body_bytes_most], whole
        )

    @property
    def _is_too_large(self) -> bool:
        return self._size > self._request.body_bytes_most

    async def _send_body(self) -> None:
        """Sends the body as flow control allows. Stops once the response has ended."""
        left = memoryview(self._request.body)
        while left and not self._ended:
            window = self._h2.local_flow_control_window(_STREAM)
            most = min(window, self._h2.max_outbound_frame_size)
            if most <= 0:
                await self._hear()
                continue
            piece, left = bytes(left[:most]), left[most:]
            self._h2.send_data(_STREAM, piece, end_stream=not left)
            await self._flush()

    async def _hear(self) -> None:
        data = await self._stream.receive_some(self._chunk)
        if not data:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        if len(self._first) < FRAME_HEAD:
            self._first += bytes(data)
            demand_settings(self._first)
        events = self._h2.receive_data(self._farewells.without(bytes(data)))
        self._chunk = CHUNK_LEAST if len(events) > DENSE else min(self._chunk * 2, CHUNK_MOST)
        for event in events:
            self._count(event)
            self._take(event)
        await self._flush()

    def _count(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            self._pieces_left -= 1
        else:
            self._asides_left -= 1
        if self._pieces_left < 0 or self._asides_left < 0:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.InformationalResponseReceived():
                self._informational_left -= 1
                if self._informational_left < 0:
                    raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            case h2.events.ResponseReceived():
                self._watch.done()
                self._read_head(event.headers or [])
            case h2.events.DataReceived():
                self._size += len(event.data or b"")
                if self._request.keep_body:
                    self._pieces.append(event.data or b"")
                length = event.flow_controlled_length or 0
                self._h2.acknowledge_received_data(length, _STREAM)
            case h2.events.StreamEnded():
                self._ended = True
            case h2.events.StreamReset():
                # A server that has responded may refuse the rest of the request.
                if event.error_code != h2.errors.ErrorCodes.NO_ERROR or self._status is None:
                    raise TargetFailure(FailureClass.PROTOCOL_ERROR)
                self._ended = True
            case h2.events.ConnectionTerminated():
                if not self._ended:
                    raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            case _:
                pass

    def _read_head(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        found = dict(fields).get(b":status", b"")
        if not found.isdigit():
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        self._status = int(found)
        self._headers = [(name, value) for name, value in fields if name[:1] != b":"]

    async def _flush(self) -> None:
        """Sends the pending bytes.

        A broken write of a request with a body is ignored: the server may have responded already.
        """
        wire = self._h2.data_to_send()
        if not wire:
            return
        try:
            await self._stream.send_all(wire)
        except trio.BrokenResourceError:
            if not self._request.body:
                raise


def demand_settings(first: bytes) -> None:
    """Raises `TargetFailure` unless the first frame is SETTINGS (RFC 9113, 3.4).

    `first` is the bytes received so far. Without this check, h2 would read the first bytes of
    another protocol as a length and wait for that many bytes.
    """
    if len(first) >= FRAME_HEAD and (first[3] != 4 or int.from_bytes(first[:3]) > 16_384):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)


def _fields(request: HttpRequest, user_agent: str) -> list[tuple[bytes, bytes]]:
    headers = [(n.lower(), v) for n, v in request_headers(request, user_agent)]
    hosts = [value for name, value in headers if name == "host"]
    fields = [
        (":method", request.method),
        (":scheme", request.url.scheme),
        (":authority", hosts[0] if hosts else request.url.authority),
        (":path", request.url.path),
        *((name, value) for name, value in headers if name != "host"),
    ]
    return [(name.encode("ascii"), value.encode("utf-8")) for name, value in fields]
