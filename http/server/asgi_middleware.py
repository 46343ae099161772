"""ASGI middleware in front of the application: request limits and the access log.

It compensates for gaps of Hypercorn and Quart. Requests above the concurrency limit get 429. A body
is counted as it arrives, whatever its framing. A client that is refused before its body arrived can
reuse the connection, or gets `Connection: close`.

The log contains the template of the route and never a path or query, since these contain tokens.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

log = logging.getLogger("leadline.access")

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_LARGEST: Final = 2 << 20
# Longest time that an answer without need for the body waits for the rest of the body.
LINGER_SECONDS: Final = 2.0
# Only a client that does not read can cut short the end of an answer, after this time.
FINISH_SECONDS: Final = 30.0

_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
_TOO_MANY: Final = b'{"error":"rate_limited"}'
_NOT_THERE: Final = b'{"error":"not_found"}'


class RequestMiddleware:
    """ASGI middleware of all requests.

    `requests` limits the requests that the application handles concurrently. `on_turned_away`
    receives the path of each request above the limit.
    """

    def __init__(
        self,
        app: App,
        requests: trio.CapacityLimiter,
        *,
        on_turned_away: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._app = app
        self._requests = requests
        self._on_turned_away = on_turned_away

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _refuse_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive)
        permit = object()
        try:
            self._requests.acquire_on_behalf_of_nowait(permit)
        except trio.WouldBlock:
            self._on_turned_away(scope["path"])
            await _turn_away(body, send)
            return
        began, status = time.monotonic(), 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = _with_ours(message.get("headers", ()))
                if not await body.came():
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await (send if message.get("more_body") else _finishing(send))(message)

        try:
            await self._app(scope, body.next_message, note)
        finally:
            self._requests.release_on_behalf_of(permit)
            _log(scope, status, time.monotonic() - began)


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return given + [header for header in _HEADERS if header[0] not in names]


class _Body:
    """Body of one request, as it arrives."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0
        self._ended = trio.Event()
        announced = _announced(scope)
        self._is_too_long = announced is not None and announced > BODY_LARGEST
        if announced == 0:
            self._ended.set()

    async def next_message(self) -> Message:
        """Passes on the body up to the bound and drops the rest.

        By then the application has received more than any route accepts. A disconnect here would
        cancel the handler, and its client would get no answer.
        """
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._ended.set()
                return message
            self._seen += len(message.get("body", b""))
            self._is_too_long = self._is_too_long or self._seen > BODY_LARGEST
            if not message.get("more_body"):
                self._ended.set()
            if self._seen <= BODY_LARGEST:
                return message
            if self._ended.is_set():
                return {**message, "body": b""}

    async def came(self) -> bool:
        """Returns whether the body arrived completely, or the client disconnected.

        Discards the unread rest: a connection whose request is not read to its end cannot be
        reused.
        """
        if self._ended.is_set() or self._is_too_long:
            return self._ended.is_set()
        with trio.move_on_after(LINGER_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pass_over)
                await self._ended.wait()
                nursery.cancel_scope.cancel()
        return self._ended.is_set()

    async def pass_over(self) -> None:
        # The application can read concurrently; the reader that receives the end sets the event.
        while not self._ended.is_set() and not self._is_too_long:
            await self.next_message()


def _announced(scope: Scope) -> int | None:
    """Returns the length of the body; None with Transfer-Encoding."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _finishing(send: Send) -> Send:
    """Shields the end of an answer from cancellation.

    While the server ends the stream, it reports the stream as closed to the application, in the
    application's own task. A cancellation at that point would leave a connection that is never
    closed.
    """

    async def finish(message: Message) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + FINISH_SECONDS):
            await send(message)

    return finish


async def _turn_away(body: _Body, send: Send) -> None:
    """Sends 429 without waiting for the body.

    Discards the part of the body that arrives in the same time, since the server cannot end a
    stream that is not read.
    """
    headers = [
        (b"content-type", b"application/json"),
        (b"retry-after", b"1"),
        (b"content-length", str(len(_TOO_MANY)).encode()),
        (b"connection", b"close"),
    ]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(body.pass_over)
        await send({"type": "http.response.start", "status": 429, "headers": headers})
        await _finishing(send)({"type": "http.response.body", "body": _TOO_MANY})
        nursery.cancel_scope.cancel()


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses a WebSocket. No route accepts one, and the application would log an error."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", b"application/json"), *_HEADERS]
    start = "websocket.http.response.start"
    await send({"type": start, "status": 404, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": _NOT_THERE})


def _log(scope: Scope, status: int, seconds: float) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    log.info(
        "request",
        extra={
            "method": scope["method"],
            "route": scope.get("leadline.route", "-"),
            "status": status or "gone",
            "ms": round(seconds * 1000, 1),
        },
    )
