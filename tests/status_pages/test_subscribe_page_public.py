"""Subscribing, confirming and unsubscribing with HTML forms; opening a link changes nothing."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.app_context import SUBSCRIBE_PER_MINUTE
from leadline.http.wire.options import HttpOptions
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.send_result import OutgoingMail, SendContext
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.status_pages.test_page_subscriptions_api import UNKNOWN, rows, tokens
from tests.support.app.cast import Api, open_api
from tests.support.app.paging import new_component, new_page

ADA = "ada@example.com"


@pytest.fixture
async def api(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    reach = make_reach(notify_policy(), nameservers=())
    mail = OutgoingMail(host="mail.example.com", port=25, sender="status@example.com", reach=reach)
    options = HttpOptions(
        version="1", regions=frozenset({"core"}), public_base_url="https://up.example.com"
    )
    means = SendContext(reach=reach, now=lambda: FROZEN_NOW, mail=mail)
    async with open_api(pool, FROZEN_NOW, passwords, means=means, options=options) as made:
        yield made


async def get(api: Api, path: str) -> tuple[int, str, Any]:
    answer = await api.client.get(path)
    return answer.status_code, await answer.get_data(as_text=True), answer.headers


async def post(api: Api, path: str, *fields: tuple[str, str]) -> tuple[int, str, Any]:
    answer = await api.client.post(
        path,
        data=urlencode(fields),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    return answer.status_code, await answer.get_data(as_text=True), answer.headers


async def test_subscribe_confirm_and_unsubscribe(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}"
    _, shown, _ = await get(api, where)
    assert f'href="{where}/subscribe"' in shown
    _, shown, _ = await get(api, f"{where}/subscribe")
    assert f'action="{where}/subscribe"' in shown
    status, said, _ = await post(api, f"{where}/subscribe", ("email", ADA))
    assert status == 200
    assert "Check your inbox" in said
    (token,) = await tokens(api)
    status, asked, headers = await get(api, f"/status/confirm/{token}")
    assert status == 200
    assert "Confirm subscription" in asked
    assert ADA in asked
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert await rows(api, "select confirmed_at from subscribers") == [(None,)]
    status, done, _ = await post(api, f"/status/confirm/{token}")
    assert (status, "Subscription confirmed" in done) == (200, True)
    assert await rows(api, "select confirmed_at is null from subscribers") == [(False,)]
    status, asked, _ = await get(api, f"/status/unsubscribe/{token}")
    assert (status, "Unsubscribe" in asked) == (200, True)
    assert await tokens(api) == [token]
    status, done, _ = await post(api, f"/status/unsubscribe/{token}")
    assert (status, "You are unsubscribed" in done) == (200, True)
    assert not await tokens(api)
    status, again, _ = await get(api, f"/status/unsubscribe/{token}")
    assert (status, "has ended" in again) == (200, True)


async def test_the_answer_does_not_reveal_known_addresses(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe"
    _, first, _ = await post(api, where, ("email", ADA))
    (token,) = await tokens(api)
    await post(api, f"/status/confirm/{token}")
    _, known, _ = await post(api, where, ("email", ADA))
    _, other, _ = await post(api, where, ("email", "bob@example.com"))
    assert first == known == other
    assert ADA not in first


async def test_an_error_is_shown_at_its_field_and_keeps_the_input(api: Api) -> None:
    page = await new_page(api)
    component = await new_component(api, page, "Search", manual_status="operational")
    where = f"/status/{page['slug']}/subscribe"
    typed = '"><script>alert(1)</script>'
    status, shown, _ = await post(api, where, ("email", typed), ("component", component["id"]))
    assert status == 400
    assert "Is not an e-mail address." in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert f'value="{component["id"]}" checked' in shown
    status, shown, _ = await post(api, where, ("url", "http://example.com/"))
    assert (status, "Must be an https URL" in shown) == (400, True)
    assert 'value="http://example.com/"' in shown
    status, shown, _ = await post(api, where, ("email", ADA), ("component", "x"))
    assert (status, "Must be components of the page." in shown) == (400, True)
    status, shown, _ = await post(api, where)
    assert status == 400
    assert not await tokens(api)


async def test_the_chosen_components_are_stored(api: Api) -> None:
    page = await new_page(api)
    component = await new_component(api, page, "Search", manual_status="operational")
    where = f"/status/{page['slug']}/subscribe"
    _, form, _ = await get(api, where)
    assert component["id"] in form
    await post(api, where, ("email", ADA), ("component", component["id"]))
    ((chosen,),) = await rows(api, "select requested_components::text[] from subscribers")
    assert chosen == [component["id"]]
    (token,) = await tokens(api)
    assert ": Search." in (await get(api, f"/status/confirm/{token}"))[1]


async def test_the_form_reports_the_rate_limit(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe"
    for n in range(SUBSCRIBE_PER_MINUTE):
        assert (await post(api, where, ("email", f"a{n}@example.com")))[0] == 200
    status, shown, headers = await post(api, where, ("email", ADA))
    assert (status, "too often" in shown) == (429, True)
    assert f'value="{ADA}"' in shown
    assert int(headers["Retry-After"]) >= 1


async def test_the_form_of_an_unlisted_page_carries_its_token(api: Api) -> None:
    page = await new_page(api, visibility="unlisted")
    opens = urlencode({"token": page["unlisted_token"]})
    where = f"/status/{page['slug']}"
    _, shown, _ = await get(api, f"{where}?{opens}")
    assert f'href="{where}/subscribe?{opens}"' in shown
    _, shown, _ = await get(api, f"{where}/subscribe?{opens}")
    assert f'action="{where}/subscribe?{opens}"' in shown
    assert (await get(api, f"{where}/subscribe"))[0] == 404
    assert (await post(api, f"{where}/subscribe", ("email", ADA)))[0] == 404
    assert (await post(api, f"{where}/subscribe?{opens}", ("email", ADA)))[0] == 200


async def test_an_expired_or_unknown_link_gets_an_explanation(api: Api) -> None:
    for method in (get, post):
        status, said, _ = await method(api, f"/status/confirm/{UNKNOWN}")
        assert (status, "This link has expired" in said) == (404, True)
    for path in ("/status/confirm/nonsense", "/status/unsubscribe/nonsense"):
        for method in (get, post):
            status, said, headers = await method(api, path)
            assert (status, "This link has expired" in said) == (404, True)
            assert headers["Referrer-Policy"] == "no-referrer"
    assert (await post(api, f"/status/unsubscribe/{UNKNOWN}"))[0] == 200


async def test_an_address_and_a_url_together_are_refused_and_kept(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe"
    status, shown, _ = await post(api, where, ("email", ADA), ("url", "https://example.com/"))
    assert (status, "Give either" in shown) == (400, True)
    assert ADA in shown
    assert "https://example.com/" in shown
    assert not await tokens(api)


async def test_confirming_has_its_own_rate_limit(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe"
    for n in range(SUBSCRIBE_PER_MINUTE):
        assert (await post(api, where, ("email", f"a{n}@example.com")))[0] == 200
    first, *_ = await tokens(api)
    for _ in range(SUBSCRIBE_PER_MINUTE):
        assert (await post(api, f"/status/confirm/{first}"))[0] == 200
    status, said, headers = await post(api, f"/status/confirm/{first}")
    assert (status, "Not confirmed" in said) == (429, True)
    assert int(headers["Retry-After"]) >= 1


async def test_without_a_public_url_there_is_no_form(pool: Pool, passwords: Passwords) -> None:
    async with open_api(pool, FROZEN_NOW, passwords) as api:
        page = await new_page(api)
        where = f"/status/{page['slug']}/subscribe"
        status, shown, _ = await get(api, where)
        assert (status, "<form" in shown, "Use the feeds of the status page" in shown) == (
            200,
            False,
            True,
        )
        status, shown, _ = await post(api, where, ("email", ADA))
        assert (status, "Cannot receive messages from this installation." in shown) == (503, True)


async def test_without_a_mail_server_there_is_no_address_field(
    pool: Pool, passwords: Passwords
) -> None:
    async with open_api(pool, FROZEN_NOW, passwords) as api:
        page = await new_page(api)
        _, shown, _ = await get(api, f"/status/{page['slug']}/subscribe")
        assert 'name="email"' not in shown
        assert "format=rss" in shown


@pytest.mark.parametrize("slug", ["confirm", "unsubscribe"])
async def test_reserved_slugs_are_refused(api: Api, slug: str) -> None:
    answer = await api.ask(
        "org_admin",
        "POST",
        f"/api/v1/organizations/{api.org}/status-pages",
        {"slug": slug, "title": "x"},
    )
    assert answer.status_code == 400
