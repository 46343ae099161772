"""The path prefix of the installation: its values, the paths of templates, and custom domains."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

import leadline
from leadline.http.server import health
from leadline.http.server.route_table import ROUTES
from leadline.http.wire import own_paths
from leadline.http.wire.custom_domains import (
    _ANYWHERE,
    _BELOW,
    _BELOW_PREFIX,
    _PUSHES,
    _WITHOUT_PREFIX,
    PageDomains,
)
from leadline.http.wire.local_credentials import cookie_of
from leadline.http.wire.options import HttpOptions
from leadline.http.wire.own_paths import ATTRIBUTES, BasePath, with_base_path
from leadline.http.wire.session_cookie import clear_cookie, set_cookie
from leadline.probes.senders.public_address import (
    LONGEST,
    TAKEN,
    base_path_fault,
    outside_base_path,
)

HTTP: Final = Path(leadline.__file__).parent / "http"
BASE: Final = "/leadline"


@pytest.mark.parametrize("text", ["", "/leadline", "/tools/leadline-2", "/~x/_y/a.b"])
def test_a_prefix_is_accepted(text: str) -> None:
    assert base_path_fault(text) is None


@given(st.text(max_size=LONGEST + 20))
def test_an_accepted_prefix_is_safe_in_urls_headers_and_html(text: str) -> None:
    if text == "" or base_path_fault(text) is not None:
        return
    assert re.fullmatch(r"(/[\w~-][\w.~-]*)+", text, re.ASCII)
    assert len(text) <= LONGEST
    assert text.split("/")[1] not in TAKEN


@pytest.mark.parametrize(
    "text",
    [
        *(
            "leadline",
            "/",
            "/leadline/",
            "//x",
            "/a//b",
            "/..",
            "/a/.b",
            "/a b",
            "/a\n",
            "/ä",
            "/a;b",
        ),
        f"/{'a' * LONGEST}",
        *(f"/{name}/x" for name in sorted(TAKEN)),
    ],
)
def test_a_prefix_is_refused(text: str) -> None:
    assert base_path_fault(text) is not None


def test_names_of_paths_without_the_prefix_are_taken() -> None:
    paths = (*_BELOW, *_BELOW_PREFIX, *_ANYWHERE, *_WITHOUT_PREFIX, *_PUSHES)
    served = [route.path for route in (*ROUTES, *health.ROUTES)]
    assert {path.split("/")[1] for path in (*paths, *served)} - {""} == TAKEN


@pytest.mark.parametrize("address", ["", "https://x.example/leadline", "http://x:81/leadline/"])
def test_a_public_address_with_the_prefix_is_accepted(address: str) -> None:
    assert outside_base_path(address, BASE) is None


@pytest.mark.parametrize("address", ["https://x.example", "https://x.example/leadline/a"])
def test_a_public_address_names_the_prefix(address: str) -> None:
    assert outside_base_path(address, "") is None
    assert "server.base_path" in (outside_base_path(address, BASE) or "")


def test_templates_have_paths_only_in_attributes_that_get_the_prefix() -> None:
    found = {
        name
        for path in HTTP.rglob("*.html")
        for name in re.findall(r"""[\s<]([a-z-]+)=["']/[a-z{]""", path.read_text())
    }
    # A value of a form is a path of the installation, and the redirect after it gets the prefix.
    assert found <= {*ATTRIBUTES, "value"}, found


def test_templates_quote_attributes_with_double_quotes() -> None:
    names = "|".join(ATTRIBUTES)
    for path in HTTP.rglob("*.html"):
        assert not re.search(rf"\s(?:{names})=[^\"]", path.read_text()), path


def test_scripts_and_style_sheets_have_no_path() -> None:
    for path in (HTTP / "ui/static").iterdir():
        if path.suffix == ".js":
            text = path.read_text().replace('endsWith("/sign-in")', "")
            assert not re.search(r"""["'`]/[a-z$]""", text), path
        if path.suffix == ".css":
            assert not re.search(r"""url\(["']?/""", path.read_text()), path


@given(st.text(), st.sampled_from(ATTRIBUTES))
def test_only_attributes_of_the_template_get_the_prefix(text: str, name: str) -> None:
    template = Environment(autoescape=True).from_string(
        f'<p title="{{{{ text }}}}">{{{{ text }}}}<a {name}="/x">b</a>'
    )
    hostile = f' {name}="/x" {text}'
    html = template.render(text=hostile)
    token = own_paths._current.set(BASE)
    try:
        assert with_base_path(html) == html.replace(f'<a {name}="/x"', f'<a {name}="{BASE}/x"')
    finally:
        own_paths._current.reset(token)
    assert with_base_path(html) == html


