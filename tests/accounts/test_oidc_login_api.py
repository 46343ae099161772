"""Single sign-on with a real OpenID provider: the accepted users, their accounts, and the
refusals."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
import trio

from leadline.http.auth import oidc_providers
from leadline.http.auth.passwords import Passwords
from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.probes.net.egress import Egress
from leadline.probes.oidc.oidc_client import Metadata, fetch_keys
from leadline.probes.oidc.oidc_settings import OidcSettings
from leadline.storage.accounts.rules.access import Role
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.engine.pools import open_pool
from tests.support.app.cast import Api, open_api
from tests.support.openid.provider import CLIENT, SECRET, Provider, new_key, providing

pytestmark = [pytest.mark.needs("node", "oidc-provider")]

BACK = "https://up.example.com/auth/callback"


class NowClock:
    """The provider's tokens are of the real time."""

    ahead = 0.0

    def __call__(self) -> Instant:
        import time

        return Instant(int((time.time() + self.ahead) * SECOND))


@dataclass
class World:
    api: Api
    provider: Provider
    clock: NowClock
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, cookie: str = "") -> Any:
        headers = {"Cookie": cookie} if cookie else {}
        return await self.api.ask(headers or "nobody", "GET", path)

    async def begin(self, to: str = "/") -> tuple[str, str]:
        """The address that the browser is redirected to, and its cookie."""
        answer = await self.get(f"/auth/login?redirect={quote(to, safe='')}")
        assert answer.status_code == 302
        return answer.headers["Location"], answer.headers["Set-Cookie"].partition(";")[0]

    async def brought(self, address: str, person: str) -> dict[str, str]:
        return await trio.to_thread.run_sync(self.provider.sign_in, address, person, BACK)

    async def back(self, query: dict[str, str], cookie: str) -> Any:
        return await self.get(f"/auth/callback?{urlencode(query)}", cookie)

    async def enter(self, person: str, to: str = "/") -> Any:
        address, cookie = await self.begin(to)
        return await self.back(await self.brought(address, person), cookie)

    async def session(self, person: str) -> str:
        return session_of(await self.enter(person))

    async def me(self, cookie: str) -> Any:
        return await (await self.get("/api/v1/me", cookie)).get_json()

    async def problem(self, answer: Any) -> str:
        assert answer.status_code == 302
        place = urlsplit(answer.headers["Location"])
        assert place.path == "/sign-in"
        return str(parse_qs(place.query)["problem"][0])


def session_of(answer: Any) -> str:
    assert answer.status_code == 302, answer
    (found,) = [
        cookie.partition(";")[0]
        for cookie in answer.headers.getlist("Set-Cookie")
        if cookie.startswith("leadline_session=")
    ]
    return str(found)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@asynccontextmanager
async def world_of(
    dsn: str, passwords: Passwords, provider: Provider, **options: Any
) -> AsyncIterator[World]:
    clock = NowClock()
    sign_on = OidcSettings(
        enabled=True,
        issuer=provider.issuer,
        client_id=CLIENT,
        client_secret=SECRET,
        redirect_url=BACK,
        bootstrap_admins=("boss@example.com",),
    )
    async with (
        open_pool(dsn, name="test", size=12, clock=clock) as pool,
        open_api(pool, clock(), passwords, clock=clock) as usual,
    ):
        given = {"sign_on": sign_on, "public_base_url": "https://up.example.com", **options}
        context = replace(usual.context, options=replace(usual.context.options, **given))
        client = make_app(context, ROUTES).test_client(use_cookies=False)
        yield World(replace(usual, context=context, client=client), provider, clock)


@pytest.fixture
async def world(dsn: str, passwords: Passwords, provider: Provider) -> AsyncIterator[World]:
    async with world_of(dsn, passwords, provider) as made:
        yield made


async def test_a_user_of_the_provider_signs_in_to_the_same_account_again(world: World) -> None:
    answer = await world.enter("ada", "/projects/x?show=all")
    assert answer.headers["Location"] == "/projects/x?show=all"
    cookies = answer.headers.getlist("Set-Cookie")
    assert all("HttpOnly" in cookie and "SameSite=Lax" in cookie for cookie in cookies)
    found = await world.me(session_of(answer))
    user = found["user"]
    assert (user["email"], user["display_name"], user["oidc_sub"]) == (
        "ada@example.com",
        "Ada",
        "ada",
    )
    assert (user["is_global_admin"], found["memberships"]) == (False, [])
    again = await world.me(await world.session("ada"))
    assert again["user"]["id"] == user["id"]
    rows = await world.api.rows("select action from audit_entries order by id")
    assert rows == [("user.provision",)]
    people = await world.api.ask("global_admin", "GET", "/api/v1/admin/users?q=ada@")
    (shown,) = await people.get_json()
    assert shown["auth_type"] == "oidc"


