"""A status page with a custom domain is served at the root of that host, and no other path is."""

from math import inf
from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.wire.custom_domains import Domains, PageDomains, host_of, path_below
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.status_pages.rules.status_page_edit import domain_fault
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.paging import new_component, new_page
from tests.support.app.serving import call
from tests.support.app.sockets import HttpAnswer, asked, request, served
from tests.support.worlds.outage import outage_of

NAME = "status.example.com"


async def named(api: Api, page: dict[str, str], domain: str, status: int = 200) -> dict[str, str]:
    path = f"/status-pages/{page['id']}/domain"
    found: dict[str, str] = await call(
        api, "PUT", path, {"domain": domain}, status, who="org_admin"
    )
    return found


async def ask_at(port: int, host: str, path: str) -> HttpAnswer:
    return await asked(port, request("GET", path, {}, host=host))


async def test_a_domain_serves_its_page_and_nothing_else(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    await new_component(api, page, manual_status="operational")
    assert (await named(api, page, f" {NAME.upper()} "))["domain"] == NAME
    async with served(api.context) as port:
        for host in (NAME, f"{NAME}:8443", NAME.upper()):
            shown = await ask_at(port, host, "/")
            assert (shown.status, shown.headers["content-type"]) == (
                200,
                "text/html; charset=utf-8",
            )
            assert "Harbour Goods" in str(shown.body)
            assert f"https://{NAME}/history" in str(shown.body)
        for path in (
            "/history",
            "/widget",
            "/badge.svg",
            "/api/v2/summary.json",
            f"/status/{page['slug']}",
            f"/api/v1/public/status-pages/{page['slug']}/feed",
        ):
            assert (await ask_at(port, NAME, path)).status == 200, path
        for path in (
            "/signin",
            "/monitors",
            "/api/v1/auth/me",
            "/api/v1/status-pages",
            "/healthz",
            "/metrics",
            f"/status/{other['slug']}",
            f"/status/{page['slug']}x",
        ):
            assert (await ask_at(port, NAME, path)).status == 404, path
        assert (await ask_at(port, "localhost", "/")).status != 404
        assert (await ask_at(port, "localhost", f"/status/{page['slug']}")).status == 200


async def test_an_unlisted_or_internal_page_has_no_domain(api: Api) -> None:
    page = await new_page(api)
    await named(api, page, NAME)
    for visibility in ("unlisted", "internal"):
        path = f"/status-pages/{page['id']}"
        await call(api, "PATCH", path, {"visibility": visibility}, who="org_admin")
        api.context.domains.forget()
        assert await api.context.domains.slug_of(NAME) is None


async def test_a_domain_belongs_to_one_page_until_it_is_released(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    await named(api, page, NAME)
    assert (await named(api, other, NAME, 409))["error"] == "domain_taken"
    again = await named(api, page, NAME)
    assert again["domain"] == NAME
    assert "domain" not in await named(api, page, "")
    assert (await named(api, other, NAME))["domain"] == NAME
    await call(api, "DELETE", f"/status-pages/{other['id']}", status=204, who="org_admin")
    assert (await named(api, page, NAME))["domain"] == NAME


@pytest.mark.parametrize(
    "text",
    [
        *("example", "http://status.example.com", "status.example.com:8080", "a..b", "-a.example"),
        *("127.0.0.1", "[::1]", "exämple.com", "a_b.example.com", "a.example/", "x" * 64 + ".com"),
    ],
)
async def test_an_invalid_host_name_is_refused(api: Api, text: str) -> None:
    page = await new_page(api)
    assert (await named(api, page, text, 400))["error"].startswith("domain: ")


async def test_known_domains_do_not_delay_requests_during_an_outage(
    api: Api, dsn: str, server_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    await named(api, await new_page(api), NAME)
    async with (
        open_pool(dsn, name="names", size=1, clock=lambda: FROZEN_NOW, acquire_seconds=inf) as pool,
        outage_of(dsn, server_dsn) as outage,
    ):
        domains = Domains(pool)
        assert await domains.slug_of(NAME) == "harbour"
        domains.forget()
        outage.begin()
        with trio.fail_after(30):
            assert await domains.slug_of(NAME) == "harbour"
        assert "custom domains cannot be read" in caplog.text


class Unasked:
    """A pool that must not be used."""

    def statement(self, name: str) -> Any:
        raise AssertionError(f"{name}: the database was asked")


@pytest.mark.parametrize("path", ["/api/v1/public/push/token", "/static/app.css"])
async def test_shared_paths_do_not_wait_for_the_database(path: str) -> None:
    received: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        received.append(scope["path"])

    scope = {"type": "http", "path": path, "headers": [(b"host", NAME.encode())]}
    await PageDomains(app, Domains(cast("Pool", Unasked())))(scope, None, None)
    assert received == [path] == [path_below(path, "harbour")]


def test_the_host_of_the_console_is_no_valid_domain() -> None:
    assert domain_fault("up.example.com", "Up.Example.com") is not None
    assert domain_fault("status.example.com", "up.example.com") is None


@given(st.text(), st.from_regex(r"[a-z]{1,8}", fullmatch=True))
def test_paths_map_only_to_public_routes(path: str, slug: str) -> None:
    found = path_below(path, slug)
    public = (f"/status/{slug}", "/api/v1/public/", "/static/", "/theme/")
    own = ("/status/confirm/", "/status/unsubscribe/")
    assert found is None or found.startswith((*public, *own))


@pytest.mark.parametrize(
    ("header", "host"),
    [
        (b"status.example.com", NAME),
        (b"Status.Example.com:443", NAME),
        (b"[::1]:80", "[::1]"),
        (b"[::1]", "[::1]"),
        (b"", ""),
    ],
)
def test_the_port_is_not_part_of_the_domain(header: bytes, host: str) -> None:
    assert host_of({"headers": [(b"host", header)]}) == host
