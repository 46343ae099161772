"""A test from the form of a monitor sends stored secrets only to the stored host, port and
scheme.
"""

from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
import trio
import trustme

from leadline.storage.monitors.queries.monitors import select_monitor
from leadline.storage.monitors.transactions.config_secrets import decrypt, join
from tests.support.app.cast import Api
from tests.support.peers.real_servers import pems
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


CHAIN, KEY = pems(trustme.CA().issue_cert("leadline.example"))
HEADER = {"headers": {"Authorization": PASSWORD}}
OPTIONS: dict[str, dict[str, Any]] = {
    "proxy": {
        "proxy_url": "http://proxy.example:3128",
        "proxy_username": "watcher",
        "proxy_password": "horse-battery",
        **HEADER,
    },
    "certificate": {"client_cert": CHAIN, "client_key": KEY, **HEADER},
    "oauth2": {
        "auth_mode": "oauth2",
        "oauth2_token_url": "https://id.example/token",
        "oauth2_client_id": "pipeline",
        "oauth2_client_secret": "horse-battery",
    },
}


@pytest.mark.parametrize("option", OPTIONS)
async def test_the_form_removes_an_option_with_its_stored_secret(api: Api, option: str) -> None:
    config = OPTIONS[option]
    target = "https://shop.example/"
    row = await api.new_monitor(type="http", target=target, config=config)
    # The form shows no secret.
    kept = {
        f"config.{name}": str(value)
        for name, value in config.items()
        if name not in ("headers", "proxy_password", "client_key", "oauth2_client_secret")
    }
    headers = {"config.headers": "Authorization:"} if "headers" in config else {}
    status, page = await sent(api, row, target, "save", **kept, **headers)
    assert status == 303, page
    assert await stored(api, row) == config
    gone = {**dict.fromkeys(kept, ""), "config.follow_redirects": "true"}
    if option == "oauth2":
        gone["config.auth_mode"] = "none"
    status, page = await sent(api, row, target, "save", **gone, **headers)
    assert status == 303, page
    # Nothing is sent to another address, so the other secrets stay.
    assert await stored(api, row) == (HEADER if headers else {})


async def stored(api: Api, monitor: Any) -> dict[str, Any]:
    """Returns the whole config, as the probe gets it."""
    async with api.context.pool.transaction("read", read_only=True) as tx:
        row = await select_monitor(tx, monitor.uid)
    assert row is not None
    config = join(
        msgspec.json.decode(row.config),
        decrypt(api.context.keyring, row.config_ciphertext, row.uid),
    )
    config.pop("follow_redirects", None)
    return config
