"""HTTP/1.1 of Hypercorn that accepts a request line with bytes outside ASCII.

h11 refuses such a line with 400 before any route is known. `curl "$URL?msg=café"` sends one, and
the heartbeat of a push would be lost by it. The bytes are percent-encoded, as the client should
have sent them.
"""

import re
from typing import Final

import h11
from hypercorn.events import Event, RawData
from hypercorn.protocol.h11 import H11Protocol

_OUTSIDE_ASCII: Final = re.compile(rb"[\x80-\xff]")


class LenientH11Protocol(H11Protocol):
    """HTTP/1.1 protocol with a lenient request line.

    Does not encode a request that is pipelined behind another one in the same read.
    """

    async def handle(self, event: Event) -> None:
        if isinstance(event, RawData) and not event.data.isascii() and self._is_in_request_line():
            event = RawData(data=encode_first_line(event.data))
        await super().handle(event)

    def _is_in_request_line(self) -> bool:
        received = self.connection.trailing_data[0]
        if self.connection.their_state is h11.DONE:
            # The answer is sent, and the connection is not yet recycled for the next request.
            return not received
        return self.connection.their_state is h11.IDLE and b"\n" not in received.lstrip(b"\r\n")


def encode_first_line(data: bytes) -> bytes:
    """Percent-encodes the bytes outside ASCII before the first line end."""
    request = data.lstrip(b"\r\n")
    line, end, rest = request.partition(b"\n")
    return _OUTSIDE_ASCII.sub(lambda found: b"%%%02X" % found[0][0], line) + end + rest
