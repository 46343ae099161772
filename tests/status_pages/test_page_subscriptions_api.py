"""Subscriptions to a status page: anyone can request one, the answer does not reveal known
addresses, a token confirms and ends it, and owners can list and remove subscribers.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.app_context import SUBSCRIBE_PER_HOUR, SUBSCRIBE_PER_MINUTE
from leadline.http.wire.options import HttpOptions
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.send_result import OutgoingMail, SendContext
from leadline.storage.core.token import RANDOM_BYTES, TokenKind, token_from
from leadline.storage.engine.keyring import CipherContext
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.paging import new_component, new_page
from tests.support.app.serving import call

ADA = "ada@example.com"
UNKNOWN = token_from(TokenKind.SUBSCRIPTION, b"\7" * RANDOM_BYTES)


@pytest.fixture
async def api(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    """Opens the API with an unused mail server and a public base URL."""
    reach = replace(make_reach(notify_policy(), nameservers=()))
    mail = OutgoingMail(host="mail.example.com", port=25, sender="status@example.com", reach=reach)
    options = HttpOptions(
        version="0.3.8",
        regions=frozenset({"core", "eu"}),
        public_base_url="https://up.example.com",
    )
    means = SendContext(reach=reach, now=lambda: FROZEN_NOW, mail=mail)
    async with open_api(pool, FROZEN_NOW, passwords, means=means, options=options) as made:
        yield made


async def ask(api: Api, page: Any, body: Any, **query: str) -> tuple[int, Any, dict[str, str]]:
    """Requests a subscription with fresh rate limits."""
    api.context.subscribing.__init__(SUBSCRIBE_PER_MINUTE, SUBSCRIBE_PER_HOUR)  # type: ignore[misc]
    return await ask_again(api, page, body, **query)


async def ask_again(
    api: Api, page: Any, body: Any, **query: str
) -> tuple[int, Any, dict[str, str]]:
    path = f"/api/v1/public/status-pages/{page['slug']}/subscribers"
    answer = await api.ask("nobody", "POST", path, body, query=query)
    data = await answer.get_data()
    return answer.status_code, json.loads(data) if data else None, dict(answer.headers)


async def rows(api: Api, query: str) -> list[tuple[Any, ...]]:
    async with api.pool.transaction("look") as tx:
        return await tx.rows(query)


async def tokens(api: Api) -> list[str]:
    found = await rows(api, "select uid, token_ciphertext from subscribers order by id")
    return [
        api.context.keyring.open(
            bytes(sealed), CipherContext("subscribers", "token_ciphertext", uid)
        ).decode()
        for uid, sealed in found
    ]


async def public(api: Api, method: str, path: str, **given: Any) -> int:
    answer = await api.client.open(f"/api/v1/public/subscriptions/{path}", method=method, **given)
    return int(answer.status_code)


async def test_the_answer_does_not_reveal_known_addresses(api: Api) -> None:
    page = await new_page(api)
    first = await ask(api, page, {"email": ADA})
    (token,) = await tokens(api)
    assert await public(api, "POST", f"{token}/confirm") == 200
    known = await ask(api, page, {"email": ADA})
    new = await ask(api, page, {"email": "bob@example.com"})
    for status, body, headers in (first, known, new):
        assert (status, body) == (202, None)
        assert set(headers) == set(first[2])


async def test_owners_list_and_remove_subscribers(api: Api) -> None:
    page = await new_page(api)
    await ask(api, page, {"email": ADA})
    await ask(api, page, {"url": "https://example.com/hook"})
    path = f"/status-pages/{page['id']}/subscribers"
    mail, hook = await call(api, "GET", path, who="org_admin")
    assert mail["email"] == ADA
    assert hook["url"] == "https://example.com/hook"
    assert not {"confirmed_at", "bounces", "suspended_at"} & set(mail)
    await rows(api, "update subscribers set bounces = 2 where kind = 'mail' returning id")
    assert [one.get("bounces") for one in await call(api, "GET", path, who="org_admin")] == [
        2,
        None,
    ]
    assert mail["status_page_id"] == page["id"]
    assert not {"token", "token_ciphertext", "token_hash"} & set(mail)
    (token, _) = await tokens(api)
    assert await public(api, "POST", f"{token}/confirm") == 200
    assert (await call(api, "GET", path, who="org_admin"))[0]["confirmed_at"]
    await call(api, "DELETE", f"{path}/{mail['id']}", status=204, who="org_admin")
    await call(api, "DELETE", f"{path}/{mail['id']}", status=404, who="org_admin")
    assert [one["url"] for one in await call(api, "GET", path, who="org_admin")] == [hook["url"]]
    other = await new_page(api, "other")
    elsewhere = f"/status-pages/{other['id']}/subscribers/{hook['id']}"
    await call(api, "DELETE", elsewhere, status=404, who="org_admin")
    (audited,) = await rows(
        api, "select target from audit_entries where action = 'status_page.remove_subscriber'"
    )
    assert ADA not in audited[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"List-Unsubscribe=One-Click", b"\xff\xfe", b'{"a": 1}'],
)
@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "multipart/x", "bad"])
async def test_one_click_unsubscribes_with_any_body(
    api: Api, data: bytes, kind: str | None
) -> None:
    page = await new_page(api)
    await ask(api, page, {"email": ADA})
    (token,) = await tokens(api)
    headers = {} if kind is None else {"Content-Type": kind}
    assert await public(api, "POST", token, data=data, headers=headers) == 200
    assert not await tokens(api)
    # A repeated request gets the same answer after the subscription has ended.
    assert await public(api, "POST", token, data=data, headers=headers) == 200
    assert await public(api, "DELETE", token) == 204


async def test_confirming_has_a_rate_limit_and_unsubscribing_has_none(api: Api) -> None:
    for _ in range(3 * SUBSCRIBE_PER_MINUTE):
        assert await public(api, "DELETE", UNKNOWN) == 204
    found = [await public(api, "POST", f"{UNKNOWN}/confirm") for _ in range(6)]
    assert found == [404] * SUBSCRIBE_PER_MINUTE + [429]


async def test_an_invalid_token_gets_404(api: Api) -> None:
    for token in ("x", UNKNOWN[:-1], UNKNOWN.replace("subscription", "page"), "leadline_agent_x"):
        assert await public(api, "POST", token) == 404
        assert await public(api, "DELETE", token) == 404
        assert await public(api, "POST", f"{token}/confirm") == 404


async def test_a_large_body_is_refused(api: Api) -> None:
    assert await public(api, "POST", UNKNOWN, data=b"x" * (65 << 10)) == 413
    page = await new_page(api)
    large = {"email": ADA, "url": "https://example.com/" + "x" * (65 << 10)}
    assert (await ask(api, page, large))[0] == 413


async def test_the_rate_limits_of_subscription_requests(api: Api) -> None:
    page = await new_page(api)
    found = [
        await ask_again(api, page, {"email": f"a{n}@example.com"})
        for n in range(SUBSCRIBE_PER_MINUTE + 1)
    ]
    assert [status for status, _, _ in found] == [202] * SUBSCRIBE_PER_MINUTE + [429]
    assert int(found[-1][2]["retry-after"]) >= 1
    assert len(await tokens(api)) == SUBSCRIBE_PER_MINUTE


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "email"),
        ({"email": ADA, "url": "https://example.com/"}, "email"),
        ({"email": "not an address"}, "email"),
        ({"url": "http://example.com/"}, "url"),
        ({"url": "https://user:password@example.com/"}, "url"),
        ({"email": ADA, "components": ["019b0000-0000-7000-8000-000000000000"]}, "components"),
    ],
)
async def test_an_error_names_the_invalid_field(api: Api, body: Any, field: str) -> None:
    page = await new_page(api)
    status, found, _ = await ask(api, page, body)
    assert status == 400
    assert found["error"].startswith(f"{field}: ")
    assert not await tokens(api)


async def test_only_components_of_the_page_can_be_chosen(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    own = await new_component(api, page, manual_status="operational")
    others = await new_component(api, other, manual_status="operational")
    for component, status in ((own, 202), (others, 400)):
        found = await ask(api, page, {"email": ADA, "components": [component["id"]]})
        assert found[0] == status


async def test_a_subscription_needs_access_to_the_page(api: Api) -> None:
    unlisted = await new_page(api, visibility="unlisted")
    internal = await new_page(api, "within", visibility="internal")
    assert (await ask(api, unlisted, {"email": ADA}))[0] == 404
    assert (await ask(api, unlisted, {"email": ADA}, token="x"))[0] == 404
    found = await ask(api, unlisted, {"email": ADA}, token=unlisted["unlisted_token"])
    assert found[0] == 202
    assert (await ask(api, internal, {"email": ADA}))[0] == 404
    assert (await ask(api, {"slug": "nowhere"}, {"email": ADA}))[0] == 404


@pytest.mark.parametrize("what", ["mail", "base"])
async def test_subscribing_needs_a_mail_server_and_a_public_url(
    pool: Pool, passwords: Passwords, what: str
) -> None:
    reach = make_reach(notify_policy(), nameservers=())
    mail = OutgoingMail(host="mail.example.com", port=25, sender="status@example.com", reach=reach)
    means = SendContext(reach=reach, now=lambda: FROZEN_NOW, mail=None if what == "mail" else mail)
    base = "" if what == "base" else "https://up.example.com"
    options = HttpOptions(version="1", regions=frozenset({"core"}), public_base_url=base)
    async with open_api(pool, FROZEN_NOW, passwords, means=means, options=options) as api:
        page = await new_page(api)
        assert (await ask(api, page, {"email": ADA}))[:2] == (503, {"error": "mail_unavailable"})
        hook = await ask(api, page, {"url": "https://example.com/"})
        assert hook[0] == (202 if what == "mail" else 503)
