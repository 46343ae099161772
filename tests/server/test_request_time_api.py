"""A request ends: its head, and its wait for an answer."""

import os
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from leadline.http.server import http1_protocol, request_time
from leadline.http.server.asgi_middleware import RequestMiddleware
from leadline.http.server.request_body import BODY_SECONDS_MOST
from leadline.http.server.request_time import ANSWER_SECONDS, slowest_of
from leadline.http.server.route_table import ROUTES
from leadline.http.wire.app_context import AppContext
from leadline.http.wire.route import MANY_WRITES_SECONDS
from tests.server.test_slow_bodies_api import scope, until_borrowed
from tests.support.app.cast import Api
from tests.support.app.sockets import answer_of, asked, request, served

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


class Client:
    """The messages of one request, which `receive` gives at their instants."""

    def __init__(self, *bodies: tuple[float, bytes, bool]) -> None:
        self._bodies = list(bodies)
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        if not self._bodies:
            await trio.sleep_forever()
        pause, body, more = self._bodies.pop(0)
        await trio.sleep(pause)
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def told(self) -> tuple[int, bytes]:
        assert [one["type"] for one in self.sent] == ["http.response.start", "http.response.body"]
        return self.sent[0]["status"], self.sent[1]["body"]


def layer(app: Any, **given: Any) -> RequestMiddleware:
    return RequestMiddleware(app, trio.CapacityLimiter(10), **given)


