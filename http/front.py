"""The layer in front of the application: bounds on what comes in, one log line a request.

It mends what Hypercorn and Quart leave open: more requests at once than we can hold are told so,
a body is counted while it comes, whatever its framing. The log holds the route's template and never
a path or a query, since tokens stand there.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

log = logging.getLogger("leadline.access")

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUESTS_MOST: Final = 6_000
BODY_LARGEST: Final = 2 << 20

_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
_TOO_MANY: Final = b'{"error":"not_ready"}'
_NOT_THERE: Final = b'{"error":"not_found"}'


class Front:
    def __init__(self, app: App) -> None:
        self._app = app
        self.active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _refuse_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self.active >= REQUESTS_MOST:
            await _turn_away(send)
            return
        self.active += 1
        began, status = time.monotonic(), 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _with_ours(message.get("headers", ()))}
            await send(message)

        try:
            await self._app(scope, _counted(receive), note)
        finally:
            self.active -= 1
            _log(scope, status, time.monotonic() - began)


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return given + [header for header in _HEADERS if header[0] not in names]


def _counted(receive: Receive) -> Receive:
    """Passes a body on up to the bound; a longer one looks like a client that went away, after the
    application has been told enough to refuse it."""
    seen = 0

    async def next_message() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > BODY_LARGEST:
                return {"type": "http.disconnect"}
        return message

    return next_message


async def _turn_away(send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"retry-after", b"1"),
        (b"content-length", str(len(_TOO_MANY)).encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _TOO_MANY})


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """No route of ours is one: the application would call its own surprise an error."""
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
