"""Paths of the installation, and their prefix (`server.base_path`) on a host shared with others.

The routes and the templates know no prefix. It is taken from the path of a request before the
request is routed, and added to the paths of the answer: those in HTML, in `Location` and in
cookies. Absolute URLs contain it, because the public address of the installation does.
"""

import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import urlsplit

Scope = dict[str, Any]
Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Any, Any], Awaitable[None]]

# Entry of an ASGI scope: the request lacks the prefix.
WITHOUT_PREFIX: Final = "leadline.without_prefix"

# Attributes of the templates and the scripts whose value is a path. Text cannot look like one, as
# quotation marks in it are escaped.
ATTRIBUTES: Final = ("href", "action", "formaction", "src", "data-pick", "data-events", "data-rows")
_PATH: Final = re.compile(rf'([\s<](?:{"|".join(ATTRIBUTES)})=")/(?!/)')
_COOKIE_PATH: Final = re.compile(rb"; Path=/([^;]*)", re.IGNORECASE)
# Browsers accept a cookie with this name only with the path of the whole host.
_WHOLE_HOST: Final = b"__Host-"

_current: ContextVar[str] = ContextVar("base_path", default="")


def local_path(asked: str) -> str:
    """Returns the path to redirect to; the root for a URL that could lead to another site."""
    odd = any(char <= " " or char in "\\\x7f" for char in asked)
    if odd or not asked.startswith("/") or asked.startswith("//"):
        return "/"
    try:
        parts = urlsplit(asked)
    except ValueError:
        return "/"
    return "/" if parts.scheme or parts.netloc else asked


def base_path_now() -> str:
    """Returns the prefix of the request that is answered; empty at the root."""
    return _current.get()


def with_base_path(html: str) -> str:
    """Returns HTML of a template with the prefix of the request in each path."""
    base = _current.get()
    return _PATH.sub(rf"\g<1>{base}/", html) if base else html


class BasePath:
    """ASGI middleware in front of all others: takes the prefix off, and adds it to the answer.

    A request without the prefix goes on with a mark: only health, metrics, pushes and custom
    domains of status pages have an answer there.
    """

    def __init__(self, app: App, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rest = _rest(scope["path"], self._base)
        if rest is None:
            await self._app({**scope, WITHOUT_PREFIX: True}, receive, send)
            return
        _current.set(self._base)
        given = {**scope, "path": rest, "raw_path": rest.encode()}
        await self._app(given, receive, _adding(self._base.encode(), send))


def behind_base_path(app: App, base: str) -> App:
    return BasePath(app, base) if base else app


def _rest(path: str, base: str) -> str | None:
    if path == base:
        return "/"
    return path[len(base) :] if path.startswith(f"{base}/") else None


def _adding(base: bytes, send: Send) -> Send:
    async def add(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", ())
            headers = [_with_base(name, value, base) for name, value in given]
            # The browser can have one of the whole host from before the prefix was configured.
            headers += [one for one in given if _ends_cookie(*one)]
            message = {**message, "headers": headers}
        await send(message)

    return add


def _with_base(name: bytes, value: bytes, base: bytes) -> tuple[bytes, bytes]:
    kind = name.lower()
    if (
        kind == b"location"
        and value.startswith(b"/")
        and not value.startswith((b"//", base + b"/"))
    ):
        return name, base + value
    if kind == b"set-cookie" and not value.startswith(_WHOLE_HOST):
        return name, _COOKIE_PATH.sub(lambda found: _cookie_path(base, found[1]), value)
    return name, value


def _ends_cookie(name: bytes, value: bytes) -> bool:
    """Returns whether a header ends a cookie of the whole installation."""
    return (
        name.lower() == b"set-cookie"
        and not value.startswith(_WHOLE_HOST)
        and b"; Path=/;" in value
        and b"; Max-Age=0;" in value
    )


def _cookie_path(base: bytes, rest: bytes) -> bytes:
    return b"; Path=" + base + (b"/" + rest if rest else b"")
