"""The second factor in the API: enrolled, enabled, required at sign-in and disabled."""

import base64
from typing import Any

from leadline.http.auth.passwords import Passwords
from leadline.storage.accounts.rules.totp import code_of, step_at
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api

PASSWORD = "a password of the tests"
MARA = "mara@example.com"


async def log_in(api: Api, totp: str | None = None, password: str = PASSWORD) -> Any:
    body = {"username": MARA, "password": password} | ({} if totp is None else {"totp": totp})
    return await api.ask("nobody", "POST", "/auth/local/login", body)


async def cookie_of(api: Api, totp: str | None = None) -> dict[str, str]:
    answer = await log_in(api, totp)
    assert answer.status_code == 200, await answer.get_data()
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


async def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, (await answer.get_json())["error"]


def code(secret: str, aside: int = 0) -> str:
    raw = base64.b32decode(secret + "=" * (-len(secret) % 8))
    return code_of(raw, step_at(FROZEN_NOW) + aside)


async def enabled(api: Api, passwords: Passwords) -> tuple[dict[str, str], str, list[str]]:
    """A session of a person with a second factor, its secret and its recovery codes."""
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session = await cookie_of(api)
    answer = await api.ask(session, "POST", "/api/v1/me/totp/enroll")
    enrolled = await answer.get_json()
    assert enrolled["uri"].startswith("otpauth://totp/Leadline%3Amara%40example.com?secret=")
    assert enrolled["secret"] in enrolled["uri"]
    body = {"code": code(enrolled["secret"], -1)}
    answer = await api.ask(session, "POST", "/api/v1/me/totp/enable", body)
    codes = (await answer.get_json())["recovery_codes"]
    assert len(set(codes)) == 10
    return session, enrolled["secret"], codes


async def test_a_sign_in_needs_the_password_and_the_code(api: Api, passwords: Passwords) -> None:
    session, secret, codes = await enabled(api, passwords)
    me = await (await api.ask(session, "GET", "/api/v1/me")).get_json()
    assert me["totp_enabled"] is True
    assert await error(await log_in(api)) == (401, "totp_required")
    # A caller without the password does not learn whether a second factor exists.
    assert await error(await log_in(api, password="wrong")) == (401, "unauthorized")
    assert await error(await log_in(api, "000000")) == (401, "unauthorized")
    await cookie_of(api, code(secret))
    assert await error(await log_in(api, code(secret))) == (401, "unauthorized")
    await cookie_of(api, codes[0].upper().replace("-", " "))
    assert await error(await log_in(api, codes[0])) == (401, "unauthorized")


async def test_an_enabled_factor_is_not_enrolled_again_and_disabled_with_the_password(
    api: Api, passwords: Passwords
) -> None:
    session, _, _ = await enabled(api, passwords)
    answer = await api.ask(session, "POST", "/api/v1/me/totp/enroll")
    assert await error(answer) == (409, "totp_enabled")
    path = "/api/v1/me/totp/disable"
    answer = await api.ask(session, "POST", path, {"password": "wrong"})
    assert await error(answer) == (400, "password: is not the password of this account")
    assert await error(await log_in(api)) == (401, "totp_required")
    assert (await api.ask(session, "POST", path, {"password": PASSWORD})).status_code == 204
    await cookie_of(api)


async def test_a_wrong_first_code_does_not_enable_the_factor(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session = await cookie_of(api)
    path = "/api/v1/me/totp/enable"
    answer = await api.ask(session, "POST", path, {"code": "000000"})
    expected = (400, "code: no enrolment is pending")
    assert await error(answer) == expected
    await api.ask(session, "POST", "/api/v1/me/totp/enroll")
    answer = await api.ask(session, "POST", path, {"code": "no code"})
    assert await error(answer) == (400, "code: wrong code")
    await cookie_of(api)


async def test_the_secret_is_sealed_and_codes_are_hashed(api: Api, passwords: Passwords) -> None:
    _, secret, codes = await enabled(api, passwords)
    stored = await api.rows("select u::text from users u")
    stored += await api.rows("select c::text from recovery_codes c")
    text = str(stored)
    assert secret not in text
    assert not any(each in text for each in codes)


async def test_a_second_factor_needs_an_encryption_key(pool: Pool, passwords: Passwords) -> None:
    async with open_api(pool, FROZEN_NOW, passwords, keyring=Keyring(None)) as api:
        await api.new_user(MARA, await passwords.hash(PASSWORD))
        session = await cookie_of(api)
        answer = await api.ask(session, "POST", "/api/v1/me/totp/enroll")
        assert await error(answer) == (400, "encryption_key_missing")
