"""Bounded reads from a stream: lines and counted bytes, with a failure class for each end.

`bytes_most` limits the bytes accepted from the peer over the whole conversation. Read-ahead stays
within this limit.
"""

import ssl
from typing import Union

import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass

Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]
_CHUNK = 16 * 1024


class Reader:
    """Bounded reader of one conversation on a stream. The caller closes the stream.

    Raises: `TargetFailure`, with `connect_error` if the connection broke, `protocol_error` if the
    peer ended it too early, and `response_too_large` at the bound. The first byte ends the current
    phase of `watch`. `greedy` also reads bytes beyond the requested ones. This needs fewer system
    calls, but is not usable for a stream that is handed on in the middle.
    """

    def __init__(
        self, stream: Stream, watch: Stopwatch, bytes_most: int, *, greedy: bool = False
    ) -> None:
        self._stream = stream
        self._watch = watch
        self._left = bytes_most
        self._held = b""
        self._greedy = greedy

    @property
    def ahead(self) -> bool:
        """Returns whether bytes have been received that were not yet consumed."""
        return bool(self._held)

    async def send(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            raise TargetFailure(FailureClass.CONNECT_ERROR) from error

    async def exactly(self, length: int) -> bytes:
        if length > self._left + len(self._held):
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
        pieces = [self._held]
        wanted = length - len(self._held)
        while wanted > 0:
            piece = await self._more(_CHUNK if self._greedy else min(wanted, _CHUNK))
            pieces.append(piece)
            wanted -= len(piece)
        data = b"".join(pieces)
        self._held = data[length:]
        return data[:length]

    async def line(self) -> bytes:
        """Returns the next line without its line feed and a preceding carriage return."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            self._held += await self._more(_CHUNK)
        line, self._held = self._held[:end], self._held[end + 1 :]
        return line.removesuffix(b"\r")

    async def _more(self, most: int) -> bytes:
        if self._left <= 0:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
        try:
            piece = bytes(await self._stream.receive_some(min(most, self._left)))
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            raise TargetFailure(FailureClass.CONNECT_ERROR) from error
        self._watch.done()
        if not piece:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        self._left -= len(piece)
        return piece
