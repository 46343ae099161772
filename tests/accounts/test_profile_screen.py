"""The profile screen: secrets that are displayed once, and refusals at their fields."""

import html
import re
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from leadline.http.accounts.console.profile import qr_code
from leadline.http.auth.passwords import Passwords
from leadline.storage.accounts.rules.totp import code_of, step_at
from tests.accounts.test_second_factor_api import MARA, PASSWORD, code, cookie_of, log_in
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def send(api: Api, whose: dict[str, str], **form: str) -> tuple[int, str, Any]:
    data = urlencode(form).encode()
    answer = await api.ask(whose, "POST", "/profile", data=data, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True), answer.headers


async def sign_in(api: Api, **form: str) -> Any:
    data = urlencode(form).encode()
    return await api.ask("nobody", "POST", "/sign-in", data=data, headers=FORM)


async def shown(api: Api, session: dict[str, str]) -> str:
    answer = await api.ask(session, "GET", "/profile")
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


async def test_a_second_factor_is_set_up_required_and_disabled(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session = await cookie_of(api)
    assert "Not enabled: only" in await shown(api, session)
    status, page, headers = await send(api, session, act="enrol")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    found = re.search(r'Secret: <code class="mono">([A-Z2-7]+)</code>', page)
    assert found is not None
    secret = found[1]
    # It is on no page that can be asked for again.
    assert secret not in await shown(api, session)
    status, page, _ = await send(api, session, act="enable", code="000 000")
    assert status == 400
    assert "wrong code" in page
    status, page, _ = await send(api, session, act="enable", code=code(secret, -1))
    codes = re.findall(r"[a-z2-7]{4}(?:-[a-z2-7]{4}){3}", page)
    assert (status, len(codes)) == (200, 10)
    assert codes[0] not in await shown(api, session)

    body = {"email": MARA, "password": PASSWORD}
    answer = await api.ask(
        "nobody", "POST", "/sign-in", data=urlencode(body).encode(), headers=FORM
    )
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 401
    assert "This account uses two-factor" in html.unescape(page)
    assert '<details class="inline" open>' in page
    body["code"] = code(secret)
    answer = await api.ask(
        "nobody", "POST", "/sign-in", data=urlencode(body).encode(), headers=FORM
    )
    assert answer.status_code == 303

    status, page, _ = await send(api, session, act="disable", password="wrong")
    assert status == 400
    assert "Password: is not the password of this account." in page
    status, _, headers = await send(api, session, act="disable", password=PASSWORD)
    assert (status, headers["Location"]) == (303, "/profile?done=disable")
    assert (await log_in(api)).status_code == 200


async def test_the_password_is_changed_when_it_is_typed_twice(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session, other = await cookie_of(api), await cookie_of(api)
    new = "another password of the tests"
    typed = {"act": "password", "current": PASSWORD, "new": new, "again": new + "x"}
    status, page, _ = await send(api, session, **typed)
    assert status == 400
    assert "New password: does not match its repetition." in page
    assert new not in page
    status, page, _ = await send(api, session, **{**typed, "again": new, "current": "wrong"})
    assert status == 400
    assert "Current password: is not the password of this account." in page
    assert (await send(api, session, **{**typed, "again": new}))[0] == 303
    assert (await log_in(api, password=new)).status_code == 200
    assert (await api.ask(other, "GET", "/api/v1/me")).status_code == 401


async def test_another_session_is_ended_and_one_s_own_is_marked(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session, other = await cookie_of(api), await cookie_of(api)
    page = await shown(api, session)
    (uid,) = re.findall(r'name="session" value="([0-9a-f-]{36})"', page)
    assert page.count("this session") == 1
    assert (await send(api, session, act="end", session=uid))[0] == 303
    assert (await api.ask(other, "GET", "/api/v1/me")).status_code == 401
    status, page, _ = await send(api, session, act="end", session=uid)
    assert status == 400
    assert "The session has already ended." in page


def test_the_qr_code_is_plain_svg_that_the_policy_lets_through() -> None:
    drawn = qr_code("otpauth://totp/x?secret=" + code_of(b"x" * 20, step_at(FROZEN_NOW)))
    root = ElementTree.fromstring(str(drawn))
    assert root.tag == "svg"
    for element in root.iter():
        assert not {"style", "class", "onload", "href"} & set(element.attrib)
        assert element.tag in {"svg", "path", "rect", "g"}
