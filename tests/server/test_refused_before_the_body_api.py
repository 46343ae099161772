"""A refusal that does not need the body is sent before the body arrives; the connection then
continues or is closed. The clients use a real socket and send head and body separately, as most
libraries do.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import trio

from leadline.http.server import request_body as front
from tests.support.app.cast import Api
from tests.support.app.sockets import HttpAnswer, answer_of, served

TYPED = "Content-Type: application/json"


@pytest.fixture
async def port(api: Api) -> AsyncIterator[int]:
    async with served(api.context) as port:
        yield port


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


async def answer(stream: trio.SocketStream) -> HttpAnswer:
    with trio.fail_after(30):
        return await answer_of(stream)


def drain(channel: trio.MemoryReceiveChannel[None]) -> None:
    with suppress(trio.WouldBlock):
        while True:
            channel.receive_nowait()


async def is_over(stream: trio.SocketStream) -> bool:
    with trio.fail_after(30):
        try:
            return await stream.receive_some() == b""
        except trio.BrokenResourceError:
            return True


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/v1/organizations", 401),
        ("PATCH", "/api/v1/organizations", 405),
        ("TRACE", "/api/v1/version", 405),
        ("POST", "/nowhere", 404),
    ],
)
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_the_next_request_of_the_connection_is_answered(
    port: int,
    method: str,
    path: str,
    status: int,
    framing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = b'{"name": "x", "slug": "x"}'
    framed = f"Content-Length: {len(body)}"
    if framing == "chunked":
        framed = "Transfer-Encoding: chunked"
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    refusals: trio.MemorySendChannel[None]
    refusals, refusal = trio.open_memory_channel(100)
    came = front.RequestBody.came

    async def noted(self: front.RequestBody) -> bool:
        """Reports that the application has refused, before it waits for the body."""
        refusals.send_nowait(None)
        return await came(self)

    monkeypatch.setattr(front.RequestBody, "came", noted)
    # Long enough for a busy machine to send the body.
    monkeypatch.setattr(front, "LINGER_SECONDS", 60)
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        for is_late in (False, True):
            await stream.send_all(head(method, path, TYPED, framed))
            if is_late:
                with trio.fail_after(30):
                    await refusal.receive()
            await stream.send_all(body)
            refused = await answer(stream)
            assert refused.status == status
            assert "connection" not in refused.headers
            await stream.send_all(head("GET", "/auth/config"))
            assert (await answer(stream)).status == 200
            drain(refusal)


async def test_a_client_that_never_sends_the_body_is_disconnected(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "LINGER_SECONDS", 0.1)
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(head("POST", "/api/v1/organizations", TYPED, "Content-Length: 9"))
        refused = await answer(stream)
        assert (refused.status, refused.headers["connection"]) == (401, "close")
        assert await is_over(stream)


async def test_an_oversized_body_is_not_awaited(port: int) -> None:
    length = f"Content-Length: {front.BODY_LARGEST + 1}"
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(head("POST", "/api/v1/organizations", TYPED, length))
        refused = await answer(stream)
        assert (refused.status, refused.headers["connection"]) == (401, "close")
        assert await is_over(stream)


async def test_a_rejected_client_with_a_long_body_is_disconnected(port: int, api: Api) -> None:
    api.context.requests.total_tokens = 0
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        length = f"Content-Length: {front.BODY_LARGEST}"
        await stream.send_all(head("POST", "/api/v1/organizations", TYPED, length))
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                try:
                    for _ in range(front.BODY_LARGEST >> 16):
                        await stream.send_all(b" " * (1 << 16))
                except trio.BrokenResourceError:
                    return

            nursery.start_soon(send)
            try:
                turned = await answer(stream)
                assert (turned.status, turned.headers["connection"]) == (429, "close")
            except trio.BrokenResourceError:
                # The server closed without reading everything, so the system can report an error to
                # the sender first.
                pass
            assert await is_over(stream)
            nursery.cancel_scope.cancel()
