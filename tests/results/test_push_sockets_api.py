"""Pushes over plain sockets, with requests that HTTP libraries refuse to send and curl sends."""

import pytest
import trio

from tests.support.app.cast import Api
from tests.support.app.sockets import asked, asked_during_sending, request, served


@pytest.fixture
async def token(api: Api) -> str:
    path = f"/api/v1/projects/{api.project}/monitors"
    made = await api.ask("editor", "POST", path, {"name": "Job", "type": "push"})
    return str((await made.get_json())["push_token"])


@pytest.mark.parametrize(
    ("query", "msg"),
    [
        ("msg=café".encode(), "café"),
        (b"msg=caf\xe9!", "caf%E9!"),
        (b"status=up&msg=" + "😀".encode() * 300, "😀" * 200),
        (b"msg=" + b"x" * 60_000, "x" * 200),
    ],
)
@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_message_in_any_encoding_is_a_heartbeat(
    api: Api, token: str, query: bytes, msg: str, in_pieces: bool
) -> None:
    line = request("GET", f"/api/v1/public/push/{token}?QUERY", {})
    sent = line.replace(b"QUERY", query)
    async with served(api.context) as port:
        told = await asked(port, *([sent[:70], sent[70:]] if in_pieces else [sent]))
    assert told.status == 200, told
    assert await api.rows("select up, msg from heartbeats") == [(True, msg)]


async def test_a_push_that_is_turned_away_counts_as_lost_by_leadline(api: Api, token: str) -> None:
    """Its silence raises no alarm: this process has not received everything."""
    lost = api.context.recorder.lost  # type: ignore[attr-defined]
    requests = api.context.requests
    permits = [object() for _ in range(int(requests.available_tokens))]
    async with served(api.context) as port:
        for permit in permits:
            requests.acquire_on_behalf_of_nowait(permit)
        told = await asked(port, request("POST", f"/api/v1/public/push/{token}", {}))
        other = await asked(port, request("GET", "/api/v1/me", {}))
        for permit in permits:
            requests.release_on_behalf_of(permit)
    assert (told.status, other.status) == (429, 429)
    assert api.context.recorder.lost == lost + 1  # type: ignore[attr-defined]


async def test_a_second_message_outside_ascii_on_a_connection_is_a_heartbeat(
    api: Api, token: str
) -> None:
    """Also if it arrives before the server has recycled the connection."""
    sent = request("GET", f"/api/v1/public/push/{token}?msg=QUERY", {})
    sent = sent.replace(b"Connection: close\r\n", b"")
    async with served(api.context) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        for number in range(8):
            query = f"é{number}".encode()
            await stream.send_all(b"\r\n" * (number % 2) + sent.replace(b"QUERY", query))
            head = await stream.receive_some(65_536)
            assert head.startswith(b"HTTP/1.1 200"), head
            while b"monitor_id" not in head:
                head += await stream.receive_some(65_536)
    found = await api.rows("select count(*) from heartbeats where msg like 'é%%'")
    assert found == [(8,)]


async def test_a_body_over_every_bound_leaves_a_heartbeat_and_an_answer(
    api: Api, token: str
) -> None:
    body = b"x" * (3 << 20)
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    head = request("POST", f"/api/v1/public/push/{token}", {"Transfer-Encoding": "chunked"})
    head = head.replace(b"Content-Length: 0\r\n", b"")
    async with served(api.context) as port:
        told = await asked_during_sending(port, head + chunk)
    assert told.body["ok"] is True
    assert await api.rows("select up from heartbeats") == [(True,)]
