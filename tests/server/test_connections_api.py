"""Bounds of a connection: slow readers, connections without a request, and many of one client."""

from ipaddress import ip_network

import pytest
import trio

from leadline.http.server import tcp_connection
from leadline.http.server.tcp_connection import ClientConnections
from leadline.http.wire.client_address import direct_client
from tests.support.app.cast import Api
from tests.support.app.sockets import request, served

# More than the kernel buffers.
ANSWER_BYTES = 32 << 20
HANGS_SECONDS = 30


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a test reaches soon."""
    monkeypatch.setattr(tcp_connection, "PIECE_SECONDS", 0.5)
    monkeypatch.setattr(tcp_connection, "FIRST_REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(tcp_connection, "CONNECTIONS_MOST", 3)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenAPI document is a large text."""
    document = {"text": "x" * ANSWER_BYTES}
    monkeypatch.setattr("leadline.http.server.route_table._document", lambda *_: document)


async def opened(port: int) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", port)


async def ended(stream: trio.SocketStream) -> int:
    """Reads to the end of the connection, and returns the number of bytes."""
    count = 0
    with trio.fail_after(HANGS_SECONDS):
        try:
            while data := await stream.receive_some(1 << 20):
                count += len(data)
        except trio.BrokenResourceError:
            pass
    return count


async def is_answered(port: int) -> bool:
    """Returns whether a new connection gets an answer."""
    async with await opened(port) as stream:
        try:
            await stream.send_all(request("GET", "/healthz", {}))
        except trio.BrokenResourceError:
            return False
        return await ended(stream) > 0


def status_of(received: bytes) -> bytes:
    return received.split(b" ", 2)[1]


async def test_a_slow_reader_loses_its_connection(api: Api, bounds: None, large: None) -> None:
    async with served(api.context) as port, await opened(port) as stream:
        await stream.send_all(request("GET", "/api/v1/openapi.json", api.credentials["viewer"]))
        assert status_of(bytes(await stream.receive_some(100))) == b"200"
        with trio.fail_after(HANGS_SECONDS):
            while api.context.requests.borrowed_tokens:  # noqa: ASYNC110 - it sets no event
                await trio.sleep(0.01)
        assert await ended(stream) < ANSWER_BYTES


async def test_a_reader_that_pauses_gets_the_whole_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch, large: None
) -> None:
    """A pause within the time of a piece is no end, however long the whole answer takes."""
    monkeypatch.setattr(tcp_connection, "PIECE_SECONDS", 10.0)
    count = 0
    async with served(api.context) as port, await opened(port) as stream:
        await stream.send_all(request("GET", "/api/v1/openapi.json", api.credentials["viewer"]))
        while data := await stream.receive_some(4 << 20):
            count += len(data)
            await trio.sleep(0.05)
    assert count > ANSWER_BYTES


async def test_a_connection_without_a_request_is_closed(api: Api, bounds: None) -> None:
    async with served(api.context) as port, await opened(port) as silent:
        assert await ended(silent) == 0
        async with await opened(port) as kept:
            # After a request, the longer time between requests applies.
            sent = request("GET", "/healthz", {}).replace(b"Connection: close\r\n", b"")
            received = b""
            for number in (1, 2):
                await kept.send_all(sent)
                while received.count(b"HTTP/1.1 200") < number:
                    data = await kept.receive_some(4096)
                    assert data, "the connection was closed"
                    received += data
                await trio.sleep(2 * tcp_connection.FIRST_REQUEST_SECONDS)


async def test_one_address_has_a_bounded_number_of_connections(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_connection, "CONNECTIONS_MOST", 3)
    async with served(api.context) as port:
        held = [await opened(port) for _ in range(3)]
        async with await opened(port) as refused:
            assert await ended(refused) == 0
        await held.pop().aclose()
        with trio.fail_after(HANGS_SECONDS):
            while not await is_answered(port):  # noqa: ASYNC110 - it sets no event
                await trio.sleep(0.01)
        for each in held:
            await each.aclose()


def test_a_trusted_proxy_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_connection, "CONNECTIONS_MOST", 2)
    trusted = [ip_network("10.0.0.0/8")]
    found = ClientConnections(lambda peer: direct_client(peer, trusted))
    assert [found.opened("10.0.0.1") for _ in range(5)] == [""] * 5
    # One client usually has a whole /64.
    assert found.opened("2001:db8::1") == found.opened("2001:db8::2") == "2001:db8::/64"
    assert found.opened("2001:db8::3") is None
    found.closed("2001:db8::/64")
    assert found.opened("2001:db8::3") == "2001:db8::/64"
    assert found.opened("2001:db8:0:1::3") == "2001:db8:0:1::/64"
