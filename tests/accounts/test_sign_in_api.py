"""Sign-in and sign-out: the cookie, the accepted credentials, and the rate limit."""

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.storage.accounts.queries import users as users_queries
from leadline.storage.accounts.tables import users
from leadline.storage.core.instant import SECOND
from leadline.storage.core.token import digest
from tests.support.app.cast import COOKIE, Api

PASSWORD = "correct horse"
EMAIL = "Ann@Example.com"
LOGIN = "/auth/local/login"
_STORED = "select token_hash, expires_at from sessions"


@pytest.fixture
async def ann(api: Api) -> str:
    """Creates a user with a password and returns their address."""
    await api.new_user(EMAIL, await api.context.passwords.hash(PASSWORD))
    return EMAIL


def configured(api: Api, **options: Any) -> Api:
    """The same world behind an app with other options."""
    context = replace(api.context, options=replace(api.context.options, **options))
    client = make_app(context, ROUTES).test_client(use_cookies=False)
    return replace(api, context=context, client=client)


async def log_in(api: Api, username: str, password: str = PASSWORD, **headers: str) -> Any:
    body = {"username": username, "password": password}
    return await api.ask("nobody", "POST", LOGIN, body, headers=headers)


def secret_of(response: Any) -> str:
    value = response.headers["Set-Cookie"].split(";")[0]
    return str(value.removeprefix(f"{COOKIE}="))


async def test_signing_in_begins_a_session_that_opens_the_interface(api: Api, ann: str) -> None:
    response = await log_in(api, ann, **{"User-Agent": "Test/1.0 \x07(X)"})
    assert response.status_code == 200
    assert await response.get_json() == {"ok": True}
    cookie = {"Cookie": f"{COOKIE}={secret_of(response)}"}
    me = await (await api.ask(cookie, "GET", "/api/v1/me")).get_json()
    assert me["user"]["email"] == EMAIL
    (session,) = await (await api.ask(cookie, "GET", "/api/v1/me/sessions")).get_json()
    assert session["current"] is True
    assert session["client"] == "Test/1.0 (X)"


async def test_the_cookie_is_kept_from_scripts_and_other_sites(api: Api, ann: str) -> None:
    header = (await log_in(api, ann)).headers["Set-Cookie"]
    attributes = {part.strip() for part in header.split(";")[1:]}
    assert attributes == {"Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Lax"}
    secure = configured(api, cookie_secure=True, cookie_name="mine", session_ttl_seconds=300)
    header = (await log_in(secure, ann)).headers["Set-Cookie"]
    assert header.startswith("mine=")
    assert "; Secure" in header
    assert "Max-Age=300;" in header


async def test_the_database_contains_only_the_digest_of_the_cookie(api: Api, ann: str) -> None:
    secret = secret_of(await log_in(api, ann))
    assert len(secret) >= 43
    stored = {bytes(row[0]): row[1] for row in await api.rows(_STORED)}
    assert stored[digest(secret)] == api.context.clock() + 604_800 * SECOND
    dump = await api.rows("select s::text from sessions s")
    assert not any(secret in row[0] for row in dump)


@pytest.mark.parametrize(
    ("username", "password"),
    [
        (EMAIL, "wrong horse"),
        (EMAIL, ""),
        (EMAIL, PASSWORD + " "),
        ("nobody@example.com", PASSWORD),
        ("viewer@example.com", PASSWORD),  # has no password
        ("", PASSWORD),
    ],
)
async def test_every_wrong_credential_gets_the_same_401(
    api: Api, ann: str, username: str, password: str
) -> None:
    response = await log_in(api, username, password)
    assert response.status_code == 401
    assert await response.get_json() == {"error": "unauthorized"}
    assert "Set-Cookie" not in response.headers


async def test_an_address_is_found_in_any_case(api: Api, ann: str) -> None:
    assert (await log_in(api, ann.upper())).status_code == 200


async def test_a_session_ends_when_its_time_is_over(api: Api, ann: str) -> None:
    secret = secret_of(await log_in(api, ann))
    cookie = {"Cookie": f"{COOKIE}={secret}"}
    for left, status in ((SECOND, 200), (0, 401)):
        async with api.pool.transaction("age") as tx:
            await tx.execute(
                "update sessions set expires_at = at(%(until)s) where token_hash = %(hash)s",
                until=tx.now + left,
                hash=digest(secret),
            )
        assert (await api.ask(cookie, "GET", "/api/v1/me")).status_code == status


