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

from .request_body import BODY_LARGEST, ArrivingBodies, RequestBody
from .request_time import ANSWER_SECONDS, AnswerTime

log = logging.getLogger("leadline.access")

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Only a client that does not read can cut short the end of an answer, after this time.
FINISH_SECONDS: Final = 30.0

_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
_TOO_MANY: Final = b'{"error":"rate_limited"}'
_NOT_THERE: Final = b'{"error":"not_found"}'
_TOO_SLOW: Final = b'{"error":"body_too_slow"}'
_NO_ANSWER: Final = b'{"error":"timeout"}'
_JSON: Final = (b"content-type", b"application/json")
# Share of the concurrent requests that is reserved for health, metrics, pushes and callers that
# send a credential. It is not known yet whether the credential is valid: a client that sends an
# invalid one is bounded only by the limit of its address.
RESERVED_SHARE: Final = 0.1


class RequestMiddleware:
    """ASGI middleware of all requests.

    `requests` limits the requests that the application handles concurrently, and `large` those
    of them with a larger body than BODY_LARGEST. `on_turned_away` receives the path of each request
    above a limit. `largest` returns the largest body of a path, `slowest` the seconds until its
    answer begins, `client_of` the address of the client, `is_urgent` whether a request may use the
    reserved share.
    """

    def __init__(
        self,
        app: App,
        requests: trio.CapacityLimiter,
        *,
        on_turned_away: Callable[[str], None] = lambda _: None,
        largest: Callable[[str], int] = lambda _: BODY_LARGEST,
        slowest: Callable[[str], float] = lambda _: ANSWER_SECONDS,
        large: trio.CapacityLimiter | None = None,
        client_of: Callable[[Scope], str] = lambda _: "",
        is_urgent: Callable[[Scope], bool] = lambda _: True,
    ) -> None:
        self._app = app
        self._requests = requests
        self._large = large
        self._largest = largest
        self._slowest = slowest
        self._on_turned_away = on_turned_away
        self._client_of = client_of
        self._is_urgent = is_urgent
        self._arriving = ArrivingBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _refuse_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = RequestBody(scope, receive, self._largest(scope["path"]))
        limiters = [self._requests]
        if body.is_large and self._large is not None:
            limiters.append(self._large)
        permit = object()
        if not self._admits(scope, body) or not _acquired(limiters, permit):
            body.let_go()
            self._on_turned_away(scope["path"])
            await _answer_unread(body, send, 429, _TOO_MANY, (b"retry-after", b"1"))
            return
        began, status = time.monotonic(), 0
        handling = trio.CancelScope()
        allowed = AnswerTime(handling, body, self._slowest(scope["path"]))

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                allowed.answered()
                status = message["status"]
                headers = _with_ours(message.get("headers", ()))
                if not await body.came():
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await (send if message.get("more_body") else _finishing(send))(message)

        try:
            with handling:
                await self._app(scope, body.next_message, note)
            if handling.cancelled_caught and not status:
                status = 503
                _log_unanswered(scope)
                await _answer_unread(body, send, status, _NO_ANSWER)
            elif body.is_slow and not status:
                status = 408
                await _answer(send, status, _TOO_SLOW)
        finally:
            body.let_go()
            _release(limiters, permit)
            _log(scope, status, time.monotonic() - began)

    def _admits(self, scope: Scope, body: RequestBody) -> bool:
        """Returns whether the request may begin. Counts its body from now until it has arrived."""
        is_urgent = self._is_urgent(scope)
        reserved = self._requests.total_tokens * RESERVED_SHARE
        if self._requests.available_tokens <= reserved and not is_urgent:
            return False
        if body.has_ended:
            return True
        client = self._client_of(scope)
        if not self._arriving.took(client, is_urgent=is_urgent):
            return False
        body.when_ended(lambda: self._arriving.give_back(client))
        return True


def _acquired(limiters: list[trio.CapacityLimiter], permit: object) -> bool:
    """Takes a permit of each limiter, or of none."""
    for at, limiter in enumerate(limiters):
        try:
            limiter.acquire_on_behalf_of_nowait(permit)
        except trio.WouldBlock:
            _release(limiters[:at], permit)
            return False
    return True


def _release(limiters: list[trio.CapacityLimiter], permit: object) -> None:
    for limiter in limiters:
        limiter.release_on_behalf_of(permit)


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return given + [header for header in _HEADERS if header[0] not in names]


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


async def _answer_unread(
    body: RequestBody, send: Send, status: int, text: bytes, *more: tuple[bytes, bytes]
) -> None:
    """Sends a whole answer without waiting for the body.

    Discards the part of the body that arrives in the same time, since the server cannot end a
    stream that is not read.
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(body.pass_over)
        await _answer(send, status, text, *more)
        nursery.cancel_scope.cancel()


async def _answer(send: Send, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    """Sends a whole answer and closes the connection."""
    length = (b"content-length", str(len(body)).encode())
    headers = [_JSON, length, (b"connection", b"close"), *_HEADERS, *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await _finishing(send)({"type": "http.response.body", "body": body})


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses a WebSocket. No route accepts one, and the application would log an error."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [_JSON, *_HEADERS]
    start = "websocket.http.response.start"
    await send({"type": start, "status": 404, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": _NOT_THERE})


def _log_unanswered(scope: Scope) -> None:
    route = scope.get("leadline.route", "-")
    log.error(
        "a request was ended without an answer", extra={"method": scope["method"], "route": route}
    )


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
