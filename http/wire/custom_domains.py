"""Status pages that have a host name of their own: at that name the page is the root, and nothing
but public pages is there, least of all the console.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import trio

from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.status_pages.queries.status_page_domains import select_domains

log = logging.getLogger("leadline.custom_domains")

# How long a name that was set or given up by another process is not known here.
FRESH_SECONDS: Final = 5.0
# How long a request waits for names that were read before: its own wait for a connection follows.
REFRESH_SECONDS: Final = 0.5

# What is below a page's own path, as it is asked for at its name.
_BELOW: Final = ("/history", "/widget", "/badge.svg", "/subscribe")
_BELOW_PREFIX: Final = "/api/v2/"
_ANYWHERE: Final = ("/api/v1/public/", "/static/", "/theme/", "/status/confirm/")
_LEAVING: Final = "/status/unsubscribe/"
_NOT_THERE: Final = b'{"error":"not_found"}'

Scope = dict[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


@dataclass(slots=True)
class Domains:
    """The names as they were a moment ago; while the store is away, as they were before that."""

    pool: Pool
    _slugs: dict[str, str] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _was_read: bool = False
    _reading: trio.Lock = field(default_factory=trio.Lock)

    async def slug_of(self, host: str) -> str | None:
        if trio.current_time() - self._read_at >= FRESH_SECONDS:
            async with self._reading:
                if trio.current_time() - self._read_at >= FRESH_SECONDS:
                    await self._read()
        return self._slugs.get(host)

    def forget(self) -> None:
        """Something was written: the names are read before they are told again."""
        self._read_at = float("-inf")

    async def _read(self) -> None:
        self._read_at = trio.current_time()
        cause = f"no answer within {REFRESH_SECONDS:g} s"
        with trio.move_on_after(REFRESH_SECONDS if self._was_read else inf):
            try:
                async with self.pool.statement("page_domains") as tx:
                    self._slugs = await select_domains(tx)
                self._was_read = True
                return
            except Unavailable as error:
                cause = str(error)
        log.warning("custom domains cannot be read", extra={"cause": cause})


class PageDomains:
    """In front of the application: what is asked for at a page's name is found below the page."""

    def __init__(self, app: App, domains: Domains) -> None:
        self._app = app
        self._domains = domains

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        slug = None
        # Paths that are the same under every name need no look-up. A push must not wait for the
        # database before its receipt is noted.
        if scope["type"] == "http" and not scope["path"].startswith(_ANYWHERE):
            slug = await self._domains.slug_of(host_of(scope))
        if slug is None:
            await self._app(scope, receive, send)
            return
        path = path_below(scope["path"], slug)
        if path is None:
            await _not_there(send)
            return
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


def host_of(scope: Scope) -> str:
    """Without the port, in small letters."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host: str = named.decode("latin-1").lower()
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def path_below(path: str, slug: str) -> str | None:
    """The path of the whole installation; None for what is not at a page's name."""
    page = f"/status/{slug}"
    if path in ("", "/"):
        return page
    if path in _BELOW or path.startswith(_BELOW_PREFIX):
        return page + path
    is_own = path == page or path.startswith(f"{page}/")
    return path if is_own or path.startswith((*_ANYWHERE, _LEAVING)) else None


async def _not_there(send: Any) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_NOT_THERE)).encode()),
    ]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": _NOT_THERE})
