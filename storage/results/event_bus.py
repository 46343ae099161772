"""Fan-out of stored results, and of writes in a project, to the listeners of this process.

A slow listener never slows the recorder. Its queue is bounded; when it is full, the listener is
closed and marked as cut, so that a gap is always visible.
"""

from collections.abc import Callable
from uuid import UUID

import msgspec
import trio

from ..accounts.rules.access import Key
from ..core.instant import Instant
from ..monitors.rules.monitor_state import MonitorStatus
from .rules.incoming_result import IncomingResult, StoreOutcome, StoreResult

QUEUE_MOST = 1_000
LISTENERS_MOST = 5_000


class StatusEvent(msgspec.Struct, frozen=True):
    """Stored live result. `changed` states that it changed the monitor's status."""

    monitor_uid: UUID
    project_uid: UUID
    org: int
    project: int
    status: MonitorStatus
    up: bool
    latency_ms: int
    ts: Instant
    changed: bool


class EditEvent(msgspec.Struct, frozen=True):
    """Write of a person or token in a project, by a request to any process."""

    org: Key
    project: Key
    project_uid: UUID


BusEvent = StatusEvent | EditEvent


def status_event(
    arrival: IncomingResult, recorded: StoreResult, *, changed: bool
) -> StatusEvent | None:
    """Returns the event of a stored result; None if the result is not live."""
    standing = recorded.standing
    if recorded.fate is not StoreOutcome.LIVE or standing is None:
        return None
    return StatusEvent(
        monitor_uid=standing.monitor_uid,
        project_uid=standing.project_uid,
        org=arrival.org,
        project=standing.project,
        status=standing.status,
        up=arrival.up,
        latency_ms=arrival.latency_ms,
        ts=recorded.ts,
        changed=changed,
    )


class TooManyListeners(Exception):
    """The limit of listeners is reached."""


class BusListener:
    """Queue of one listener. It ends after its last event if it is cut or the bus is closed."""

    def __init__(self, receive: trio.MemoryReceiveChannel[BusEvent]) -> None:
        self._receive = receive
        self.cut = False

    async def next(self) -> BusEvent | None:
        """Returns the next event, None at the end."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    def close(self) -> None:
        self._receive.close()


class Bus:
    """Event bus. `on_change` is called at each status change, even without listeners."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._listeners: dict[BusListener, trio.MemorySendChannel[BusEvent]] = {}

    def __len__(self) -> int:
        return len(self._listeners)

    def publish(self, event: BusEvent) -> None:
        """Sends an event to all listeners without waiting. Closes listeners with a full queue."""
        if isinstance(event, StatusEvent) and event.changed:
            self.on_change()
        full = []
        for listener, send in self._listeners.items():
            try:
                send.send_nowait(event)
            except trio.WouldBlock:
                full.append(listener)
        for listener in full:
            listener.cut = True
            self._close(listener)

    def close(self) -> None:
        """Ends every stream, so that shutdown does not wait for them."""
        for listener in list(self._listeners):
            self._close(listener)

    def listen(self) -> BusListener:
        """Returns a new listener. The caller must pass it to `hang_up`.

        Raises:
            TooManyListeners.
        """
        if len(self._listeners) >= LISTENERS_MOST:
            raise TooManyListeners
        send, receive = trio.open_memory_channel[BusEvent](QUEUE_MOST)
        listener = BusListener(receive)
        self._listeners[listener] = send
        return listener

    def hang_up(self, listener: BusListener) -> None:
        self._close(listener)
        listener.close()

    def _close(self, listener: BusListener) -> None:
        send = self._listeners.pop(listener, None)
        if send is not None:
            send.close()