async def test_the_verified_address_of_another_account_gives_no_access_to_it(world: World) -> None:
    """Eve's provider sends the address of an existing account as verified."""
    mara = await world.api.new_user("mara@example.com", "hash")
    found = (await world.me(await world.session("eve")))["user"]
    assert found["id"] != str(mara)
    org = world.api.orgs["acme"][1]
    path = f"/api/v1/organizations/{org}/members"
    await world.api.ask("global_admin", "POST", path, {"user_id": str(mara), "role": "viewer"})
    # The address of a member names the account with the verified address.
    project = str(world.api.projects["acme/shop"][1])
    member = {"email": "mara@example.com", "role": "viewer", "project_id": project}
    added = await world.api.ask("global_admin", "POST", path, member)
    assert added.status_code == 201
    assert (await added.get_json())["user_id"] == str(mara)


async def test_admins_and_members_are_named_by_verified_addresses_only(world: World) -> None:
    liar = (await world.me(await world.session("liar")))["user"]
    assert (liar["email"], liar["is_global_admin"]) == ("boss@example.com", False)
    org = world.api.orgs["acme"][1]
    path = f"/api/v1/organizations/{org}/members"
    liars = {"user_id": liar["id"], "role": "viewer"}
    assert (await world.api.ask("global_admin", "POST", path, liars)).status_code == 201
    member = {"email": "boss@example.com", "role": "org_admin"}
    invited = await world.api.ask("global_admin", "POST", path, member)
    assert invited.status_code == 202
    boss = (await world.me(await world.session("boss")))["user"]
    assert (boss["email"], boss["is_global_admin"]) == ("Boss@example.com", True)
    owners = {"user_id": boss["id"], "role": "viewer"}
    assert (await world.api.ask("global_admin", "POST", path, owners)).status_code == 201
    member |= {"role": "viewer", "project_id": str(world.api.projects["acme/shop"][1])}
    added = await world.api.ask("global_admin", "POST", path, member)
    assert (await added.get_json())["user_id"] == boss["id"]


async def test_a_user_without_an_address_can_sign_in(world: World) -> None:
    assert (await world.me(await world.session("nobody")))["user"]["email"] == ""


async def test_a_state_is_good_once_for_the_browser_that_began_and_not_for_long(
    world: World,
) -> None:
    address, cookie = await world.begin()
    query = await world.brought(address, "ada")
    _, other = await world.begin()
    assert await world.problem(await world.back(query, other)) == "expired"
    assert await world.problem(await world.back(query, "")) == "expired"
    assert await world.problem(await world.back({**query, "state": "x"}, cookie)) == "expired"
    assert session_of(await world.back(query, cookie))
    assert await world.problem(await world.back(query, cookie)) == "expired"
    address, cookie = await world.begin()
    query = await world.brought(address, "ada")
    world.clock.ahead = 601
    assert await world.problem(await world.back(query, cookie)) == "expired"


async def test_a_code_of_another_flow_is_refused(world: World) -> None:
    """The code belongs to another verifier, so the provider refuses it."""
    first, cookie = await world.begin()
    second, other = await world.begin()
    stolen = (await world.brought(first, "ada"))["code"]
    own = await world.brought(second, "eve")
    assert await world.problem(await world.back({**own, "code": stolen}, other)) == "refused"
    assert cookie


async def test_an_error_of_the_provider_and_an_invalid_response_are_refused(world: World) -> None:
    for query in ({"error": "access_denied"}, {}, {"code": "made up"}):
        address, cookie = await world.begin()
        state = parse_qs(urlsplit(address).query)["state"][0]
        whole = {"state": state, "iss": world.provider.issuer, **query}
        assert await world.problem(await world.back(whole, cookie)) == "refused"
    address, cookie = await world.begin()
    query = await world.brought(address, "ada")
    elsewhere = {**query, "iss": "https://elsewhere.test"}
    assert await world.problem(await world.back(elsewhere, cookie)) == "refused"


