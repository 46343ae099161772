"""HTTP/1.1 of Hypercorn, and no other protocol, with a lenient request line.

A proxy in front of Leadline reads HTTP/1.1. Of a connection that changes to HTTP/2, or of a body
whose length two headers state, it sees other requests than the server does. A client could so
bypass its rules and forge X-Forwarded-For. Hypercorn itself offers HTTP/2 on every connection.

h11 refuses a request line with bytes outside ASCII with 400 before any route is known.
`curl "$URL?msg=café"` sends one, and the heartbeat of a push would be lost by it. The bytes are
percent-encoded, as the client should have sent them.
"""

import re
from typing import Final

import h11
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.h11 import H11Protocol

_OUTSIDE_ASCII: Final = re.compile(rb"[\x80-\xff]")
_BAD_REQUEST: Final = 400
_VERSION_NOT_SUPPORTED: Final = 505


class _RefusedRequest(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Http1Protocol(H11Protocol):
    """HTTP/1.0 and HTTP/1.1. A refused request closes the connection.

    Does not encode the line of a request that is pipelined behind another one in the same read.
    """

    async def handle(self, event: Event) -> None:
        if isinstance(event, RawData) and not event.data.isascii() and self._is_in_request_line():
            event = RawData(data=encode_first_line(event.data))
        try:
            await super().handle(event)
        except _RefusedRequest as refused:
            await self._send_error_response(refused.status)
            await self.send(Closed())

    async def _check_protocol(self, event: h11.Request) -> None:
        """Replaces the change to HTTP/2. An upgrade to h2c is ignored (RFC 9110, 7.8)."""
        status = refusal(event)
        if status is not None:
            raise _RefusedRequest(status)

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
