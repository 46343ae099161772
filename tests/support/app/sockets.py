"""The real server on a real socket, and clients with one request per connection."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import trio
import trio.testing

from leadline.http.server.hypercorn_server import listen, serve
from leadline.http.wire.app_context import AppContext
from leadline.storage.engine.pools import Pool, open_pool


class HttpAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


@asynccontextmanager
async def served(context: AppContext) -> AsyncIterator[int]:
    """Yields the port on which the application listens."""
    async with trio.open_nursery() as nursery:
        address: str = await nursery.start(serve, context, listen(("127.0.0.1", 0)), True)
        yield int(address.rpartition(":")[2])
        context.stopping.set()


def request(
    method: str,
    path: str,
    credential: Mapping[str, str],
    body: bytes = b"",
    host: str = "localhost",
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in credential.items()]
    lines += ["Content-Type: application/json"] if body else []
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


async def asked(port: int, *sent: bytes) -> HttpAnswer:
    """Sends each piece after the server has read the previous one."""
    with trio.fail_after(30):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            for piece in sent:
                await stream.send_all(piece)
                await trio.testing.wait_all_tasks_blocked(0.01)
            return await answer_of(stream)


async def asked_during_sending(port: int, sent: bytes) -> HttpAnswer:
    """Reads the answer while it sends, since the server can answer before the end of a body."""
    with trio.fail_after(30):
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(_send, stream, sent)
            told = await answer_of(stream)
            nursery.cancel_scope.cancel()
        return told


async def _send(stream: trio.SocketStream, sent: bytes) -> None:
    with suppress(trio.BrokenResourceError):
        await stream.send_all(sent)


async def answer_of(stream: trio.SocketStream) -> HttpAnswer:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await _some(stream)
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    while len(body) < int(headers["content-length"]):
        body += await _some(stream)
    is_json = headers.get("content-type", "").startswith("application/json")
    content = json.loads(body) if is_json and body else body.decode() or None
    return HttpAnswer(int(status.split()[1]), headers, content)


async def _some(stream: trio.SocketStream) -> bytes:
    data = await stream.receive_some()
    assert data, "the server closed the connection during its answer"
    return bytes(data)


@asynccontextmanager
async def held(dsn: str, table: str) -> AsyncIterator[Pool]:
    """Locks the table against readers. The yielded pool is separate from that of the
    application.
    """
    async with open_pool(dsn, name="beside", size=2, clock=lambda: 0) as beside:  # type: ignore[arg-type,return-value]
        async with beside.transaction("hold") as tx:
            await tx.execute(f"lock table {table} in access exclusive mode")
            yield beside
