"""Pushes by plain clients: what HTTP libraries would refuse to send, and curl does."""

import pytest

from tests.support.app.cast import Api
from tests.support.app.sockets import asked, request, served

_ROOM = """
create table heartbeats_all partition of heartbeats for values from ('2025-11-01') to ('2026-03-01')
"""


@pytest.fixture
async def token(api: Api) -> str:
    async with api.pool.transaction("room") as tx:
        await tx.execute(_ROOM)
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


async def test_a_body_over_every_bound_leaves_a_heartbeat_and_an_answer(
    api: Api, token: str
) -> None:
    body = b"x" * (3 << 20)
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    head = request("POST", f"/api/v1/public/push/{token}", {"Transfer-Encoding": "chunked"})
    head = head.replace(b"Content-Length: 0\r\n", b"")
    async with served(api.context) as port:
        told = await asked(port, head + chunk)
    assert told.body["ok"] is True
    assert await api.rows("select up from heartbeats") == [(True,)]
