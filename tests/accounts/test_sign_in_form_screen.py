"""The sign-in page leads nowhere but into our own pages, and is as slow to guess at as the API."""

from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quart import Response

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.own_paths import local_path
from leadline.http.wire.route import FORM_FIELDS_MOST
from tests.support.app.cast import Api

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PASSWORD = "a password of the tests"
ELSEWHERE = [
    "https://elsewhere.test/",
    "//elsewhere.test/",
    "///elsewhere.test",
    "/\\elsewhere.test",
    "\\\\elsewhere.test",
    "/\t/elsewhere.test",
    "/\n/elsewhere.test",
    " //elsewhere.test",
    "javascript:alert(1)",
    "elsewhere.test",
    "",
    "/ok\r\nSet-Cookie: a=b",
]


@pytest.mark.parametrize("asked", ELSEWHERE)
def test_an_address_of_another_site_is_replaced_by_the_root(asked: str) -> None:
    assert local_path(asked) == "/"


@given(
    st.text(alphabet="/\\:@?#.\t\r\n ahtps%2f", max_size=12).map(lambda tail: "/" + tail)
    | st.text(max_size=30)
)
def test_the_path_to_go_on_to_is_always_of_our_own_site(asked: str) -> None:
    path = local_path(asked)
    assert path.startswith("/")
    # As browsers read it: tabs and line ends are dropped, and a backslash is a slash.
    read = path.translate({9: None, 10: None, 13: None, 92: "/"})
    assert urlsplit(urljoin("http://own.test/sign-in", read)).netloc == "own.test"
    assert not read.startswith("//")


@pytest.mark.parametrize("path", ["/", "/projects/x?show=notup&q=a", "/monitors/x#latency"])
def test_a_path_of_ours_is_kept(path: str) -> None:
    assert local_path(path) == path


async def sign_in(api: Api, email: str, password: str, to: str = "/", **headers: str) -> Response:
    body = urlencode({"email": email, "password": password, "next": to}).encode()
    return await api.ask("nobody", "POST", "/sign-in", data=body, headers={**FORM, **headers})


async def somebody(api: Api, passwords: Passwords) -> None:
    await api.new_user("mara@example.com", await passwords.hash(PASSWORD))


async def test_a_right_password_creates_a_session_and_redirects(
    api: Api, passwords: Passwords
) -> None:
    await somebody(api, passwords)
    answer = await sign_in(api, " Mara@example.com ", PASSWORD, "/monitors/x")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/monitors/x")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    pair = cookie.partition(";")[0]
    me = await api.ask({"Cookie": pair}, "GET", "/api/v1/me")
    assert (await me.get_json())["user"]["email"] == "mara@example.com"


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("mara@example.com", "not-that-one"),
        ("nobody@example.com", PASSWORD),
        ("mara@example.com", "x" * 5_000),
        ("m" * 300, PASSWORD),
        ("", ""),
    ],
)
async def test_a_wrong_password_is_shown_at_its_field_with_the_address(
    api: Api, passwords: Passwords, email: str, password: str
) -> None:
    await somebody(api, passwords)
    answer = await sign_in(api, email, password, "/monitors/x")
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 401
    assert "E-mail or password is wrong." in page
    assert f'value="{email[:254]}"' in page
    assert 'name="next" value="/monitors/x"' in page
    assert password not in page or not password
    assert "Set-Cookie" not in answer.headers


async def test_sign_ins_count_together_with_those_of_the_api(
    api: Api, passwords: Passwords
) -> None:
    await somebody(api, passwords)
    most = api.context.options.login_rate_limit_per_minute
    for _ in range(most // 2):
        await api.ask("nobody", "POST", "/auth/local/login", {"username": "a@b", "password": "x"})
    for _ in range(most - most // 2):
        assert (await sign_in(api, "mara@example.com", "wrong")).status_code == 401
    answer = await sign_in(api, "mara@example.com", PASSWORD)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1
    assert "Try again in" in await answer.get_data(as_text=True)


async def test_another_site_cannot_sign_a_user_in(api: Api, passwords: Passwords) -> None:
    await somebody(api, passwords)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.test"}):
        answer = await sign_in(api, "mara@example.com", PASSWORD, **headers)
        assert answer.status_code == 403
        assert "Set-Cookie" not in answer.headers
        body = {"username": "mara@example.com", "password": PASSWORD}
        answer = await api.ask("nobody", "POST", "/auth/local/login", body, headers=headers)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (403, False)
        answer = await api.ask("nobody", "POST", "/auth/local/login", body)
        assert (answer.status_code, "Set-Cookie" in answer.headers) == (200, True)


async def test_an_invalid_form_is_refused_with_a_page(api: Api) -> None:
    for data, headers, status in [
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"email=%FF", FORM, 400),
        (b"email=a%00b&password=x", FORM, 400),
        (b"x" * 70_000, FORM, 413),
        (b"&".join(b"a=1" for _ in range(FORM_FIELDS_MOST + 1)), FORM, 400),
    ]:
        answer = await api.ask("nobody", "POST", "/sign-in", data=data, headers=headers)
        assert answer.status_code == status, data[:20]
        assert (await answer.get_data(as_text=True)).startswith("<!doctype html>")


async def test_static_files_are_cached_permanently_under_their_version_only(api: Api) -> None:
    page = await (await api.ask("nobody", "GET", "/sign-in")).get_data(as_text=True)
    url = page.partition('stylesheet" href="')[2].partition('"')[0]
    answer = await api.ask("nobody", "GET", url)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["Cache-Control"]
    tag = answer.headers["ETag"]
    again = await api.ask("nobody", "GET", url, headers={"If-None-Match": f'"x", W/{tag}'})
    assert (again.status_code, await again.get_data()) == (304, b"")
    other = await api.ask("nobody", "GET", url.partition("?")[0] + "?v=older")
    assert other.status_code == 200
    assert "immutable" not in other.headers["Cache-Control"]
    changed = await api.ask("nobody", "GET", url, headers={"If-None-Match": '"older"'})
    assert changed.status_code == 200


@pytest.mark.parametrize("name", ["nothing.css", "..%2frender.py", "%2e%2e", "render.py", "a%00"])
async def test_no_other_file_is_served(api: Api, name: str) -> None:
    assert (await api.ask("nobody", "GET", f"/static/{name}")).status_code == 404