@pytest.mark.parametrize("to", ["https://evil.test", "//evil.test", "/\\evil.test", "javascript:1"])
async def test_a_sign_in_never_redirects_to_another_site(world: World, to: str) -> None:
    assert (await world.enter("ada", to)).headers["Location"] == "/"


async def test_new_accounts_are_of_allowed_domains_only(world: World) -> None:
    policy = {"allowed_email_domains": ["example.org"]}
    await world.api.ask("global_admin", "PUT", "/api/v1/settings/auth-policy", policy)
    assert await world.problem(await world.enter("ada")) == "not_allowed"
    assert await world.problem(await world.enter("nobody")) == "not_allowed"
    assert await world.api.rows("select from users where email = 'ada@example.com'") == []


async def test_a_local_account_gets_an_identity_from_its_own_session_only(world: World) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    mine = world.api.credentials["editor"]["Cookie"]

    async def ask_to_link(cookie: str) -> tuple[str, str]:
        headers = {"Cookie": cookie}
        answer = await world.api.ask(
            headers, "POST", "/profile", data=b"act=link", headers={**headers, **form}
        )
        page = await answer.get_data(as_text=True)
        address = page.partition('<a href="')[2].partition('"')[0]
        onward = (
            page.partition("Confirm your account there")[0]
            .rpartition('href="')[2]
            .partition('"')[0]
        )
        assert address
        return onward.replace("&amp;", "&"), answer.headers["Set-Cookie"].partition(";")[0]

    address, flow = await ask_to_link(mine)
    query = await world.brought(address, "ada")
    # Without the session, or with the session of another user, the identity is not linked.
    assert await world.problem(await world.back(query, flow)) == "expired"
    address, flow = await ask_to_link(mine)
    query = await world.brought(address, "ada")
    others = world.api.credentials["viewer"]["Cookie"]
    assert await world.problem(await world.back(query, f"{flow}; {others}")) == "not_found"
    address, flow = await ask_to_link(mine)
    query = await world.brought(address, "ada")
    answer = await world.back(query, f"{flow}; {mine}")
    assert answer.headers["Location"] == "/profile?done=link"
    found = (await world.me(await world.session("ada")))["user"]
    assert found["id"] == str(world.api.users["editor"][1])
    address, flow = await ask_to_link(others)
    query = await world.brought(address, "ada")
    assert await world.problem(await world.back(query, f"{flow}; {others}")) == "identity_taken"


async def test_six_concurrent_sign_ins_create_one_account(world: World) -> None:
    begun = [await world.begin() for _ in range(6)]
    queries = [await world.brought(address, "ada") for address, _ in begun]
    ids = []

    async def come(query: dict[str, str], cookie: str) -> None:
        session = session_of(await world.back(query, cookie))
        ids.append((await world.me(session))["user"]["id"])

    async with trio.open_nursery() as nursery:
        for query, (_, cookie) in zip(queries, begun, strict=True):
            nursery.start_soon(come, query, cookie)
    assert len(ids) == 6
    assert len(set(ids)) == 1


async def test_a_sign_out_of_single_sign_on_leads_to_its_own_page(world: World) -> None:
    cookie = await world.session("ada")
    answer = await world.api.ask({"Cookie": cookie}, "POST", "/auth/logout")
    assert answer.headers["Location"] == "/signed-out"
    page = await (await world.get("/signed-out")).get_data(as_text=True)
    assert f'href="{world.provider.issuer}/session/end?client_id={CLIENT}"' in page
    editor = world.api.credentials["editor"]
    answer = await world.api.ask(editor, "POST", "/auth/logout")
    assert answer.headers["Location"] == "/"


async def test_the_sign_in_page_offers_single_sign_on(world: World) -> None:
    config = await (await world.get("/auth/config")).get_json()
    assert (config["oidc"], config["local"]) == (True, True)
    page = await (await world.get("/sign-in?next=/monitors/x")).get_data(as_text=True)
    assert 'href="/auth/login?redirect=/monitors/x"' in page
    for method, status in (("HEAD", 405), ("POST", 405)):
        answer = await world.api.ask("nobody", method, "/auth/callback")
        assert answer.status_code == status


