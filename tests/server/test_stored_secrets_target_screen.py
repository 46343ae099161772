"""A test from the form of a monitor sends stored secrets only to the stored host, port and
scheme.
"""

from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import pytest
import trio

from tests.support.app.cast import Api
from tests.support.peers.servers import answer, read_head, serving

PASSWORD = "canary-77aa01"
BASIC = b64encode(f"watcher:{PASSWORD}".encode())


class RecordingServer:
    def __init__(self) -> None:
        self.heads: list[bytes] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        self.heads.append(await read_head(stream))
        await stream.send_all(answer())


async def sent(api: Api, monitor: Any, target: str, act: str, **form: str) -> tuple[int, str]:
    fields = {"name": "a", "target": target, "method": "GET", "interval_seconds": "60"}
    fields |= {"timeout_seconds": "5", "act": act, "fields": "http", "region": "core", **form}
    response = await api.ask(
        "editor",
        "POST",
        f"/monitors/{monitor.uid}/edit",
        data=urlencode(fields).encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    return response.status_code, await response.get_data(as_text=True)


WAYS = {
    "password": (
        {"auth_mode": "basic", "username": "watcher", "password": PASSWORD},
        {"config.auth_mode": "basic", "config.username": "watcher", "config.password": ""},
        BASIC,
    ),
    "header": (
        {"headers": {"Authorization": PASSWORD}},
        {"config.headers": "Authorization:"},
        PASSWORD.encode(),
    ),
}


@pytest.mark.parametrize("act", ["test", "save"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_stored_secret_is_not_sent_to_another_target(api: Api, way: str, act: str) -> None:
    config, form, carried = WAYS[way]
    home, away = RecordingServer(), RecordingServer()
    async with serving(home.serve) as port, serving(away.serve) as other:
        row = await api.new_monitor(type="http", target=f"https://127.0.0.1:{port}/", config=config)
        for target in (
            f"https://127.0.0.1:{other}/",
            f"https://localhost:{port}/",
            f"http://127.0.0.1:{other}/",
            f"http://127.0.0.1:{port}/",
        ):
            status, page = await sent(api, row, target, act, **form)
            assert status == 400, target
            assert "must be given again" in page
            assert PASSWORD not in page
        plain = await api.new_monitor(
            type="http", target=f"http://127.0.0.1:{port}/", config=config
        )
        status, page = await sent(api, plain, f"http://127.0.0.1:{port}/other", "test", **form)
    assert status == 200
    assert PASSWORD not in page
    assert away.heads == []
    assert [carried in head for head in home.heads] == [True]
