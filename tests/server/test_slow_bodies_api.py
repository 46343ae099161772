"""Slow bodies end, and leave room for others."""

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.server import request_body
from leadline.http.server.asgi_middleware import RESERVED_SHARE, RequestMiddleware
from leadline.http.server.request_body import (
    BODIES_MOST,
    BODIES_OF_CLIENT,
    BODY_GRACE_SECONDS,
    BODY_SECONDS_MOST,
    URGENT_BODIES_MORE,
    ArrivingBodies,
    RequestBody,
)
from tests.support.app.cast import Api
from tests.support.app.sockets import asked, request, served

HEAD = b"POST /auth/local/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UNSENT = HEAD + b"Content-Length: 64\r\n\r\n"


def scope(length: bytes, **given_: Any) -> dict[str, Any]:
    headers = [(b"content-length", length)]
    return {"type": "http", "method": "POST", "path": "/x", "headers": headers, **given_}


async def until_borrowed(api: Api, count: int) -> None:
    with trio.fail_after(30):
        while api.context.requests.borrowed_tokens != count:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def taken(size: int, pause: float, pieces: int) -> tuple[float, bool]:
    """Returns after how many seconds a body of equal pieces ended, and whether it was too slow."""

    async def receive() -> dict[str, Any]:
        nonlocal pieces
        await trio.sleep(pause)
        pieces -= 1
        return {"type": "http.request", "body": b"x" * size, "more_body": pieces > 0}

    body = RequestBody(scope(str(size * pieces).encode()), receive, request_body.BODY_LARGEST)
    began = trio.current_time()
    while (await body.next_message()).get("more_body"):
        pass
    return trio.current_time() - began, body.is_slow


async def test_a_body_must_keep_its_pace(autojump_clock: trio.testing.MockClock) -> None:
    # One byte every 5 s, as an attacker sends it.
    took, is_slow = await taken(1, 5, 1_000)
    assert is_slow
    assert took == pytest.approx(BODY_GRACE_SECONDS, abs=0.1)
    assert (await taken(1, 1, 5))[1] is False
    # A slow line of 16 kbit/s.
    assert (await taken(2_048, 1, 60))[1] is False
    assert (await taken(900, 1, 400))[1] is True
    # No pace is good enough for longer than the whole time.
    took, is_slow = await taken(4_096, 1, 400)
    assert is_slow
    assert took == pytest.approx(BODY_SECONDS_MOST)


@pytest.mark.rule
@given(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.booleans()), max_size=60))
def test_places_are_counted_by_client(steps: list[tuple[str, bool]]) -> None:
    bodies, held = ArrivingBodies(), []
    for client, takes in steps:
        if takes:
            assert bodies.took(client)
            held.append(client)
        elif held:
            bodies.give_back(held.pop(0))
        assert len(bodies) == len(held)
    others = BODIES_OF_CLIENT - held.count("a")
    assert [bodies.took("a") for _ in range(others + 1)] == [True] * others + [False]
    left = BODIES_MOST - len(bodies)
    assert [bodies.took("") for _ in range(left + 1)] == [True] * left + [False]
    assert not bodies.took("c")
    more = [bodies.took("", is_urgent=True) for _ in range(URGENT_BODIES_MORE + 1)]
    assert more == [True] * URGENT_BODIES_MORE + [False]


async def test_a_slow_client_gets_408_and_loses_its_place(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "BODY_GRACE_SECONDS", 0.3)
    async with served(api.context) as port:
        told = await asked(port, UNSENT + b'{"us')
        assert (told.status, told.body) == (408, {"error": "body_too_slow"})
        assert told.headers["connection"] == "close"
        await until_borrowed(api, 0)


async def test_slow_bodies_of_one_client_leave_room_for_others(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body, "BODIES_OF_CLIENT", 3)
    streams: list[trio.SocketStream] = []
    async with served(api.context) as port:
        for count in range(1, 4):
            streams.append(await trio.open_tcp_stream("127.0.0.1", port))
            await streams[-1].send_all(UNSENT)
            await until_borrowed(api, count)
        told = await asked(port, UNSENT)
        assert (told.status, told.headers["retry-after"]) == (429, "1")
        # Requests without a body are not counted.
        for path in ("/healthz", "/auth/config"):
            assert (await asked(port, request("GET", path, {}))).status == 200
        await streams.pop().aclose()
        await until_borrowed(api, 2)
        login = b'{"username": "nobody@example.com", "password": "x"}'
        told = await asked(port, request("POST", "/auth/local/login", {}, login))
        assert told.status == 401
        for stream in streams:
            await stream.aclose()


async def test_a_share_is_reserved_for_urgent_requests() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("the request begins")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def status_of(layer: RequestMiddleware) -> int:
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await layer(scope(b"0"), receive, send)
        return int(sent[0]["status"])

    requests = trio.CapacityLimiter(20)
    for _ in range(20 - int(20 * RESERVED_SHARE)):
        requests.acquire_on_behalf_of_nowait(object())
    assert await status_of(RequestMiddleware(never, requests, is_urgent=lambda _: False)) == 429
    with pytest.raises(AssertionError, match="the request begins"):
        await status_of(RequestMiddleware(never, requests))
