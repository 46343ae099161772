"""The screens of a password reset by mail, which do not reveal whether an address has an
account."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
from quart import Response

from leadline.http.auth.passwords import Passwords
from tests.accounts.test_password_resets_api import ANOTHER, MARA, PASSWORD, World, world_of
from tests.accounts.test_sign_in_api import log_in

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
async def world(dsn: str, passwords: Passwords) -> AsyncIterator[World]:
    async with world_of(dsn, passwords) as made:
        await made.api.new_user(MARA, await passwords.hash(PASSWORD))
        yield made


async def send(world: World, path: str, headers: dict[str, str] | None = None, **form: str) -> str:
    answer = await post(world, path, headers, **form)
    return await answer.get_data(as_text=True)


async def post(
    world: World, path: str, headers: dict[str, str] | None = None, **form: str
) -> Response:
    data = urlencode(form).encode()
    return await world.api.ask(
        "nobody", "POST", path, data=data, headers={**FORM, **(headers or {})}
    )


async def read(world: World, path: str) -> tuple[int, str]:
    answer = await world.api.ask("nobody", "GET", path)
    return answer.status_code, await answer.get_data(as_text=True)


async def test_the_way_from_the_sign_in_to_a_new_password(world: World) -> None:
    assert 'href="/reset"' in (await read(world, "/sign-in"))[1]
    assert "Send reset link" in (await read(world, "/reset"))[1]
    said = await send(world, "/reset", email=MARA)
    assert f"If an account exists for {MARA}, we sent a reset link" in said
    assert (await send(world, "/reset", email="x@y.test")).replace("x@y.test", MARA) == said
    (letter,) = await world.letters()
    text = letter.get_body(("plain",)).get_content()
    path = "/reset/" + text.partition("/reset/")[2].split()[0]
    for _ in range(2):
        status, page = await read(world, path)
        assert (status, "Choose a new password" in page) == (200, True)
    different = await send(world, path, new=ANOTHER, again=PASSWORD)
    assert "The passwords do not match. Type the same password twice." in different
    short = await send(world, path, new="short", again="short")
    assert "New password: must be at least 10 characters." in short
    done = await post(world, path, new=ANOTHER, again=ANOTHER)
    assert (done.status_code, done.headers["Location"]) == (303, "/sign-in?done=reset")
    assert "Password changed" in (await read(world, "/sign-in?done=reset"))[1]
    assert (await log_in(world.api, MARA, ANOTHER)).status_code == 200
    gone = await post(world, path, new=PASSWORD, again=PASSWORD)
    assert gone.status_code == 400
    assert "This link has expired" in await gone.get_data(as_text=True)


async def test_no_other_site_may_send_the_forms(world: World) -> None:
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert (await post(world, "/reset", elsewhere, email=MARA)).status_code == 403
    assert (await post(world, "/reset/x", elsewhere, new="a", again="a")).status_code == 403
    assert await world.letters() == []


async def test_an_invalid_address_is_refused_at_its_field(world: World) -> None:
    answer = await post(world, "/reset", email="nobody")
    assert answer.status_code == 400
    assert (
        "E-mail: not a valid address. Enter one such as name@example.com."
        in await answer.get_data(as_text=True)
    )


async def test_a_reset_without_mail_is_neither_offered_nor_routed(
    dsn: str, passwords: Passwords
) -> None:
    async with world_of(dsn, passwords, public_base_url="") as world:
        assert 'href="/reset"' not in (await read(world, "/sign-in"))[1]
        assert (await read(world, "/reset"))[0] == 404
        assert (await read(world, "/reset/x"))[0] == 404


async def test_too_many_requests_get_a_wait_time(dsn: str, passwords: Passwords) -> None:
    async with world_of(dsn, passwords, login_rate_limit_per_minute=1) as world:
        await send(world, "/reset", email=MARA)
        answer = await post(world, "/reset", email=MARA)
        assert answer.status_code == 429
        wait = answer.headers["Retry-After"]
        assert f"Try again in {wait} s." in await answer.get_data(as_text=True)


async def test_mail_is_set_by_a_form_that_keeps_what_was_typed(world: World) -> None:
    async def save(**form: str) -> tuple[int, str]:
        data = urlencode({"smtp_port": "587", "enabled": "on", **form}).encode()
        answer = await world.api.ask("global_admin", "POST", "/admin/mail", data=data, headers=FORM)
        return answer.status_code, await answer.get_data(as_text=True)

    status, page = await save(smtp_host="mail.test", smtp_password="a secret word")
    assert (status, "From: is required when mail is enabled." in page) == (400, True)
    assert 'value="mail.test"' in page
    assert "a secret word" not in page
    whole = {"smtp_host": "mail.test", "from": "a@b.test", "public_base_url": "https://a.test"}
    status, _ = await save(**whole, smtp_username="u", smtp_password="a secret word")
    assert status == 303
    answer = await world.api.ask("global_admin", "GET", "/admin/mail?saved=yes")
    page = await answer.get_data(as_text=True)
    assert "E-mails are sent by mail.test, from a@b.test, with links to https://a.test." in page
    assert "a secret word" not in page
    status, page = await save(**{**whole, "smtp_host": "other.test"}, smtp_username="u")
    assert (status, "Password: must be given again" in page) == (400, True)
    status, page = await save(**whole, smtp_port="no")
    assert (status, "Port: must be a whole number." in page) == (400, True)
