"""A password reset sends mail through a real mail server, if the account exists."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import trio

from leadline.daemon.loops.mailers.password_reset_mailer import PasswordResetMailer
from leadline.http.auth.passwords import Passwords
from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.probes.net.egress_policy import probe_policy
from leadline.storage.accounts.rules.password_reset import ATTEMPTS_MOST
from leadline.storage.core.token import RANDOM_BYTES, TokenKind, token_from
from leadline.storage.engine.pools import open_pool
from tests.accounts.test_sign_in_api import log_in, secret_of
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.gating import Clock
from tests.support.peers.mail_server import Box, Server, mail_of, serving_mail

MARA = "Mara@Example.com"
PASSWORD = "correct horse"
ANOTHER = "battery staple"
BASE = "https://up.example.com"
REQUEST = "/auth/local/reset/request"
CONFIRM = "/auth/local/reset/confirm"


@dataclass
class World:
    api: Api
    resets: PasswordResetMailer
    server: Server
    clock: Clock

    async def request(self, address: str) -> tuple[int, bytes, dict[str, str]]:
        answer = await self.api.ask("nobody", "POST", REQUEST, {"email": address})
        return (
            answer.status_code,
            await answer.get_data(as_text=False),
            {k.lower(): v for k, v in answer.headers.items()},
        )

    async def letters(self) -> list[Any]:
        await self.resets.pass_once()
        return self.server.box.letters

    async def token(self, address: str = MARA) -> str:
        assert (await self.request(address))[0] == 200
        return token_in((await self.letters())[-1])

    async def confirm(self, token: str, password: str = ANOTHER) -> tuple[int, Any]:
        body = {"token": token, "new_password": password}
        answer = await self.api.ask("nobody", "POST", CONFIRM, body)
        return answer.status_code, await answer.get_json()


def token_in(letter: Any) -> str:
    text = letter.get_body(("plain",)).get_content()
    (found,) = re.findall(rf"{BASE}/reset/(leadline_reset_\w+)", text)
    return str(found)


@asynccontextmanager
async def world_of(dsn: str, passwords: Passwords, **options: Any) -> AsyncIterator[World]:
    clock = Clock()
    with serving_mail(Box()) as server:
        async with (
            open_pool(dsn, name="test", size=12, clock=clock) as pool,
            open_api(pool, FROZEN_NOW, passwords, clock=clock) as usual,
        ):
            way = replace(usual.context.reach, policy=probe_policy())
            means = replace(usual.context.means, mail=mail_of(way, server.port), to_mail_server=way)
            context = replace(
                usual.context,
                means=means,
                options=replace(
                    usual.context.options,
                    **{
                        "public_base_url": BASE,
                        "login_rate_limit_per_minute": 600,
                        **options,
                    },
                ),
            )
            client = make_app(context, ROUTES).test_client(use_cookies=False)
            api = replace(usual, context=context, client=client)
            resets = PasswordResetMailer(pool, context.keyring, means, BASE, clock)
            yield World(api, resets, server, clock)


@pytest.fixture
async def world(dsn: str, passwords: Passwords) -> AsyncIterator[World]:
    async with world_of(dsn, passwords) as made:
        await made.api.new_user(MARA, await passwords.hash(PASSWORD))
        yield made


async def test_the_mail_leads_to_a_new_password_and_every_session_ends(world: World) -> None:
    api = world.api
    cookie = {"Cookie": f"leadline_session={secret_of(await log_in(api, MARA, PASSWORD))}"}
    token = await world.token("mara@example.COM")
    (letter,) = world.server.box.letters
    assert letter["To"] == MARA
    assert letter["Precedence"] is None
    assert (await api.ask(cookie, "GET", "/api/v1/me")).status_code == 200
    assert await world.confirm(token) == (204, None)
    assert (await api.ask(cookie, "GET", "/api/v1/me")).status_code == 401
    assert (await log_in(api, MARA, PASSWORD)).status_code == 401
    assert (await log_in(api, MARA, ANOTHER)).status_code == 200
    (entry,) = await api.rows("select actor_label, action from audit_entries")
    assert entry == ("Someone", "user.reset_by_mail")


async def test_the_answer_is_equal_for_every_address_and_unknown_ones_get_no_mail(
    world: World,
) -> None:
    known = await world.request(MARA)
    assert await world.request("nobody@example.com") == known
    assert known[:2] == (200, b'{"ok":true}')
    # Before the mailer runs, both requests are stored alike.
    assert len(await world.api.rows("select from reset_requests")) == 2
    assert [letter["To"] for letter in await world.letters()] == [MARA]
    assert await world.api.rows("select from reset_requests") == []


async def test_a_token_is_good_once(world: World) -> None:
    token = await world.token()
    results = []

    async def use(password: str) -> None:
        results.append((await world.confirm(token, password))[0])

    async with trio.open_nursery() as nursery:
        for n in range(6):
            nursery.start_soon(use, f"a new password {n}")
    assert sorted(results) == [204, 400, 400, 400, 400, 400]
    assert await world.confirm(token) == (
        400,
        {"error": "token: is not good any more, or never was"},
    )


async def test_a_token_is_good_for_thirty_minutes(world: World) -> None:
    token = await world.token()
    world.clock.forward(1800)
    assert (await world.confirm(token))[0] == 400
    world.clock.forward(-1)
    assert (await world.confirm(token))[0] == 204


async def test_a_newer_mail_invalidates_the_older_one_and_one_is_sent_per_minute(
    world: World,
) -> None:
    first = await world.token()
    assert (await world.request(MARA))[0] == 200
    assert len(await world.letters()) == 1
    world.clock.forward(60)
    second = await world.token()
    assert (await world.confirm(first))[0] == 400
    assert (await world.confirm(second))[0] == 204


async def test_a_refused_password_does_not_use_the_token(world: World) -> None:
    token = await world.token()
    refused = await world.confirm(token, "short")
    assert refused == (400, {"error": "new_password: must be at least 10 characters"})
    assert (await world.confirm(token))[0] == 204


async def test_an_invalid_token_is_refused_before_a_password_is_hashed(world: World) -> None:
    other = token_from(TokenKind.RESET, b"\7" * RANDOM_BYTES)
    for token in ("", "leadline_reset_", other, other.replace("reset", "push")):
        assert (await world.confirm(token))[0] == 400


async def test_a_password_change_invalidates_the_mail(world: World) -> None:
    token = await world.token()
    secret = secret_of(await log_in(world.api, MARA, PASSWORD))
    cookie = {"Cookie": f"leadline_session={secret}"}
    body = {"current_password": PASSWORD, "new_password": ANOTHER}
    assert (await world.api.ask(cookie, "POST", "/api/v1/me/password", body)).status_code == 204
    assert (await world.confirm(token, "a third password"))[0] == 400


async def test_a_refusing_mail_server_is_tried_again_with_a_limit(world: World) -> None:
    await world.api.new_user("later@example.com", None)
    assert (await world.request("later@example.com"))[0] == 200
    for attempt in range(1, ATTEMPTS_MOST + 1):
        assert await world.resets.pass_once() == 1
        left = await world.api.rows("select attempts from reset_requests")
        assert left == ([(attempt,)] if attempt < ATTEMPTS_MOST else [])
        world.clock.forward(240)
        assert world.server.box.letters == []


async def test_an_account_without_a_password_can_set_one(world: World) -> None:
    await world.api.new_user("new@example.com", None)
    token = await world.token("new@example.com")
    assert (await world.confirm(token))[0] == 204
    assert (await log_in(world.api, "new@example.com", ANOTHER)).status_code == 200


async def test_tries_are_those_of_signing_in(dsn: str, passwords: Passwords) -> None:
    async with world_of(dsn, passwords, login_rate_limit_per_minute=3) as world:
        assert (await world.request("a@example.com"))[0] == 200
        assert (await log_in(world.api, MARA, "wrong")).status_code == 401
        assert (await world.confirm("x"))[0] == 400
        status, body, headers = await world.request("a@example.com")
        assert (status, body) == (429, b'{"error":"rate_limited"}')
        assert int(headers["retry-after"]) >= 1


@pytest.mark.parametrize("lacks", ["address", "accounts"])
async def test_a_reset_is_offered_only_if_it_can_work(
    dsn: str, passwords: Passwords, lacks: str
) -> None:
    options = {"public_base_url": ""} if lacks == "address" else {"local_enabled": False}
    async with world_of(dsn, passwords, **options) as world:
        config = await (await world.api.ask("nobody", "GET", "/auth/config")).get_json()
        assert config["password_reset"] is False
        status, body, _ = await world.request("a@example.com")
        expected = b"mail_unavailable" if lacks == "address" else b"not_found"
        assert (status, expected in body) == ({"address": 503, "accounts": 404}[lacks], True)


async def test_a_mail_server_set_at_run_time_is_used_for_the_next_mail(
    world: World,
) -> None:
    with serving_mail(Box()) as other:
        body = {
            "enabled": True,
            "smtp_host": "127.0.0.1",
            "smtp_port": other.port,
            "from": "new@example.com",
            "public_base_url": "https://new.example.com/",
        }
        answer = await world.api.ask("global_admin", "PUT", "/api/v1/settings/mail", body)
        assert (await answer.get_json())["deliverable"] is True
        assert (await world.request(MARA))[0] == 200
        assert await world.letters() == []
        (letter,) = other.box.letters
        assert letter["From"] == "new@example.com"
        assert "https://new.example.com/reset/leadline_reset_" in letter.as_string()