async def test_a_client_sees_what_its_account_is_a_member_of_and_no_more(world: World) -> None:
    api = world.api
    token = await trio.to_thread.run_sync(world.provider.client_token)
    bearer = {"Authorization": f"Bearer {token}"}
    found = await (await api.ask(bearer, "GET", "/api/v1/me")).get_json()
    assert found["memberships"] == []
    assert found["user"]["oidc_sub"] == "pipeline"
    assert found["user"]["email"] == ""
    project = f"/api/v1/projects/{api.project}/monitors"
    assert (await api.ask(bearer, "GET", project)).status_code == 404
    org = api.orgs["acme"][1]
    member = {"user_id": found["user"]["id"], "role": Role.EDITOR}
    added = await api.ask("global_admin", "POST", f"/api/v1/organizations/{org}/members", member)
    assert added.status_code == 201
    assert (await api.ask(bearer, "GET", project)).status_code == 200
    # The token has no rights of a global admin and is no session, even if its account is a global
    # admin.
    user = found["user"]["id"]
    made = {"is_global_admin": True}
    await api.ask("global_admin", "PATCH", f"/api/v1/admin/users/{user}", made)
    assert (await api.ask(bearer, "GET", "/api/v1/admin/users")).status_code == 403
    assert (await api.ask(bearer, "GET", "/api/v1/me/sessions")).status_code == 403
    # The token expires at the end of its validity, although the account exists.
    world.clock.ahead = 700
    assert (await api.ask(bearer, "GET", "/api/v1/me")).status_code == 401


async def test_an_id_token_and_a_forged_token_are_refused(world: World) -> None:
    token = await trio.to_thread.run_sync(world.provider.client_token)
    head, body, signature = token.split(".")
    for wrong in (
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}A.{signature}",
        "a.b.c",
        "..",
        token + "." + signature,
        "leadline_" + token,
    ):
        bearer = {"Authorization": f"Bearer {wrong}"}
        assert (await world.api.ask(bearer, "GET", "/api/v1/me")).status_code == 401


@pytest.mark.parametrize(("audience", "status"), [("urn:leadline", 200), ("urn:other", 401)])
async def test_a_token_needs_the_configured_audience(
    dsn: str, passwords: Passwords, provider: Provider, audience: str, status: int
) -> None:
    async with world_of(dsn, passwords, provider, jwt_audience=audience) as world:
        token = await trio.to_thread.run_sync(provider.client_token)
        bearer = {"Authorization": f"Bearer {token}"}
        assert (await world.api.ask(bearer, "GET", "/api/v1/me")).status_code == status


