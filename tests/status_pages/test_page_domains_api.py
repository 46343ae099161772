"""A status page with a custom domain is served at the root of that host, and no other path is. The
domain serves the page after its proof only.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, cast

import dns.rrset
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.server.hypercorn_server import listen, serve
from leadline.http.wire.app_context import AppContext
from leadline.http.wire.custom_domains import Domains, PageDomains, host_of, path_below
from leadline.probes.check.domain_evidence import FILE_PATH, TEXT_PREFIX, DomainEvidence
from leadline.probes.domain_proof import look_at_domain
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles
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
from tests.support.app.sockets import HttpAnswer, answer_of, asked, request, served
from tests.support.peers.own_network import own_network
from tests.support.peers.servers import Names, answer, answering, open_names, read_head
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


# A tenant tries to take names that it does not control, with a real name server, the real server of
# Leadline on port 80, and a real web server, in a network of the test.
# Leadline, and the web server of a tenant.
HERE, THERE = "198.51.100.7", "198.51.100.8"
WEB_PORT = 80
ALIAS, DOMAIN, INSTALLATION = "leadline.corp.test", "status.acme.test", "up.leadline.test"


@asynccontextmanager
async def network(api: Api, nursery: trio.Nursery) -> AsyncIterator[Names]:
    """Runs Leadline on port 80 of HERE, and resolves names with the yielded name server."""
    with own_network(HERE, THERE):
        names = await open_names(nursery)
        files = HostFiles(hosts=Path("/nonexistent"), nameservers=(names.server,))
        reach = make_reach(probe_policy(), resolver=Resolver(files))
        object.__setattr__(api.context, "look_at_domain", partial(look_at_domain, reach=reach))
        async with trio.open_nursery() as server:
            await server.start(serve, api.context, listen((HERE, WEB_PORT)), True)
            yield names
            api.context.stopping.set()


async def ask_here(host: str, path: str) -> HttpAnswer:
    with trio.fail_after(30):
        stream = await trio.open_tcp_stream(HERE, WEB_PORT)
        async with stream:
            await stream.send_all(request("GET", path, {}, host=host))
            return await answer_of(stream)


async def page_of_the_stranger(api: Api) -> Any:
    path = f"/organizations/{api.orgs['other'][1]}/status-pages"
    body = {"slug": "evil", "title": "Evil"}
    return await call(api, "POST", path, body, 201, who="stranger")


@pytest.mark.needs("root", "ip")
async def test_an_alias_of_leadline_stays_with_leadline(api: Api, nursery: trio.Nursery) -> None:
    """Such as the name that a load balancer checks."""
    evil = await page_of_the_stranger(api)
    async with network(api, nursery) as names:
        names.records[(ALIAS, "A")] = [[HERE]]
        for _ in range(2):
            said = await put_domain(api, evil, ALIAS, who="stranger")
            assert "domain" not in said
        assert said["domain_proof"]["reason"] == "not_found"
        for path in ("/healthz", "/readyz", "/metrics", "/sign-in"):
            assert (await ask_here(ALIAS, path)).status == 200, path
        assert (await ask_here(ALIAS, "/api/v1/me")).status == 401


@pytest.mark.needs("root", "ip")
async def test_a_domain_that_points_to_leadline_is_proved_by_its_owner_only(
    api: Api, nursery: trio.Nursery
) -> None:
    """Before its proof and after it. The CNAME to the installation proves nothing."""
    page, evil = await new_page(api), await page_of_the_stranger(api)
    async with network(api, nursery) as names:
        chain = [
            dns.rrset.from_text(f"{DOMAIN}.", 60, "IN", "CNAME", f"{INSTALLATION}."),
            dns.rrset.from_text(f"{INSTALLATION}.", 60, "IN", "A", HERE),
        ]
        names.records[(DOMAIN, "A")] = [chain]
        names.records[(DOMAIN, "CNAME")] = [chain[:1]]
        await put_domain(api, evil, DOMAIN, who="stranger")
        # Leadline answers at the domain, and has no file for anybody.
        assert (await ask_here(DOMAIN, FILE_PATH)).status == 404
        said = await put_domain(api, evil, DOMAIN, who="stranger")
        assert said["domain_proof"]["reason"] == "not_found"

        text = (await put_domain(api, page, DOMAIN))["domain_proof"]["txt"]["value"]
        names.records[(f"_leadline.{DOMAIN}", "TXT")] = [[f'"{text}"']]
        # The record of the owner does not help the other page, which checks first.
        said = await put_domain(api, evil, DOMAIN, who="stranger")
        assert said["domain_proof"]["reason"] == "other_token"
        assert (await put_domain(api, page, DOMAIN))["domain"] == DOMAIN
        assert "Harbour Goods" in str((await ask_here(DOMAIN, "/")).body)
        # The owner can remove the record afterwards: the page stays, and nobody else can take it.
        del names.records[(f"_leadline.{DOMAIN}", "TXT")]
        assert (await put_domain(api, page, DOMAIN))["domain"] == DOMAIN
        said = await put_domain(api, evil, DOMAIN, who="stranger")
        assert said["domain_proof"]["reason"] == "not_found"
        assert (await ask_here(DOMAIN, FILE_PATH)).status == 404
        assert "Harbour Goods" in str((await ask_here(DOMAIN, "/")).body)


@pytest.mark.needs("root", "ip")
async def test_a_file_of_the_web_server_proves_its_domain(api: Api, nursery: trio.Nursery) -> None:
    page = await new_page(api)
    async with network(api, nursery) as names:
        names.records[(DOMAIN, "A")] = [[THERE]]
        token = token_of(await put_domain(api, page, DOMAIN))

        async def repeat(stream: trio.SocketStream) -> None:
            """Answers with all that the request contains, as a page for every path does."""
            await stream.send_all(answer(await read_head(stream)))

        for handler, is_proof in (
            (repeat, False),
            (answering(answer(f"{TEXT_PREFIX}{token}\n".encode())), True),
        ):
            async with trio.open_nursery() as web:
                listeners = await trio.open_tcp_listeners(WEB_PORT, host=THERE)
                web.start_soon(trio.serve_listeners, handler, listeners)
                said = await put_domain(api, page, DOMAIN)
                web.cancel_scope.cancel()
            assert (said.get("domain") == DOMAIN) is is_proof
        # The domain now leads to Leadline, which serves the page there.
        assert "Harbour Goods" in str((await ask_here(DOMAIN, "/")).body)


@pytest.mark.needs("root", "ip")
async def test_a_name_that_leads_to_this_host_is_refused(api: Api, nursery: trio.Nursery) -> None:
    """Any process of this host could have a file there, and the owner of a DNS any record."""
    page = await new_page(api)
    async with network(api, nursery) as names:
        names.records[(DOMAIN, "A")] = [["127.0.0.1"]]
        text = (await put_domain(api, page, DOMAIN))["domain_proof"]["txt"]["value"]
        names.records[(f"_leadline.{DOMAIN}", "TXT")] = [[f'"{text}"']]
        said = await put_domain(api, page, DOMAIN, 400)
        assert said["error"] == "domain: resolves to a loopback address"
