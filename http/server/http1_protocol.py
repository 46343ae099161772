"""HTTP/1.1 of Hypercorn, and no other protocol, with a lenient request line.

A proxy in front of Leadline reads HTTP/1.1. Of a connection that changes to HTTP/2, or of a body
whose length two headers state, it sees other requests than the server does. A client could so
bypass its rules and forge X-Forwarded-For. Hypercorn itself offers HTTP/2 on every connection.

h11 refuses a request line with bytes outside ASCII with 400 before any route is known.
`curl "$URL?msg=café"` sends one, and the heartbeat of a push would be lost by it. The bytes are
percent-encoded, as the client should have sent them.

Hypercorn bounds the time between two requests, and not that of a head: a client that sends a byte
now and then would hold its connection.
"""

import re
from typing import Any, Final

import h11
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.worker_context import TrioSingleTask

from .request_time import HEAD_SECONDS

_OUTSIDE_ASCII: Final = re.compile(rb"[\x80-\xff]")
_BAD_REQUEST: Final = 400
_REQUEST_TIMEOUT: Final = 408
_TOO_SLOW: Final = b'{"error":"head_too_slow"}'
_VERSION_NOT_SUPPORTED: Final = 505


class _RefusedRequest(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Http1Protocol(H11Protocol):
    """HTTP/1.0 and HTTP/1.1. A refused request closes the connection.

    Does not encode the line of a request that is pipelined behind another one in the same read.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = TrioSingleTask()
        self._is_head_open = False
        self._is_closed = False

    async def handle(self, event: Event) -> None:
        if isinstance(event, Closed):
            # Their tasks would keep the socket of a client that has disconnected.
            self._is_closed = True
            await self._head_ended()
            await self.send(Updated(idle=False))
        if isinstance(event, RawData) and not event.data.isascii() and self._is_in_request_line():
            event = RawData(data=encode_first_line(event.data))
        try:
            await super().handle(event)
        except _RefusedRequest as refused:
            await self._send_error_response(refused.status)
            await self.send(Closed())

    async def _check_protocol(self, event: h11.Request) -> None:
        """Replaces the change to HTTP/2. An upgrade to h2c is ignored (RFC 9110, 7.8)."""
        await self._head_ended()
        status = refusal(event)
        if status is not None:
            raise _RefusedRequest(status)

    async def _handle_events(self) -> None:
        await super()._handle_events()
        if self._is_head_open or self._is_closed or self.connection.their_state is not h11.IDLE:
            return
        if self.connection.trailing_data[0]:
            self._is_head_open = True
            await self._head.restart(self.task_group, self._end_slow_head)

    async def _maybe_recycle(self) -> None:
        if not self._is_closed:
            await super()._maybe_recycle()
            return
        await self._close_stream()
        await self.can_read.set()

    async def _head_ended(self) -> None:
        if self._is_head_open:
            self._is_head_open = False
            await self._head.stop()

    async def _end_slow_head(self) -> None:
        await trio.sleep(HEAD_SECONDS)
        # The end of the connection stops this task.
        with trio.CancelScope(shield=True):
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(_TOO_SLOW)).encode()),
                (b"connection", b"close"),
            ]
            await self._send_h11_event(h11.Response(status_code=_REQUEST_TIMEOUT, headers=headers))
            await self._send_h11_event(h11.Data(data=_TOO_SLOW))
            await self._send_h11_event(h11.EndOfMessage())
            await self.send(Closed())

    def _is_in_request_line(self) -> bool:
        received = self.connection.trailing_data[0]
        if self.connection.their_state is h11.DONE:
            # The answer is sent, and the connection is not yet recycled for the next request.
            return not received
        return self.connection.their_state is h11.IDLE and b"\n" not in received.lstrip(b"\r\n")


def refusal(request: h11.Request) -> int | None:
    """Returns the status of the refusal, None if the request is accepted.

    505 for another version; 400 for a body with two lengths (RFC 9112, 6.3), and for a transfer
    encoding in HTTP/1.0, which has none.
    """
    if request.http_version not in (b"1.0", b"1.1"):
        return _VERSION_NOT_SUPPORTED
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" in names and (
        b"content-length" in names or request.http_version == b"1.0"
    ):
        return _BAD_REQUEST
    return None


def encode_first_line(data: bytes) -> bytes:
    """Percent-encodes the bytes outside ASCII before the first line end."""
    request = data.lstrip(b"\r\n")
    line, end, rest = request.partition(b"\n")
    return _OUTSIDE_ASCII.sub(lambda found: b"%%%02X" % found[0][0], line) + end + rest