async def test_new_keys_are_found_and_old_ones_are_not_believed_any_more(
    dsn: str, passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.http.auth.oidc_providers.KEYS_AGAIN_SECONDS", 0.0)
    with providing() as own:
        async with world_of(dsn, passwords, own) as world:

            async def status(token: str) -> int:
                bearer = {"Authorization": f"Bearer {token}"}
                return int((await world.api.ask(bearer, "GET", "/api/v1/me")).status_code)

            old = await trio.to_thread.run_sync(own.client_token)
            assert await status(old) == 200
            await trio.to_thread.run_sync(own.stop)
            own.keys = [new_key("second")]
            await trio.to_thread.run_sync(own.start)
            new = await trio.to_thread.run_sync(own.client_token)
            assert await status(new) == 200
            assert await status(old) == 401


async def test_concurrent_requests_with_a_new_key_are_all_accepted(
    dsn: str, passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them fetches the keys, and the others wait for it and use them."""
    fetches = 0
    waiting = trio.Event()

    async def fetch(reach: Egress, metadata: Metadata) -> Any:
        """Answers when all requests wait for the keys."""
        nonlocal fetches
        fetches += 1
        if fetches > 1:
            with trio.fail_after(60):
                await waiting.wait()
        return await fetch_keys(reach, metadata)

    monkeypatch.setattr(oidc_providers, "fetch_keys", fetch)
    with providing() as own:
        async with world_of(dsn, passwords, own) as world:
            statuses = []

            async def ask(token: str) -> None:
                bearer = {"Authorization": f"Bearer {token}"}
                statuses.append((await world.api.ask(bearer, "GET", "/api/v1/me")).status_code)

            await ask(await trio.to_thread.run_sync(own.client_token))
            await trio.to_thread.run_sync(own.stop)
            own.keys = [new_key("second")]
            await trio.to_thread.run_sync(own.start)
            new = await trio.to_thread.run_sync(own.client_token)
            providers = world.api.context.providers
            (known,) = providers._known.values()
            known.asked_at -= oidc_providers.KEYS_AGAIN_SECONDS
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(ask, new)
                with trio.fail_after(60):
                    while known.asking.statistics().tasks_waiting < 3:  # noqa: ASYNC110
                        await trio.sleep(0.01)
                waiting.set()
            assert (statuses, fetches) == ([200] * 5, 2)


async def test_an_absent_provider_is_an_internal_error_and_no_401(
    dsn: str, passwords: Passwords, provider: Provider
) -> None:
    token = await trio.to_thread.run_sync(provider.client_token)
    gone = Provider()
    async with world_of(dsn, passwords, gone) as world:
        bearer = {"Authorization": f"Bearer {token}"}
        answer = await world.api.ask(bearer, "GET", "/api/v1/me")
        assert (answer.status_code, await answer.get_json()) == (500, {"error": "internal_error"})
        login = await world.get("/auth/login")
        assert await world.problem(login) == "provider_unavailable"
        # Other credentials still work.
        assert (await world.api.ask("editor", "GET", "/api/v1/me")).status_code == 200


async def test_it_is_set_while_we_run_and_never_half(
    dsn: str, passwords: Passwords, provider: Provider
) -> None:
    async with world_of(dsn, passwords, provider, sign_on=OidcSettings()) as world:
        api = world.api

        async def put(status: int = 200, **body: Any) -> Any:
            answer = await api.ask("global_admin", "PUT", "/api/v1/settings/oidc", body)
            found = await answer.get_json()
            assert answer.status_code == status, found
            return found

        assert await world.problem(await world.get("/auth/login")) == "off"
        whole: dict[str, Any] = {
            "enabled": True,
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "button_label": "By the harbour",
        }
        nowhere = "http://127.0.0.1:1"
        refused = await put(400, **{**whole, "issuer": nowhere})
        assert refused["error"] == "issuer: could not be asked (connect_refused)"
        assert (await (await world.get("/auth/config")).get_json())["oidc"] is False
        set_ = await put(**whole)
        assert (set_["active"], set_["client_secret_set"]) == (True, True)
        assert set_["redirect_url"] == BACK
        assert "client_secret" not in set_
        assert SECRET not in json.dumps(set_)
        config = await (await world.get("/auth/config")).get_json()
        assert config["oidc_button_label"] == "By the harbour"
        assert session_of(await world.enter("ada"))
        refused = await put(400, enabled=True, issuer=nowhere)
        fault = "client_secret: must be given again, as issuer or client changed"
        assert refused["error"] == fault
        refused = await put(400, enabled=True, issuer=nowhere, client_secret="other")
        assert refused["error"].startswith("issuer: could not be asked")
        assert session_of(await world.enter("ada"))
        flow = await world.begin()
        await put(enabled=False)
        answer = await world.back({"code": "x", "state": "y"}, flow[1])
        assert await world.problem(answer) == "expired"
        assert await world.problem(await world.get("/auth/login")) == "off"
        dump = await api.rows("select s::text from settings s")
        assert not any(SECRET in row[0] for row in dump)


async def test_it_is_set_by_a_form_that_keeps_what_was_typed(
    dsn: str, passwords: Passwords, provider: Provider
) -> None:
    async with world_of(dsn, passwords, provider, sign_on=OidcSettings()) as world:

        async def save(**form: str) -> tuple[int, str]:
            answer = await world.api.ask(
                "global_admin",
                "POST",
                "/admin/single-sign-on",
                data=urlencode({"enabled": "on", "scopes": "openid email", **form}).encode(),
                headers={"Content-Type": "application/x-www-form-urlencoded"},
            )
            return answer.status_code, await answer.get_data(as_text=True)

        status, page = await save(issuer="http://127.0.0.1:1", client_id="c", client_secret="hush")
        assert status == 400
        assert "Issuer: could not be asked (connect_refused)." in page
        assert 'value="http://127.0.0.1:1"' in page
        assert "hush" not in page
        status, page = await save(issuer=provider.issuer, client_id=CLIENT, scopes="email")
        assert (status, "Scopes: must contain openid." in page) == (400, True)
        status, _ = await save(
            issuer=provider.issuer,
            client_id=CLIENT,
            client_secret=SECRET,
            bootstrap_admins="ada@example.com",
        )
        assert status == 303
        answer = await world.api.ask("global_admin", "GET", "/admin/single-sign-on")
        page = await answer.get_data(as_text=True)
        assert f"Users can sign in at {provider.issuer}." in page
        assert SECRET not in page
        assert (await world.me(await world.session("ada")))["user"]["is_global_admin"] is True
