"""A TCP connection of the server, with bounds that Hypercorn lacks.

A client that reads its answer too slowly, or begins no request, loses its connection, and one
address has at most CONNECTIONS_MOST connections. A trusted proxy is bounded by itself: behind its
address are all clients.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.tcp_server import TCPServer

# Office networks and providers have many clients behind one address, each with a page that waits
# for events. An idle connection takes 20 to 60 KiB.
CONNECTIONS_MOST: Final = 2_000
# From the connection to the first byte of a request, as the head of a request has.
FIRST_REQUEST_SECONDS: Final = 20.0
# A piece that the kernel does not take in this time ends the connection: below 820 bytes per
# second. The kernel buffers the first hundreds of kilobytes of an answer at once.
PIECE_BYTES: Final = 16 << 10
PIECE_SECONDS: Final = 20.0


class ClientConnections:
    """Numbers of open connections by address of the peer. `counted_by` returns the address under
    which a peer is counted, empty if it is not."""

    def __init__(self, counted_by: Callable[[str], str] = lambda peer: peer) -> None:
        self._counted_by = counted_by
        self._open: Counter[str] = Counter()

    def opened(self, peer: str) -> str | None:
        """Counts a connection and returns its address, or None if it has too many."""
        address = self._counted_by(peer)
        if address and self._open[address] >= CONNECTIONS_MOST:
            return None
        self._open[address] += 1
        return address

    def closed(self, address: str) -> None:
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


class BoundedConnection(TCPServer):
    """The connection of one client. The configuration has the `connections` of the server."""

    has_begun = False

    async def run(self) -> None:
        connections: ClientConnections = self.config.connections  # type: ignore[attr-defined]
        address = connections.opened(_peer(self.stream))
        if address is None:
            await trio.aclose_forcefully(self.stream)
            return
        try:
            await super().run()
        finally:
            connections.closed(address)

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, RawData):
            await self._send(event.data)
            return
        if isinstance(event, Updated) and not event.idle:
            self.has_begun = True
        await super().protocol_send(event)

    async def _send(self, data: bytes) -> None:
        """Sends in pieces, each within PIECE_SECONDS. Otherwise closes the connection."""
        async with self.send_lock:
            try:
                for at in range(0, len(data), PIECE_BYTES):
                    deadline = trio.current_time() + PIECE_SECONDS
                    # A cancelled handler does not cut an answer short.
                    with trio.CancelScope(shield=True, deadline=deadline) as sending:
                        await self.stream.send_all(data[at : at + PIECE_BYTES])
                    if sending.cancelled_caught:
                        await trio.aclose_forcefully(self.stream)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                await self.protocol.handle(Closed())

    async def _idle_timeout(self) -> None:
        if not self.has_begun:
            with trio.move_on_after(FIRST_REQUEST_SECONDS):
                await self.context.terminated.wait()
            with trio.CancelScope(shield=True):
                await self._initiate_server_close()
            return
        await super()._idle_timeout()


def _peer(stream: Any) -> str:
    """Returns the address of the peer, empty if it has disconnected."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return ""
