"""The outermost middleware: limits before the application, response headers and the access log."""

import logging
from typing import Any

import pytest
import trio

from leadline.http.accounts.routes import local_login
from leadline.http.home.console import monitor_list
from leadline.http.server import request_body as front
from leadline.http.server.asgi_middleware import RequestMiddleware
from tests.support.app.cast import Api

Message = dict[str, Any]


def scope(**given: Any) -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": "/secret-path", "headers": [], **given}


async def ask(
    app: Any, *bodies: bytes, requests: int = 1, **given: Any
) -> tuple[list[Message], list[Message]]:
    """Returns the messages that were sent, and those that the application received."""
    sent: list[Message] = []
    received: list[Message] = []
    waiting = [
        {"type": "http.request", "body": body, "more_body": n + 1 < len(bodies)}
        for n, body in enumerate(bodies or (b"",))
    ]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def inner(inner_scope: Any, inner_receive: Any, inner_send: Any) -> None:
        inner_scope["leadline.route"] = "/things/{thingID}"
        while True:
            message = await inner_receive()
            received.append(message)
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
        await inner_send({"type": "http.response.start", "status": 200, "headers": []})
        await inner_send({"type": "http.response.body", "body": b"ok"})

    permits = trio.CapacityLimiter(requests)
    await RequestMiddleware(app or inner, permits)(scope(**given), receive, send)
    return sent, received


async def test_every_response_has_security_headers() -> None:
    sent, _ = await ask(None)
    headers = dict(sent[0]["headers"])
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"referrer-policy"] == b"no-referrer"
    assert headers[b"x-frame-options"] == b"DENY"


async def test_the_size_of_a_body_is_counted_during_its_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front, "BODY_LARGEST", 10)
    sent, received = await ask(None, b"12345", b"67890", b"!", b"never seen")
    # The middleware drops the rest and the handler continues: a disconnect would cancel it.
    assert received[-1] == {"type": "http.request", "body": b"", "more_body": False}
    assert sent[0]["status"] == 200
    assert sum(len(m.get("body", b"")) for m in received) == 10


async def test_a_request_above_the_limit_gets_429() -> None:
    sent, received = await ask(None, requests=0)
    assert sent[0]["status"] == 429
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert received == []


async def test_the_access_log_has_the_route_without_path_and_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "leadline.access")
    await ask(None, query_string=b"token=hunter2")
    (record,) = caplog.records
    assert vars(record)["route"] == "/things/{thingID}"
    assert "secret-path" not in str(vars(record))
    assert "hunter2" not in str(vars(record))


async def test_a_failing_application_releases_its_permit() -> None:
    async def fails(*_: Any) -> None:
        raise RuntimeError("on purpose")

    permits = trio.CapacityLimiter(1)
    layer = RequestMiddleware(fails, permits)
    with pytest.raises(RuntimeError):
        await layer(scope(), None, None)  # type: ignore[arg-type]
    assert permits.borrowed_tokens == 0


async def test_a_browser_gets_a_404_page(api: Api) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml"}
    answer = await api.ask("nobody", "GET", "/nothing/here", headers=browser)
    assert answer.status_code == 404
    assert answer.content_type.startswith("text/html")
    assert "Content-Security-Policy" in answer.headers
    answer = await api.ask("nobody", "GET", "/api/v1/nothing", headers=browser)
    assert (answer.status_code, await answer.get_json()) == (404, {"error": "not_found"})


@pytest.mark.parametrize("answers", [True, False])
async def test_a_websocket_is_refused(answers: bool) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def never(*_: Any) -> None:
        raise AssertionError("the application is not asked")

    extensions: dict[str, Any] = {"websocket.http.response": {}} if answers else {}
    layer = RequestMiddleware(never, trio.CapacityLimiter(1))
    await layer(scope(type="websocket", extensions=extensions), receive, send)
    if answers:
        assert [m.get("status", m.get("body")) for m in sent] == [404, b'{"error":"not_found"}']
    else:
        assert sent == [{"type": "websocket.close"}]


async def test_a_caller_without_a_credential_causes_one_traceback_per_minute(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(*_: object) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(local_login, "mailing_now", failing)
    monkeypatch.setattr(monitor_list, "select_statuses", failing)
    caplog.set_level(logging.ERROR, "leadline.http")
    for _ in range(5):
        assert (await api.ask("nobody", "GET", "/auth/config")).status_code == 500
    assert [record.exc_info is not None for record in caplog.records] == [True, *[False] * 4]
    assert {record.__dict__["cause"] for record in caplog.records} == {"RuntimeError"}
    # Those of a known caller are few, and each is wanted.
    caplog.clear()
    for _ in range(2):
        path = f"/projects/{api.project}/monitors"
        assert (await api.ask("viewer", "GET", path)).status_code == 500
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


async def test_few_large_bodies_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "BODY_LARGEST", 10)
    is_inside, leave = trio.Event(), trio.Event()

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/first":
            is_inside.set()
            await leave.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    turned: list[str] = []
    layer = RequestMiddleware(
        waits,
        trio.CapacityLimiter(9),
        on_turned_away=turned.append,
        largest=lambda _: 20,
        large=trio.CapacityLimiter(1),
    )

    async def status_of(path: str, length: bytes) -> int:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"content-length", length)] if length else [(b"transfer-encoding", b"chunked")]
        await layer(scope(path=path, headers=headers), receive, send)
        status: int = sent[0]["status"]
        return status

    async with trio.open_nursery() as nursery:
        nursery.start_soon(status_of, "/first", b"15")
        await is_inside.wait()
        assert await status_of("/second", b"15") == 429
        assert await status_of("/second", b"") == 429
        assert turned == ["/second", "/second"]
        # One that fits every route, or no route, takes no permit.
        assert await status_of("/small", b"10") == 200
        assert await status_of("/huge", b"21") == 200
        leave.set()
    assert await status_of("/second", b"15") == 200