class _Domains:
    def known_slug_of(self, host: str) -> str | None:
        return {"status.example.com": "team"}.get(host)

    async def slug_of(self, host: str) -> str | None:
        return self.known_slug_of(host)


async def _asked(
    path: str, host: str, base: str = BASE, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, str, list[tuple[bytes, bytes]]]:
    """Returns the status, the path that reached the application, and the headers."""
    reached, sent = "", []

    async def app(scope: dict[str, Any], _receive: Any, send: Any) -> None:
        nonlocal reached
        reached = scope["path"]
        await send({"type": "http.response.start", "status": 200, "headers": list(headers)})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    domains: Any = _Domains()
    front = BasePath(PageDomains(app, domains, {"apps.example.com"}, base), base)
    scope = {"type": "http", "path": path, "headers": [(b"host", host.encode())]}
    await front(scope, None, send)
    return sent[0]["status"], reached, sent[0]["headers"]


@pytest.mark.parametrize(
    ("host", "path", "reached"),
    [
        ("apps.example.com", "/leadline", "/"),
        ("apps.example.com", "/leadline/", "/"),
        ("apps.example.com", "/leadline/monitors/1", "/monitors/1"),
        ("apps.example.com", "/leadline/leadline/x", "/leadline/x"),
        ("apps.example.com", "/leadlines", ""),
        ("apps.example.com", "/", ""),
        ("apps.example.com", "/static/public.css", ""),
        ("apps.example.com", "/metrics", "/metrics"),
        ("apps.example.com", "/api/v1/public/push/x", "/api/v1/public/push/x"),
        ("apps.example.com", "/ping/x", "/ping/x"),
        ("other.example.com", "/status/team", ""),
        ("status.example.com", "/", "/status/team"),
        ("status.example.com", "/history", "/status/team/history"),
        ("status.example.com", "/static/public.css", "/static/public.css"),
        ("status.example.com", "/leadline/", ""),
        ("status.example.com", "/monitors/1", ""),
    ],
)
async def test_the_console_has_the_prefix_and_custom_domains_have_none(
    host: str, path: str, reached: str
) -> None:
    status, found, _ = await _asked(path, host)
    assert (status, found) == (200 if reached else 404, reached)


async def test_redirects_and_cookies_get_the_prefix() -> None:
    session = set_cookie(HttpOptions(), "s", 60).encode()
    given_ = (
        (b"Location", b"/sign-in"),
        (b"location", b"https://x.example/"),
        (b"location", b"//x.example/"),
        # The user copied the path of the next page from the browser.
        (b"location", b"/leadline/monitors"),
        (b"set-cookie", session),
        (b"set-cookie", b"a=b; Path=/auth; HttpOnly"),
        (b"set-cookie", b"__Host-a=b; Path=/; Secure"),
    )
    _, _, headers = await _asked("/leadline/x", "apps.example.com", headers=given_)
    assert [value for _, value in headers] == [
        b"/leadline/sign-in",
        b"https://x.example/",
        b"//x.example/",
        b"/leadline/monitors",
        session.replace(b"Path=/;", b"Path=/leadline;"),
        b"a=b; Path=/leadline/auth; HttpOnly",
        b"__Host-a=b; Path=/; Secure",
    ]
    _, _, headers = await _asked("/", "status.example.com", headers=given_)
    assert tuple(headers) == given_


async def test_the_end_of_a_cookie_also_ends_that_of_the_whole_host() -> None:
    end = clear_cookie(HttpOptions()).encode()
    given_ = ((b"set-cookie", end), (b"set-cookie", b"a=; Path=/auth; Max-Age=0; HttpOnly"))
    _, _, headers = await _asked("/leadline/x", "apps.example.com", headers=given_)
    assert [value for _, value in headers] == [
        end.replace(b"Path=/;", b"Path=/leadline;"),
        b"a=; Path=/leadline/auth; Max-Age=0; HttpOnly",
        end,
    ]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        # As browsers order them: the longest path first.
        ("leadline_session=new; leadline_session=old", "new"),
        ("theme=dark;leadline_session=new", "new"),
        ('b@d[]=1; leadline_session="new"', "new"),
        ("xleadline_session=old", ""),
        ("", ""),
    ],
)
def test_the_first_cookie_of_a_name_counts(header: str, found: str) -> None:
    assert cookie_of(header, "leadline_session") == found