async def hang(_scope: Any, receive: Any, _send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await trio.sleep_forever()


async def ignore(*_: Any) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("app", [hang, ignore])
async def test_a_handler_that_hangs_ends_with_503(
    app: Any, autojump_clock: trio.testing.MockClock
) -> None:
    client, requests = Client((0, b"", False)), trio.CapacityLimiter(10)
    began = trio.current_time()
    await RequestMiddleware(app, requests)(scope(b"0"), client.receive, client.send)
    assert trio.current_time() - began == pytest.approx(ANSWER_SECONDS)
    assert client.told == (503, b'{"error":"timeout"}')
    assert (b"connection", b"close") in client.sent[0]["headers"]
    assert requests.borrowed_tokens == 0


async def test_the_wait_begins_at_the_end_of_the_body(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pieces = [(5.0, b"x" * 40_000, True)] * 4 + [(5.0, b"x" * 40_000, False)]
    client, began = Client(*pieces), trio.current_time()
    await layer(hang)(scope(b"200000"), client.receive, client.send)
    assert trio.current_time() - began == pytest.approx(25 + ANSWER_SECONDS)
    assert client.told[0] == 503


async def test_a_body_that_no_handler_reads_ends_too(
    autojump_clock: trio.testing.MockClock,
) -> None:
    client, began = Client(), trio.current_time()
    await layer(ignore)(scope(b"64"), client.receive, client.send)
    assert trio.current_time() - began == pytest.approx(BODY_SECONDS_MOST + ANSWER_SECONDS, abs=20)
    assert client.told[0] == 503


async def test_an_answer_that_has_begun_is_not_ended(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Such as an event stream, which begins before the end of a body too."""

    async def stream(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10):
            await trio.sleep(ANSWER_SECONDS)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    for bodies in ([(0.0, b"", False)], [(0.0, b"xx", False)]):
        client = Client(*bodies)
        await layer(stream)(scope(str(len(bodies[0][1])).encode()), client.receive, client.send)
        assert client.sent[0]["status"] == 200
        assert [one["body"] for one in client.sent[1:]] == [*[b"x"] * 10, b""]


async def test_a_slow_route_has_its_own_time(autojump_clock: trio.testing.MockClock) -> None:
    client, began = Client((0, b"", False)), trio.current_time()
    await layer(hang, slowest=lambda _: 1_000.0)(scope(b"0"), client.receive, client.send)
    assert trio.current_time() - began == pytest.approx(1_000)
    slowest = slowest_of(ROUTES)
    project = "/api/v1/projects/019b0000-0000-7000-8000-000000000000"
    assert slowest(f"{project}/bundle/apply") == MANY_WRITES_SECONDS
    assert slowest(f"{project}/monitors/test") > 3_600
    assert slowest(f"{project}/monitors") == ANSWER_SECONDS
    assert slowest("/api/v1/agent/jobs") == ANSWER_SECONDS


async def test_a_hanging_route_of_the_application_gets_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_time, "ANSWER_SECONDS", 0.3)
    hangs = trio.Event()

    async def never(*_: Any, **__: Any) -> Any:
        hangs.set()
        await trio.sleep_forever()

    monkeypatch.setattr("leadline.http.server.request_pipeline.authenticate", never)
    async with served(api.context) as port:
        told = await asked(port, request("GET", "/api/v1/me", {}))
        assert hangs.is_set()
        assert (told.status, told.body) == (503, {"error": "timeout"})
        assert told.headers["connection"] == "close"
        await until_borrowed(api, 0)
        # The connection pool and the server serve others.
        assert (await asked(port, request("GET", "/healthz", {}))).status == 200


async def test_a_statement_that_hangs_ends_and_its_connection_is_given_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_time, "ANSWER_SECONDS", 0.3)

    async def slow(context: AppContext, *_: Any) -> None:
        async with context.pool.transaction("slow") as tx:
            await tx.rows("select pg_sleep(20)")

    async with served(api.context) as port:
        size = api.pool.counts().size
        with monkeypatch.context() as patched:
            patched.setattr("leadline.http.server.request_pipeline.authenticate", slow)
            for _ in range(size + 1):
                assert (await asked(port, request("GET", "/api/v1/me", {}))).status == 503
        told = await asked(port, request("GET", "/api/v1/me", api.credentials["viewer"]))
        assert told.status == 200


@pytest.mark.parametrize("start", [b"G", GET[:30], GET, GET + b"X: " + b"y" * 5_000])
async def test_a_head_that_never_ends_gets_408(
    api: Api, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(http1_protocol, "HEAD_SECONDS", 0.3)
    async with served(api.context) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            await stream.send_all(start)
            with trio.fail_after(30):
                told = await answer_of(stream)
                assert (told.status, told.body) == (408, {"error": "head_too_slow"})
                assert await stream.receive_some(1) == b""


async def test_bytes_of_a_head_do_not_prolong_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_protocol, "HEAD_SECONDS", 0.3)
    async with served(api.context) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        with trio.fail_after(30):
            await stream.send_all(GET + b"X: ")
            with suppress(trio.BrokenResourceError):
                while True:
                    await stream.send_all(b"y")
                    await trio.testing.wait_all_tasks_blocked(0.01)
        await stream.aclose()


async def test_a_second_head_on_a_connection_is_bounded_too(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1_protocol, "HEAD_SECONDS", 0.3)
    async with served(api.context) as port:
        for pieces in ((GET + b"\r\n", GET), (GET + b"\r\n" + GET,)):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            async with stream:
                for piece in pieces:
                    await stream.send_all(piece)
                    await trio.testing.wait_all_tasks_blocked(0.01)
                got = b""
                with trio.fail_after(30):
                    while part := await stream.receive_some(65_536):
                        got += part
            assert got.count(b"HTTP/1.1 200") == 1, got
            assert got.count(b"HTTP/1.1 408") == 1, got


async def test_a_slow_handler_does_not_end_a_head_that_has_arrived(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1_protocol, "HEAD_SECONDS", 0.2)
    waited = trio.Event()

    async def slow(*_: Any, **__: Any) -> Any:
        await trio.sleep(1)
        waited.set()

    monkeypatch.setattr("leadline.http.server.request_pipeline.authenticate", slow)
    async with served(api.context) as port:
        told = await asked(port, GET.replace(b"healthz", b"api/v1/me"), b"\r\n")
    assert waited.is_set()
    assert told.status == 401


@pytest.mark.parametrize("sent", [b"", b"GET /he", GET + b"\r\n"])
async def test_a_client_that_disconnects_leaves_no_socket(api: Api, sent: bytes) -> None:
    """A socket that stays until the keep-alive ends lets a client use up the file descriptors."""

    def sockets() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with served(api.context) as port:
        assert (await asked(port, request("GET", "/healthz", {}))).status == 200
        before = sockets()
        for _ in range(20):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            if sent:
                await stream.send_all(sent)
            await stream.aclose()
        with trio.fail_after(30):
            while sockets() > before:
                await trio.testing.wait_all_tasks_blocked(0.01)
