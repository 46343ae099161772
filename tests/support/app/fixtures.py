"""The fixtures of the tests of HTTP and of the console, and the world of those of storage.

`tests/conftest.py` registers them for every test, so what a process of rules does not need is
imported in the fixture that needs it.
"""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.support.processes.ports import free_port
from tests.support.run.kinds import is_walk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

    from leadline.http.auth.passwords import Passwords
    from leadline.storage.engine.pools import Pool
    from tests.support.app.cast import Api
    from tests.support.app.gating import Gated
    from tests.support.processes.daemon_process import Daemon
    from tests.support.worlds.world import World

PASSWORD = "a password of the tests"
Open = Callable[..., "Page"]


@pytest.fixture
async def world(dsn: str) -> "AsyncIterator[World]":
    """One organization, one project, one editor, and a clock that the test sets."""
    from tests.support.worlds.world import small_world

    async with small_world(dsn) as made:
        yield made


@pytest.fixture
async def api(pool: "Pool", passwords: "Passwords") -> "AsyncIterator[Api]":
    """The application on the test's database, with a client that can act as each of the cast."""
    from tests.conftest import FROZEN_NOW
    from tests.support.app.cast import open_api

    async with open_api(pool, FROZEN_NOW, passwords) as made:
        yield made


@pytest.fixture
async def gated(dsn: str, passwords: "Passwords") -> "AsyncIterator[Gated]":
    """As `api`, with a clock that the test sets; at the end it evaluates every stored decision
    again.
    """
    from tests.support.app.gating import PLENTY, open_gated

    async with open_gated(dsn, passwords, PLENTY) as made:
        yield made


class Target:
    """A web server that can be stopped, and started again on its port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@pytest.fixture
def target() -> Iterator[Target]:
    server = Target()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _walked() -> "Iterator[Daemon]":
    with _signed_in() as running:
        yield running


@contextmanager
def _signed_in() -> "Iterator[Daemon]":
    from tests.support.processes.daemon_process import daemon

    # Many tests sign in from one address within a minute.
    with daemon(LEADLINE_LOCAL__LOGIN_RATE_LIMIT_PER_MINUTE="600") as running:
        running.start()
        running.sign_in()
        yield running


@pytest.fixture(scope="module")
def leadline(request: pytest.FixtureRequest) -> "Iterator[Daemon]":
    """One daemon per file, or one for the files of WALKS; each test creates its own monitors."""
    if is_walk(request.path):
        yield request.getfixturevalue("_walked")
        return
    with _signed_in() as running:
        yield running


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, leadline: "Daemon") -> str:
    """Returns the id of the project of a new installation; for a file of WALKS, of a new one."""
    (organization,) = leadline.api("GET", "/organizations")
    there = f"/organizations/{organization['id']}/projects"
    if is_walk(request.path):
        slug = request.path.stem.replace("_", "-")
        return str(leadline.api("POST", there, {"slug": slug, "name": "Default"})["id"])
    (found,) = leadline.api("GET", there)
    return str(found["id"])


@pytest.fixture(scope="module")
def viewer(request: pytest.FixtureRequest, leadline: "Daemon") -> str:
    """Returns the cookie of a viewer of the organization."""
    (organization,) = leadline.api("GET", "/organizations")
    email = f"viewer@{request.path.stem.replace('_', '-')}.example.com"
    account = {"email": email, "password": PASSWORD}
    made = leadline.api("POST", "/admin/users", account)
    leadline.api(
        "POST",
        f"/organizations/{organization['id']}/members",
        {"user_id": made["id"], "role": "viewer"},
    )
    mine, password = leadline.cookie, leadline.password
    leadline.password = PASSWORD
    try:
        leadline.sign_in(email)
        return leadline.cookie
    finally:
        leadline.cookie, leadline.password = mine, password


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    from playwright.sync_api import expect

    from tests.support.processes.chromium import browsing

    # The daemon checks the monitors of these tests every 5 s.
    expect.set_options(timeout=15_000)
    with browsing() as browser:
        yield browser


@pytest.fixture
def open_page(chromium: "Browser", leadline: "Daemon") -> Iterator[Open]:
    """Opens pages signed in as the administrator, or with another cookie. An error in the browser
    log fails the test, so that a failed script is not mistaken for a working page.
    """
    from tests.support.app.browser import DESK

    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_(
        path: str,
        *,
        cookie: str | None = None,
        viewport: "ViewportSize | None" = None,
        scheme: Literal["light", "dark"] = "light",
        scripts: bool = True,
        bypass_csp: bool = False,
    ) -> "Page":
        context = chromium.new_context(
            base_url=leadline.url,
            viewport=viewport or DESK,
            color_scheme=scheme,
            # A moving element costs CPU in each frame.
            reduced_motion="reduce",
            java_script_enabled=scripts,
            bypass_csp=bypass_csp,
        )
        contexts.append(context)
        name, _, value = (leadline.cookie if cookie is None else cookie).partition("=")
        if value:
            context.add_cookies([{"name": name, "value": value, "url": leadline.url}])
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if "Security Policy" in m.text else None)
        page.goto(path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert errors == []
