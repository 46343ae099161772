"""The answers of a process that starts: it is alive, and it is not ready.

An orchestrator must not kill a process that waits for its database, and must send it no requests.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..wire.app_context import Readiness
from ..wire.errors import body_of
from .asgi_middleware import App, Message, Receive, Scope, Send
from .health import HealthState

RETRY_AFTER_SECONDS: Final = 5


def make_not_ready_app(readiness: Callable[[], Readiness]) -> App:
    """Returns an ASGI application that serves the address until the real one can be built.

    `/healthz` is 200, `/readyz` 503 with the faults of `readiness`, and everything else 503
    `not_ready`.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        status, body = 503, body_of("not_ready")
        if scope["path"] in ("/healthz", "/readyz"):
            scope["leadline.route"] = scope["path"]
        if scope["path"] == "/healthz":
            status, body = 200, msgspec.json.encode(HealthState("ok"))
        elif scope["path"] == "/readyz":
            faults = list(readiness().faults)
            body = msgspec.json.encode(HealthState("not_ready", faults))
        await _answer(send, status, body, with_body=scope["method"] != "HEAD")

    return app


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _answer(send: Send, status: int, body: bytes, *, with_body: bool) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if status == 503:
        headers.append((b"retry-after", str(RETRY_AFTER_SECONDS).encode()))
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    end: dict[str, Any] = {"type": "http.response.body", "body": body if with_body else b""}
    await send(end)
