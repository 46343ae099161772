"""The sign-in policy of global admins: the rules that it sets, and the access that it removes."""

from typing import Any
from urllib.parse import urlencode

from leadline.http.auth.passwords import Passwords
from leadline.storage.accounts.rules.access import Role
from leadline.storage.accounts.tables import users
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool
from tests.accounts.test_second_factor_api import MARA, PASSWORD, code, cookie_of, error
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import call

PATH = "/settings/auth-policy"
AT_FIRST = {
    "min_password_len": 10,
    "session_ttl_seconds": 604_800,
    "require_totp": "none",
    "allowed_email_domains": [],
}


async def put(api: Api, status: int = 200, **body: Any) -> Any:
    return await call(api, "PUT", PATH, body, status, who="global_admin")


async def test_the_policy_is_returned_and_can_be_written_back(api: Api) -> None:
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, **AT_FIRST}
    whole: dict[str, Any] = {
        "min_password_len": 14,
        "session_ttl_seconds": 3_600,
        "require_totp": "admins",
        "allowed_email_domains": ["example.com"],
    }
    assert await put(api, **whole) == {"configured": True, **whole}
    again = await call(api, "GET", PATH, who="global_admin")
    assert await put(api, **again) == again
    assert await put(api) == {"configured": True, **AT_FIRST}
    wrong = await put(api, 400, min_password_len=7)
    assert wrong == {"error": "min_password_len: must be 8 to 128 characters"}
    wrong = await put(api, 400, allowed_email_domains=["a.b", "@c"])
    assert wrong["error"].startswith("allowed_email_domains[1]: ")


