"""A status page with a custom domain is served at the root of that host, and no other path is. The
domain serves the page after its proof only.
"""

from dataclasses import replace
from math import inf
from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.wire.app_context import AppContext
from leadline.http.wire.custom_domains import Domains, PageDomains, host_of, path_below
from leadline.probes.check.domain_evidence import DomainEvidence
from leadline.storage.engine.pools import Pool, open_pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.paging import (
    new_component,
    new_page,
    prove_domain,
    put_domain,
    see,
    token_of,
)
from tests.support.app.serving import call
from tests.support.app.sockets import HttpAnswer, asked, request, served
from tests.support.worlds.outage import outage_of

NAME = "status.example.com"


async def ask_at(port: int, host: str, path: str) -> HttpAnswer:
    return await asked(port, request("GET", path, {}, host=host))


async def test_a_domain_serves_its_page_and_nothing_else(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    await new_component(api, page, manual_status="operational")
    assert (await prove_domain(api, page, f" {NAME.upper()} "))["domain"] == NAME
    async with served(api.context) as port:
        for host in (NAME, f"{NAME}:8443", NAME.upper(), f"{NAME}."):
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
            "/sign-in",
            "/monitors",
            "/api/v1/me",
            "/api/v1/organizations",
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
    await prove_domain(api, page, NAME)
    for visibility in ("unlisted", "internal"):
        path = f"/status-pages/{page['id']}"
        await call(api, "PATCH", path, {"visibility": visibility}, who="org_admin")
        api.context.domains.forget()
        assert await api.context.domains.slug_of(NAME) is None


async def test_a_domain_belongs_to_one_page_until_it_is_released(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    await prove_domain(api, page, NAME)
    assert (await put_domain(api, other, NAME, 409))["error"] == "domain_taken"
    again = await put_domain(api, page, NAME)
    assert again["domain"] == NAME
    assert "domain" not in await put_domain(api, page, "")
    assert (await prove_domain(api, other, NAME))["domain"] == NAME
    await call(api, "DELETE", f"/status-pages/{other['id']}", status=204, who="org_admin")
    assert (await prove_domain(api, page, NAME))["domain"] == NAME


async def test_the_answer_has_the_proof_that_is_missing(api: Api) -> None:
    api.context = with_address(api, "https://up.example.com")
    page = await new_page(api)
    claimed = await put_domain(api, page, NAME)
    token = token_of(claimed)
    assert "domain" not in claimed
    assert claimed["domain_proof"] == {
        "domain": NAME,
        "txt": {"name": f"_leadline.{NAME}", "value": f"leadline-domain={token}"},
        "cname": {"name": f"_leadline.{NAME}", "value": f"{token}.up.example.com"},
        "file": {
            "url": f"http://{NAME}/.well-known/leadline-domain",
            "content": f"leadline-domain={token}",
        },
    }
    see(api)
    checked = (await put_domain(api, page, NAME))["domain_proof"]
    assert (checked["reason"], checked["checked_at"]) == ("not_found", "2026-01-05T00:00:00.000Z")
    assert token_of({"domain_proof": checked}) == token
    path = f"/status-pages/{page['id']}"
    assert (await call(api, "GET", path, who="org_admin"))["domain_proof"] == checked
    # Only editors can use it.
    assert "domain_proof" not in await call(api, "GET", path, who="viewer")
    see(api, records=frozenset({token}))
    proved = await put_domain(api, page, NAME)
    assert proved["domain"] == NAME
    assert "domain_proof" not in proved


def with_address(api: Api, url: str) -> AppContext:
    object.__setattr__(api.context, "options", replace(api.context.options, public_base_url=url))
    return api.context


async def test_a_new_claim_asks_no_name_server(api: Api) -> None:
    """The record cannot exist, and the name server would remember that for up to a day."""
    asked: list[str] = []

    async def look(domain: str) -> DomainEvidence:
        asked.append(domain)
        return DomainEvidence()

    object.__setattr__(api.context, "look_at_domain", look)
    page = await new_page(api)
    await put_domain(api, page, NAME)
    assert asked == []
    assert (await put_domain(api, page, NAME))["domain_proof"]["reason"] == "no_answer"
    await put_domain(api, page, "other.example.com")
    await put_domain(api, page, "")
    assert asked == [NAME]


async def test_checks_of_domains_are_limited(api: Api) -> None:
    page = await new_page(api)
    see(api)
    await put_domain(api, page, NAME)
    for _ in range(10):
        await put_domain(api, page, NAME)
    answer = await put_domain(api, page, NAME, 429)
    assert answer["error"] == "principal_rate"
    # Without a check there is no limit.
    assert "domain_proof" not in await put_domain(api, page, "")


async def test_names_of_the_installation_are_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_address(api, "https://Up.Example.com:8443")
    monkeypatch.setattr("socket.gethostname", lambda: "nas.example.com")
    page = await new_page(api)
    for name in ("up.example.com", "nas.example.com"):
        said = await put_domain(api, page, name, 400)
        assert said["error"] == "domain: is a name of this installation"
    await put_domain(api, page, NAME)
    see(api, is_local=True)
    said = await put_domain(api, page, NAME, 400)
    assert said["error"] == "domain: resolves to a loopback address"


async def test_a_name_that_became_the_address_of_the_console_shows_the_console(api: Api) -> None:
    """The page had the domain before the configuration named it."""
    page = await new_page(api)
    await prove_domain(api, page, NAME)
    async with served(with_address(api, f"https://{NAME}")) as port:
        for path in ("/sign-in", "/healthz", "/metrics", "/api/v1/public/branding"):
            assert (await ask_at(port, NAME, path)).status == 200, path


async def test_a_claimed_domain_shows_the_whole_installation(api: Api) -> None:
    """Nobody can take the host name of a load balancer's check, or an alias of the console."""
    page = await new_page(api)
    await put_domain(api, page, NAME)
    see(api)
    await put_domain(api, page, NAME)
    async with served(api.context) as port:
        for path in ("/sign-in", "/healthz", "/readyz", "/metrics", "/api/v1/public/branding"):
            assert (await ask_at(port, NAME, path)).status == 200, path
        assert (await ask_at(port, NAME, "/api/v1/me")).status == 401
        assert (await ask_at(port, NAME, "/.well-known/leadline-domain")).status == 404


async def test_health_does_not_wait_for_the_database() -> None:
    """Also in a process that has not read the domains yet."""

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        answered.append(scope["path"])

    answered: list[str] = []
    domains = PageDomains(app, Domains(cast("Pool", Unasked())))
    for path in ("/healthz", "/readyz"):
        scope = {"type": "http", "path": path, "headers": [(b"host", NAME.encode())]}
        await domains(scope, None, None)
    assert answered == ["/healthz", "/readyz"]


@pytest.mark.parametrize(
    "text",
    [
        *("example", "http://status.example.com", "status.example.com:8080", "a..b", "-a.example"),
        *(
            "127.0.0.1",
            "[::1]",
            "nas.local",
            "exämple.com",
            "a_b.example.com",
            "a.example/",
            "x" * 64 + ".com",
        ),
    ],
)
async def test_an_invalid_host_name_is_refused(api: Api, text: str) -> None:
    page = await new_page(api)
    assert (await put_domain(api, page, text, 400))["error"].startswith("domain: ")


async def test_known_domains_do_not_delay_requests_during_an_outage(
    api: Api, dsn: str, server_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    await prove_domain(api, await new_page(api), NAME)
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
        (b"status.example.com.:443", NAME),
        (b"[::1]:80", "[::1]"),
        (b"[::1]", "[::1]"),
        (b"", ""),
    ],
)
def test_the_port_is_not_part_of_the_domain(header: bytes, host: str) -> None:
    assert host_of({"headers": [(b"host", header)]}) == host
