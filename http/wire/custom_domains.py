"""Custom domains of status pages.

At its domain, a status page is the root. No other paths are served there except public ones; the
console is not. Only a proved domain is a custom domain. Every other host name shows the whole
installation, also one that a page has claimed, and those of the configuration always do.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import trio

from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.status_pages.queries.status_page_domains import select_domains
from .own_paths import WITHOUT_PREFIX

log = logging.getLogger("leadline.custom_domains")

# Longest time until a domain that another process added or removed is known here.
FRESH_SECONDS: Final = 5.0
# Limit for a request that waits for the domains to be reloaded. The wait of the request for a
# connection follows.
REFRESH_SECONDS: Final = 0.5

# Paths below the path of a status page, as requested at its domain.
_BELOW: Final = ("/history", "/month", "/widget", "/badge.svg", "/subscribe")
_BELOW_PREFIX: Final = ("/api/v2/", "/incidents/")
_ANYWHERE: Final = ("/api/v1/public/", "/static/", "/theme/", "/status/confirm/")
# Health is known without the database: a host that is not known as a custom domain now shows it.
_WITHOUT_DATABASE: Final = ("/healthz", "/readyz")
_LEAVING: Final = "/status/unsubscribe/"
# Answered with the path prefix of the installation and without: probes of a load balancer go to the
# process, and jobs keep their push URL when the prefix is introduced.
_WITHOUT_PREFIX: Final = ("/healthz", "/readyz", "/metrics")
_PUSH: Final = "/api/v1/public/push/"
_PUSHES: Final = (_PUSH, "/ping/")
_NOT_THERE: Final = b'{"error":"not_found"}'

Scope = dict[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


@dataclass(slots=True)
class Domains:
    """Cache of the domains. If the database is unavailable, the last known domains stay valid."""

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

    def known_slug_of(self, host: str) -> str | None:
        """Returns the same from memory, which can be older, or empty after the start."""
        return self._slugs.get(host)

    def forget(self) -> None:
        """Makes the next lookup reload the domains."""
        self._read_at = float("-inf")

    async def _read(self) -> None:
        self._read_at = trio.current_time()
        cause = f"no answer within {REFRESH_SECONDS:g} s"
        with trio.move_on_after(REFRESH_SECONDS if self._was_read else inf):
            try:
                async with self.pool.statement("list_custom_domains") as tx:
                    self._slugs = await select_domains(tx)
                self._was_read = True
                return
            except Unavailable as error:
                cause = str(error)
        log.warning("custom domains cannot be read", extra={"cause": cause})


class PageDomains:
    """ASGI middleware that maps a request at a custom domain to the path of its status page.

    `own_hosts` are host names of the console. A page that has one of them since before it was
    configured is not served there. With `base_path`, only custom domains are served without it.
    """

    def __init__(
        self,
        app: App,
        domains: Domains,
        own_hosts: Collection[str] = (),
        base_path: str = "",
    ) -> None:
        self._app = app
        self._domains = domains
        self._own_hosts = own_hosts
        self._base_path = base_path

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        slug = None
        at_root = scope.get(WITHOUT_PREFIX, False)
        if scope["type"] == "http" and not _needs_no_domain(scope["path"], at_root=at_root):
            slug = await self._slug_of(scope)
        if slug is None and (not at_root or _has_no_prefix(scope["path"])):
            await self._app(scope, receive, send)
            return
        # With a path prefix, a custom domain is without it.
        is_other = slug is None or (self._base_path != "" and not at_root)
        path = None if is_other else path_below(scope["path"], slug or "")
        if path is None:
            await _not_there(send)
            return
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)

    async def _slug_of(self, scope: Scope) -> str | None:
        host = host_of(scope)
        if host in self._own_hosts:
            return None
        if scope["path"] in _WITHOUT_DATABASE:
            return self._domains.known_slug_of(host)
        return await self._domains.slug_of(host)


def _needs_no_domain(path: str, *, at_root: bool) -> bool:
    """Returns whether a path is the same under every name, so that it needs no look-up.

    A push must not wait for the database before its receipt is noted.
    """
    return path.startswith(_PUSH if at_root else _ANYWHERE)


def _has_no_prefix(path: str) -> bool:
    return path in _WITHOUT_PREFIX or path.startswith(_PUSHES)


def host_of(scope: Scope) -> str:
    """Returns the host in lower case, without the port and the dot of the root."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host: str = named.decode("latin-1").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.removesuffix(".")


def path_below(path: str, slug: str) -> str | None:
    """Returns the path in the installation; None if it is not served at a custom domain."""
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
