"""Answers the requests that come most often without the web framework.

A push, a public page, a badge, a health check, the monitors that scripts read and the requests of
agents need no form: the same pipeline and handlers answer them from the ASGI request. Quart spends
as much CPU on a push as the handler (docs/adr/0056). All other requests, also those that do not fit
a route exactly, go to Quart.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import quart
import trio

from ...storage.accounts.rules.access import Need
from ..wire.app_context import AppContext
from ..wire.finished_response import FinishedResponse
from ..wire.route import Route
from .arrived_request import AsgiRequest, Message, Receive, Scope
from .request_pipeline import answer, is_served

Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# A parameter of a path does not contain a slash, as in Quart.
_PARAMETER: Final = re.compile(r"\\{(\w+)\\}")


class _ShortRoute(NamedTuple):
    route: Route
    form: re.Pattern[str]
    rivals: tuple[re.Pattern[str], ...]


class ShortPath:
    """ASGI application in front of `app` for the routes that are marked `short`."""

    def __init__(self, app: App, context: AppContext, routes: Iterable[Route]) -> None:
        self._app = app
        self._context = context
        every = [route for route in routes if is_served(route, context)]
        by_length: dict[int, list[list[str]]] = {}
        for path in dict.fromkeys(route.path for route in every):
            by_length.setdefault(path.count("/"), []).append(path.split("/"))
        self._by_method: dict[str, list[_ShortRoute]] = {
            method: [
                _ShortRoute(route, _pattern(route.path), _rivals(route, by_length))
                for route in every
                if route.short and method in _methods(route)
            ]
            for method in ("GET", "HEAD", "POST")
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        route, parameters = found
        scope["leadline.route"] = route.path
        request = AsgiRequest(scope, receive)
        with request.handling:
            if route.action.need is Need.AGENT:
                reply = await self._answer_while_connected(route, request, receive, parameters)
            else:
                reply = await answer(route, self._context, request, parameters)
            assert isinstance(reply, FinishedResponse), "a short route answers with bytes"
            await _send(send, reply)

    async def _answer_while_connected(
        self, route: Route, request: AsgiRequest, receive: Receive, parameters: dict[str, str]
    ) -> FinishedResponse | quart.Response:
        """Cancels the handler if the client disconnects: nobody would run the jobs of a claim."""

        async def watch() -> None:
            # Such a route reads its body, also an empty one.
            if route.body is not None:
                await request.received.wait()
            while (await receive())["type"] == "http.request":
                pass
            request.handling.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            reply = await answer(route, self._context, request, parameters)
            nursery.cancel_scope.cancel()
        return reply

    def _find(self, scope: Scope) -> tuple[Route, dict[str, str]] | None:
        path = scope["path"]
        for route, form, rivals in self._by_method.get(scope["method"], ()):
            matched = form.fullmatch(path)
            if matched is not None:
                # The framework reads a body that no handler wants.
                takes_body = route.body_ignored or route.body is not None
                is_other = not takes_body and _has_body(scope)
                if is_other or any(rival.fullmatch(path) for rival in rivals):
                    return None
                return route, matched.groupdict()
        return None


def _rivals(
    route: Route, paths_by_length: dict[int, list[list[str]]]
) -> tuple[re.Pattern[str], ...]:
    """Returns the patterns of other routes that can match the same path. The framework selects the
    more specific one."""
    parts = route.path.split("/")
    return tuple(
        _pattern("/".join(other))
        for other in paths_by_length[len(parts) - 1]
        if other != parts and _overlaps(parts, other)
    )


def _overlaps(some: list[str], others: list[str]) -> bool:
    return all(
        a == b or a.startswith("{") or b.startswith("{") for a, b in zip(some, others, strict=True)
    )


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", re.escape(path)))


def _methods(route: Route) -> tuple[str, ...]:
    return ("GET", "HEAD") if route.method == "GET" and route.head else (route.method,)


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


async def _send(send: Send, reply: FinishedResponse) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (name.lower().encode(), value.encode()) for name, value in reply.headers.items()
    ]
    headers.append((b"content-length", str(len(reply.body)).encode()))
    start: dict[str, Any] = {"type": "http.response.start", "status": reply.status}
    await send({**start, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
