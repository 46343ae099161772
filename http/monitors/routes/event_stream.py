"""Event stream of the caller's status changes (Server-Sent Events, WHATWG HTML 9.2).

A stream sends only events that the caller can see. Each ping checks the credential and the sight of
the caller again: the first ping after the end of the credential ends the stream. A slow reader is
disconnected, and no event is skipped. A shutdown ends all streams first.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta
from quart import Response

from ....storage.accounts.rules.access import Need, Permission, Principal, Sight, sight
from ....storage.core.instant import to_text
from ....storage.core.refusal import Unavailable
from ....storage.results.event_bus import BusEvent, BusListener, EditEvent, TooManyListeners
from ...wire.authenticate import authenticate
from ...wire.errors import Problem
from ...wire.route import Request, Route

PING_SECONDS: Final = 25.0
_PING: Final = b"event: ping\ndata: {}\n\n"
# A buffering proxy would delay the events.
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventsQuery(msgspec.Struct, frozen=True):
    """`every=result` also sends results that change no status, `edits=1` writes of a project."""

    every: Annotated[str, Meta(pattern="^(change|result)$")] = "change"
    edits: Annotated[str, Meta(pattern="^[01]$")] = "0"


class StatusData(msgspec.Struct, frozen=True):
    type: str
    monitor_id: str
    project_id: str
    status: str
    latency_ms: int
    ts: str
    up: bool | msgspec.UnsetType = msgspec.UNSET


class EditData(msgspec.Struct, frozen=True):
    """States only that something of a visible project was written."""

    project_id: str


async def events(ask: Request) -> Response:
    if ask.method == "HEAD":
        return Response(b"", content_type="text/event-stream")
    try:
        listener = ask.context.bus.listen()
    except TooManyListeners as error:
        raise Problem("rate_limited", headers={"Retry-After": "5"}) from error
    response = Response(_stream(ask, listener), content_type="text/event-stream")
    response.timeout = None
    response.headers.update(_HEADERS)
    return response


async def _stream(ask: Request, listener: BusListener) -> AsyncIterator[bytes]:
    # Not a context manager: garbage collection can close this generator, so cleanup must not await.
    try:
        yield b": connected\n\n"
        async for chunk in _events(ask, listener):
            yield chunk
    finally:
        ask.context.bus.hang_up(listener)


async def _events(ask: Request, listener: BusListener) -> AsyncIterator[bytes]:
    seen = sight(ask.who)
    ping_at = trio.current_time() + PING_SECONDS
    while not ask.context.stopping.is_set():
        event: BusEvent | None = None
        with trio.move_on_at(ping_at) as waiting:
            event = await listener.next()
            if event is None:
                return
        if waiting.cancelled_caught:
            principal = await _still(ask)
            if principal is None:
                return
            seen = sight(principal)
            ping_at = trio.current_time() + PING_SECONDS
            yield _PING
        elif event is not None and _is_wanted(event, seen, ask.query):
            yield _encode(event, full=ask.query.every == "result")


async def _still(ask: Request) -> Principal | None:
    """Returns the current principal, None if the credential has ended."""
    try:
        found = await authenticate(ask.context, ask.headers)
    except (Unavailable, Problem):
        # A local failure does not end the stream. The next ping checks again.
        return ask.principal
    return found.principal if found else None


def _is_wanted(event: BusEvent, seen: Sight, query: EventsQuery) -> bool:
    if isinstance(event, EditEvent):
        if query.edits != "1":
            return False
    elif not event.changed and query.every != "result":
        return False
    return seen.everything or event.org in seen.organizations or event.project in seen.projects


def _encode(event: BusEvent, *, full: bool) -> bytes:
    if isinstance(event, EditEvent):
        edit = EditData(str(event.project_uid))
        return b"event: edit\ndata: " + msgspec.json.encode(edit) + b"\n\n"
    data = StatusData(
        type="status",
        monitor_id=str(event.monitor_uid),
        project_id=str(event.project_uid),
        status=event.status.value,
        latency_ms=event.latency_ms,
        ts=to_text(event.ts),
        up=event.up if full else msgspec.UNSET,
    )
    return b"event: status\ndata: " + msgspec.json.encode(data) + b"\n\n"


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/events",
        action=Permission(Need.ANYONE),
        handler=events,
        summary="Status changes as Server-Sent Events.",
        tag="stream",
        query=EventsQuery,
        answer=str,
        content_type="text/event-stream",
    ),
)