async def test_signing_out_ends_the_session_and_clears_the_cookie(api: Api, ann: str) -> None:
    cookie = {"Cookie": f"{COOKIE}={secret_of(await log_in(api, ann))}"}
    response = await api.ask(cookie, "POST", "/auth/logout")
    assert response.status_code == 302
    assert response.headers["Location"] == "/"
    assert response.headers["Set-Cookie"].startswith(f"{COOKIE}=; Path=/; Max-Age=0;")
    assert (await api.ask(cookie, "GET", "/api/v1/me")).status_code == 401
    # Sign-out again and without a cookie: both are accepted without an effect.
    assert (await api.ask(cookie, "POST", "/auth/logout")).status_code == 302
    assert (await api.ask("nobody", "POST", "/auth/logout")).status_code == 302


async def test_a_request_of_another_site_cannot_sign_a_user_out(api: Api) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    response = await api.ask("viewer", "POST", "/auth/logout", headers=foreign)
    assert response.status_code == 403
    assert (await api.ask("viewer", "GET", "/api/v1/me")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_a_write_with_a_cookie_needs_the_origin_of_the_console(
    api: Api, headers: dict[str, str], status: int
) -> None:
    path = f"/api/v1/organizations/{api.org}"
    body = {"name": "Acme"}
    response = await api.ask("org_admin", "PATCH", path, body, headers=headers)
    assert response.status_code == status
    # A token is accepted from any origin, because another site cannot make a browser send it.
    assert (await api.ask("token", "PATCH", path, body, headers=headers)).status_code == 200


async def test_an_invalid_cookie_is_passed_over_and_the_next_credential_tried(api: Api) -> None:
    both = {"Cookie": f"{COOKIE}=gone", **api.credentials["token"]}
    assert (await api.ask(both, "GET", "/api/v1/me")).status_code == 200


@pytest.mark.parametrize("text", ["leadline_", "leadline_x", "leadline_agent_" + "A" * 43, "a.b.c"])
async def test_an_invalid_token_is_a_401(api: Api, text: str) -> None:
    bearer = {"Authorization": f"Bearer {text}"}
    assert (await api.ask(bearer, "GET", "/api/v1/me")).status_code == 401


async def test_sign_ins_of_a_client_are_limited_per_minute(api: Api, ann: str) -> None:
    api = configured(api, login_rate_limit_per_minute=3)
    for _ in range(3):
        assert (await log_in(api, ann, "wrong")).status_code == 401
    for _ in range(2):
        response = await log_in(api, ann)
        assert response.status_code == 429
        assert await response.get_json() == {"error": "rate_limited"}
        assert 1 <= int(response.headers["Retry-After"]) <= 20


async def test_an_invalid_body_does_not_count_as_a_sign_in(api: Api, ann: str) -> None:
    api = configured(api, login_rate_limit_per_minute=1)
    for _ in range(3):
        assert (await api.ask("nobody", "POST", LOGIN, {"username": 1})).status_code == 400
    assert (await log_in(api, ann)).status_code == 200


async def test_tries_are_counted_by_client_and_not_by_proxy(api: Api, ann: str) -> None:
    """The test client has no address of its own, so the proxy's is given."""
    api = configured(
        api, login_rate_limit_per_minute=1, trusted_proxies=(ip_network("10.0.0.0/8"),)
    )

    async def status(forwarded: str) -> int:
        response = await api.client.post(
            LOGIN,
            json={"username": ann, "password": PASSWORD},
            headers={"X-Forwarded-For": forwarded},
            scope_base={"client": ("10.0.0.1", 1)},
        )
        return int(response.status_code)

    assert await status("192.0.2.1") == 200
    assert await status("192.0.2.1") == 429
    assert await status("192.0.2.2") == 200
    # Addresses that the client adds before the entry of the proxy are ignored.
    assert await status("192.0.2.9, 192.0.2.1") == 429
    assert await status("2001:db8:1:2::1") == 200
    assert await status("2001:db8:1:2:ffff::2") == 429
    assert await status("2001:db8:1:3::1") == 200


async def test_disabled_passwords_have_no_sign_in_route(api: Api, ann: str) -> None:
    api = configured(api, local_enabled=False)
    assert (await log_in(api, ann)).status_code == 404
    config = await (await api.ask("nobody", "GET", "/auth/config")).get_json()
    assert config == {"local": False, "oidc": False, "password_reset": False}


async def test_a_password_changed_during_its_check_gives_no_session(
    api: Api, ann: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = api.context.passwords
    matches = passwords.matches

    async def slowly(password: str, stored: str | None) -> bool:
        found = await matches(password, stored)
        async with api.pool.transaction("meanwhile") as tx:
            row = await users_queries.select_user_by_email(tx, ann)
            assert row is not None
            await users.set_password(tx, row.id, await passwords.hash("another one"))
        return found

    monkeypatch.setattr(passwords, "matches", slowly)
    assert (await log_in(api, ann)).status_code == 401
