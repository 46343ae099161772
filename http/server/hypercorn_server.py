"""Hypercorn server in the nursery of the daemon: socket, limits and shutdown.

The socket is opened once, before the process is ready, and outlives the not-ready server.
"""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import hypercorn.protocol
import hypercorn.trio.run
import trio
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve

from ..monitors.routes.push import PING_PATH, PUSH_PATH
from ..wire.app_context import AppContext, Readiness
from ..wire.client_address import client_address, direct_client
from ..wire.custom_domains import PageDomains
from ..wire.own_paths import App, behind_base_path
from . import health as ops
from .app import largest_of, make_app
from .asgi_middleware import RequestMiddleware
from .http1_protocol import Http1Protocol
from .not_ready import make_not_ready_app
from .request_time import slowest_of
from .route_table import ROUTES
from .short_path import ShortPath
from .tcp_connection import BoundedConnection, ClientConnections

# Hypercorn has no setting for the classes of its connections.
hypercorn.protocol.H11Protocol = Http1Protocol  # type: ignore[attr-defined]
hypercorn.trio.run.TCPServer = BoundedConnection  # type: ignore[attr-defined]

_OPS_PATHS: Final = frozenset(route.path for route in ops.ROUTES)
BACKLOG: Final = 1_024
# Line and headers of a request: the query of a push may contain the output of a job.
REQUEST_HEAD_LARGEST: Final = 64 << 10
KEEP_ALIVE_SECONDS: Final = 75
# By then, streams are closed and requests are finished; only idle connections remain.
GRACEFUL_SECONDS: Final = 3
# The kernel drops a client that stops reading after this time, so that it cannot delay a stop.
UNREAD_MS: Final = 20_000


async def serve(
    context: AppContext,
    listening: socket.socket,
    with_api: bool,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until `context.stopping` is set. Starts with the address of `listening`."""
    routes = (*ops.ROUTES, *ROUTES) if with_api else ops.ROUTES
    app = ShortPath(cast("Any", make_app(context, routes)), context, routes)
    own_hosts, base_path = context.options.own_hosts, context.options.base_path
    domains = PageDomains(app, context.domains, own_hosts, base_path) if with_api else app
    guarded = RequestMiddleware(
        domains,
        context.requests,
        on_turned_away=partial(_count_turned_away, context),
        largest=largest_of(routes),
        slowest=slowest_of(routes),
        large=context.large_requests,
        client_of=partial(_client_of, context),
        is_urgent=_is_urgent,
    )
    front = behind_base_path(guarded, base_path)
    host, port = listening.getsockname()[:2]
    async with trio.open_nursery() as nursery:
        trusted = context.options.trusted_proxies
        connections = ClientConnections(lambda peer: direct_client(peer, trusted))
        await nursery.start(_serve, front, _config(listening, connections), context.stopping)
        task_status.started(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _client_of(context: AppContext, scope: dict[str, Any]) -> str:
    peer = scope.get("client")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    trusted = context.options.trusted_proxies
    return client_address(str(peer[0]), headers, trusted) if peer else ""


def _is_urgent(scope: dict[str, Any]) -> bool:
    """Returns whether a request is for health, metrics or a push, or sends a credential."""
    return (
        scope["path"] in _OPS_PATHS
        or scope["path"].startswith((PUSH_PATH, PING_PATH))
        or any(name in (b"cookie", b"authorization") for name, _ in scope["headers"])
    )


def _count_turned_away(context: AppContext, path: str) -> None:
    if path.startswith((PUSH_PATH, PING_PATH)):
        context.recorder.count_lost_push()


async def serve_not_ready(
    listening: socket.socket,
    readiness: Callable[[], Readiness],
    requests: trio.CapacityLimiter,
    until: trio.Event,
    base_path: str = "",
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves on a duplicate of `listening` that the process is not ready, until `until`.

    A client that connects afterwards waits in the backlog of the socket for the real server.
    """
    guarded = RequestMiddleware(make_not_ready_app(readiness), requests)
    front = behind_base_path(guarded, base_path)
    config = _config(listening.dup(), ClientConnections())
    config.graceful_timeout = 0
    await _serve(front, config, until, task_status)


def _config(listening: socket.socket, connections: ClientConnections) -> Config:
    """Returns the configuration. Hypercorn closes `listening`."""
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.h11_max_incomplete_size = REQUEST_HEAD_LARGEST
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.graceful_timeout = GRACEFUL_SECONDS
    config.include_server_header = False
    config.alpn_protocols = ["http/1.1"]
    config.connections = connections  # type: ignore[attr-defined]
    return config


async def _serve(
    front: App,
    config: Config,
    stopping: trio.Event,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
) -> None:
    await hypercorn_serve(
        cast("Any", front),
        config,
        shutdown_trigger=stopping.wait,
        task_status=task_status,
        mode="asgi",
    )


def listen(address: tuple[str, int]) -> socket.socket:
    """Opens the socket. Raises: OSError if the address is in use or not local."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
    listening.bind((host, port))
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening
