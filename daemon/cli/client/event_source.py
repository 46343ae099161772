"""The event stream of a server: one connection, as events with their data.

Invariant: a stream that sends nothing for SILENCE_SECONDS counts as broken, because the server
pings every 25 s. The stream has no replay, so the events between two connections are lost.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import trio

from ....probes.check.failure import LocalFailure, TargetFailure
from ....probes.check.phase_timer import Stopwatch
from ....probes.kinds.canary.sse import EventReader, EventTooLarge
from ....probes.net.http_exchange import HttpRequest
from ....probes.net.http_stream import Incoming, listen
from ..api_client import ANSWER_BYTES_MOST, ApiResponse, NoResponse, read_json
from .session import Api, ApiRefused, refusal_text

SILENCE_SECONDS: Final = 60.0
_REFUSAL_PIECES_MOST: Final = 64


class StreamBroken(Exception):
    """The stream ended or broke off. The message is the reason."""


@dataclass(slots=True)
class EventSource:
    """An open stream. `next` returns the data of each status event.

    `heard_at` is the instant of the last event or ping: an event after it can be lost.
    """

    _incoming: Incoming
    heard_at: datetime
    _reader: EventReader = field(default_factory=EventReader)
    _ready: list[dict[str, Any]] = field(default_factory=list)

    async def next(self) -> dict[str, Any]:
        """Returns the next status event. Raises StreamBroken."""
        while not self._ready:
            piece = await self._piece()
            try:
                events = self._reader.feed(piece)
            except EventTooLarge:
                raise StreamBroken("an event is too large") from None
            for event in events:
                data = read_json(event.data.encode(), dict[str, Any])
                if event.type == "status" and data is not None:
                    self._ready.append(data)
        return self._ready.pop(0)

    async def _piece(self) -> bytes:
        try:
            with trio.fail_after(SILENCE_SECONDS):
                piece = await self._incoming.receive()
        except trio.TooSlowError:
            raise StreamBroken(f"no ping within {SILENCE_SECONDS:g} s") from None
        except (TargetFailure, LocalFailure) as error:
            raise StreamBroken("the connection broke off") from error
        if not piece:
            raise StreamBroken("the server ended the stream")
        self.heard_at = datetime.now(UTC)
        return piece


@asynccontextmanager
async def open_events(api: Api, path: str, seconds: float) -> AsyncIterator[EventSource]:
    """Connects within `seconds`. Raises ApiRefused, NoResponse."""
    request = HttpRequest(
        method="GET",
        url=api.client.server.url_of(path),
        headers=[
            ("authorization", f"Bearer {api.client.server.token}"),
            ("accept", "text/event-stream"),
            ("accept-encoding", "identity"),
        ],
        redirects=0,
    )
    doing = "follow events"
    try:
        with trio.fail_after(seconds):
            incoming = await listen(api.client.reach, request, Stopwatch())
    except trio.TooSlowError:
        raise NoResponse(f"cannot {doing}: timed out after {seconds:g} s") from None
    except (TargetFailure, LocalFailure) as error:
        raise NoResponse(f"cannot {doing}: {api.client.no_response(error)}") from error
    try:
        if incoming.status != 200:
            answer = await _refusal(incoming)
            text = refusal_text(answer, api.account)
            raise ApiRefused(f"cannot {doing}: {text}", answer.status)
        if not incoming.headers.get("content-type", "").startswith("text/event-stream"):
            raise ApiRefused(f"cannot {doing}: the answer is not an event stream", 200)
        yield EventSource(incoming, datetime.now(UTC))
    finally:
        incoming.close()


async def _refusal(incoming: Incoming) -> ApiResponse:
    body = b""
    try:
        with trio.move_on_after(SILENCE_SECONDS):
            for _ in range(_REFUSAL_PIECES_MOST):
                piece = await incoming.receive()
                if not piece or len(body) > ANSWER_BYTES_MOST:
                    break
                body += piece
    except (TargetFailure, LocalFailure):
        body = b""
    location = incoming.headers.get("location", "")
    return ApiResponse(incoming.status, body, location, incoming.headers.get("retry-after", ""))