async def test_it_governs_passwords_domains_and_how_long_a_session_is(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    await put(api, min_password_len=30, session_ttl_seconds=3_600, allowed_email_domains=["x.test"])
    body: dict[str, Any] = {"username": MARA, "password": PASSWORD}
    answer = await api.ask("nobody", "POST", "/auth/local/login", body)
    assert "; Max-Age=3600;" in answer.headers["Set-Cookie"]
    assert await api.rows(
        "select extract(epoch from s.expires_at - s.created_at)::int from sessions s"
        " join users u on u.id = s.user_id where u.email = %(mara)s",
        mara=MARA,
    ) == [(3_600,)]
    session = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
    body = {"current_password": PASSWORD, "new_password": "x" * 29}
    answer = await api.ask(session, "POST", "/api/v1/me/password", body)
    assert await error(answer) == (400, "new_password: must be at least 30 characters")
    people = "/admin/users"
    made = {"email": "a@x.test", "password": "x" * 29}
    assert await call(api, "POST", people, made, 400, who="global_admin") == {
        "error": "password: must be at least 30 characters"
    }
    made = {"email": "a@y.test"}
    assert await call(api, "POST", people, made, 400, who="global_admin") == {
        "error": "email: must have a domain that the sign-in policy allows"
    }
    await call(api, "POST", people, {"email": "a@X.test"}, 201, who="global_admin")


async def test_a_user_without_the_required_second_factor_reaches_only_its_setup(
    api: Api, passwords: Passwords
) -> None:
    await api.new_user(MARA, await passwords.hash(PASSWORD))
    session = await cookie_of(api)
    await put(api, require_totp="all")
    assert await error(await api.ask(session, "GET", "/api/v1/organizations")) == (403, "forbidden")
    assert await error(await api.ask(session, "GET", "/api/v1/me/sessions")) == (403, "forbidden")
    answer = await api.ask(session, "GET", "/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/profile")
    page = await (await api.ask(session, "GET", "/profile")).get_data(as_text=True)
    assert "This account needs two-factor authentication" in page
    assert (await api.ask(session, "GET", "/api/v1/me")).status_code == 200
    # A token is exempt, because it cannot enter a code.
    assert (await api.ask("token", "GET", "/api/v1/me")).status_code == 200
    enrolled = await (await api.ask(session, "POST", "/api/v1/me/totp/enroll")).get_json()
    body = {"code": code(enrolled["secret"])}
    answer = await api.ask(session, "POST", "/api/v1/me/totp/enable", body)
    assert answer.status_code == 200
    assert (await api.ask(session, "GET", "/api/v1/organizations")).status_code == 200


async def test_no_screen_shows_projects_before_the_required_second_factor(
    api: Api, passwords: Passwords
) -> None:
    uid = await api.new_user(MARA, await passwords.hash(PASSWORD))
    async with api.pool.transaction("join") as tx:
        row = await users.select_user(tx, uid)
        assert row is not None
        await users.insert_membership(tx, api.orgs["acme"][0], uid, row.id, None, Role.EDITOR)
    session = await cookie_of(api)
    paths = {"/profile": 200, "/no-such-page": 404}
    for policy, is_shown in (("none", True), ("all", False)):
        await put(api, require_totp=policy)
        for path, status in paths.items():
            answer = await api.ask(session, "GET", path, headers={"Accept": "text/html"})
            text = await answer.get_data(as_text=True)
            assert answer.status_code == status
            assert (str(api.project) in text, "acme shop" in text) == (is_shown, is_shown)


async def test_of_admins_alone_it_is_asked_of_those_of_organizations_too(
    api: Api, passwords: Passwords
) -> None:
    uid = await api.new_user(MARA, await passwords.hash(PASSWORD))
    session = await cookie_of(api)
    await put(api, require_totp="admins")
    assert (await api.ask(session, "GET", "/api/v1/organizations")).status_code == 200
    async with api.pool.transaction("promote") as tx:
        row = await users.select_user(tx, uid)
        assert row is not None
        await users.insert_membership(tx, api.orgs["acme"][0], uid, row.id, None, Role.ORG_ADMIN)
    assert await error(await api.ask(session, "GET", "/api/v1/organizations")) == (403, "forbidden")


async def test_a_second_factor_that_cannot_be_stored_is_not_required(
    pool: Pool, passwords: Passwords
) -> None:
    async with open_api(pool, FROZEN_NOW, passwords, keyring=Keyring(None)) as api:
        wrong = await put(api, 400, require_totp="all")
        assert wrong == {"error": "encryption_key_missing"}
        found = await call(api, "GET", PATH, who="global_admin")
        assert found["configured"] is False


async def test_the_form_states_what_happens_to_who_has_no_second_factor(
    api: Api, passwords: Passwords
) -> None:
    uid = await api.new_user(MARA, await passwords.hash(PASSWORD))
    async with api.pool.transaction("promote") as tx:
        row = await users.select_user(tx, uid)
        assert row is not None
        await users.set_global_admin(tx, row.id, admin=True)
    session = await cookie_of(api)
    form = {"Content-Type": "application/x-www-form-urlencoded", **session}

    async def save(**typed: str) -> tuple[int, str]:
        whole = {"min_password_len": "12", "session_ttl_seconds": "7200", **typed}
        data = urlencode(whole).encode()
        answer = await api.ask("nobody", "POST", "/admin/sign-in-policy", data=data, headers=form)
        return answer.status_code, await answer.get_data(as_text=True)

    assert (await save(require_totp="none"))[0] == 303
    for required in ("admins", "all"):
        status, page = await save(require_totp=required)
        assert status == 200
        assert "After the save you can open only your profile" in page
        assert 'name="confirmed" value="on"' in page
        assert f'<option value="{required}" selected>' in page
        found = await call(api, "GET", PATH, who="global_admin")
        assert found["require_totp"] == "none"
    assert (await save(require_totp="all", min_password_len="7", confirmed="on"))[0] == 400
    assert (await save(require_totp="all", confirmed="on"))[0] == 303
    assert await error(await api.ask(session, "GET", "/api/v1/organizations")) == (403, "forbidden")
    enrolled = await (await api.ask(session, "POST", "/api/v1/me/totp/enroll")).get_json()
    body = {"code": code(enrolled["secret"])}
    assert (await api.ask(session, "POST", "/api/v1/me/totp/enable", body)).status_code == 200
    assert (await save(require_totp="admins"))[0] == 303


async def test_the_form_of_the_console_sets_it(api: Api) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    typed = {
        "require_totp": "none",
        "min_password_len": "12",
        "session_ttl_seconds": "7200",
        "allowed_email_domains": "Example.com\nb.test, c.test",
    }
    path = "/admin/sign-in-policy"
    data = urlencode({**typed, "min_password_len": "7"}).encode()
    answer = await api.ask("global_admin", "POST", path, data=data, headers=form)
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert "Minimum password length: must be 8 to 128 characters." in page
    assert "b.test, c.test" in page
    data = urlencode(typed).encode()
    answer = await api.ask("global_admin", "POST", path, data=data, headers=form)
    assert answer.status_code == 303
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {
        "configured": True,
        "min_password_len": 12,
        "session_ttl_seconds": 7_200,
        "require_totp": "none",
        "allowed_email_domains": ["example.com", "b.test", "c.test"],
    }
    page = await (await api.ask("global_admin", "GET", path)).get_data(as_text=True)
    assert "Session lifetime: 2" in page
