"""Hypercorn in our nursery: where it listens, how much it holds, how it ends."""

import socket
from typing import Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve

from ..wire.app_context import AppContext
from ..wire.custom_domains import PageDomains
from . import health as ops
from .app import make_app
from .asgi_middleware import RequestMiddleware
from .route_table import ROUTES

BACKLOG: Final = 1_024
KEEP_ALIVE_SECONDS: Final = 75
# Streams have been ended by then and requests finished; what is left is idle connections.
GRACEFUL_SECONDS: Final = 3
# A client that stops reading is dropped by the kernel after this, and holds up no stop.
UNREAD_MS: Final = 20_000


async def serve(
    context: AppContext,
    address: tuple[str, int],
    with_api: bool,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until `context.stopping`; started with the address it listens on."""
    routes = (*ops.ROUTES, *ROUTES) if with_api else ops.ROUTES
    app = cast("Any", make_app(context, routes))
    domains = PageDomains(app, context.domains) if with_api else app
    front = RequestMiddleware(domains, context.requests)
    listening = _listen(address)
    host, port = listening.getsockname()[:2]
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.graceful_timeout = GRACEFUL_SECONDS
    config.include_server_header = False
    config.alpn_protocols = ["http/1.1"]
    async with trio.open_nursery() as nursery:
        await nursery.start(_serve, front, config, context.stopping)
        task_status.started(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


async def _serve(
    front: RequestMiddleware,
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


def _listen(address: tuple[str, int]) -> socket.socket:
    """OSError where the address is taken or not ours."""
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
