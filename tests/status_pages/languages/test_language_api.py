"""Readers get their language: by the URL, the page or the browser, and never another reader's."""

from typing import Any

import pytest

from tests.status_pages.test_page_subscriptions_api import rows
from tests.status_pages.test_subscribe_page_public import ADA, api, post
from tests.support.app.cast import Api
from tests.support.app.paging import new_component, new_page
from tests.support.app.serving import call

__all__ = ["api"]


async def read(api: Api, path: str, accept: str = "") -> tuple[str, Any]:
    answer = await api.client.get(path, headers={"Accept-Language": accept} if accept else {})
    assert answer.status_code == 200
    return await answer.get_data(as_text=True), answer.headers


async def speak_german(api: Api, page: Any) -> None:
    path = f"/status-pages/{page['id']}"
    changed = await call(api, "PATCH", path, {"language": "de"}, who="org_admin")
    assert changed["language"] == "de"


async def test_each_reader_gets_the_own_language(api: Api) -> None:
    page = await new_page(api)
    await new_component(api, page, "Checkout <b>")
    where = f"/status/{page['slug']}"
    tags = set()
    for accept, code, said in (
        ("de-DE,de;q=0.9", "de", "Frühere Störungen"),
        ("en-GB", "en", "Past incidents"),
        ("", "en", "Past incidents"),
        ("de", "de", "Frühere Störungen"),
    ):
        text, headers = await read(api, where, accept)
        assert f'<html lang="{code}">' in text
        assert said in text
        assert "Checkout &lt;b&gt;" in text
        assert headers["Content-Language"] == code
        assert "Accept-Language" in headers["Vary"]
        tags.add((code, headers["ETag"]))
    assert len(tags) == 2
    text, headers = await read(api, f"{where}?lang=en", "de")
    assert "Past incidents" in text
    assert headers["Vary"] == "Accept-Encoding"
    # The links of the page keep the choice of the reader, and one switches it.
    assert f"{where}/history?lang=en" in text
    assert f'href="{where}/subscribe?lang=en"' in text
    assert f'<a href="{where}?lang=de" lang="de" hreflang="de">Deutsch</a>' in text


@pytest.mark.parametrize("below", ["", "/history", "/month", "/widget", "/subscribe"])
async def test_all_pages_have_the_language_of_the_page(api: Api, below: str) -> None:
    page = await new_page(api)
    await speak_german(api, page)
    where = f"/status/{page['slug']}{below}"
    text, headers = await read(api, where, "en")
    assert '<html lang="de">' in text
    assert headers["Content-Language"] == "de"
    assert "Accept-Language" not in headers["Vary"]
    text, _ = await read(api, f"{where}?lang=en", "de")
    assert '<html lang="en">' in text


async def test_feeds_and_badges_have_the_language_but_json_has_none(api: Api) -> None:
    page = await new_page(api)
    slug = page["slug"]
    public = f"/api/v1/public/status-pages/{slug}"
    plain, _ = await read(api, public)
    statuspage, _ = await read(api, f"/status/{slug}/api/v2/summary.json")
    await speak_german(api, page)
    assert "Offene und jüngste Störungen" in (await read(api, f"{public}/feed"))[0]
    assert "Open and recent incidents" in (await read(api, f"{public}/feed?lang=en"))[0]
    assert "Keine Daten" in (await read(api, f"/status/{slug}/badge.svg"))[0]
    assert "No components yet" in statuspage
    again, headers = await read(api, f"/status/{slug}/api/v2/summary.json", "de")
    assert "No components yet" in again
    assert "Accept-Language" not in headers["Vary"]
    assert (await read(api, public, "de"))[0] == plain


async def test_an_unknown_language_is_refused(api: Api) -> None:
    page = await new_page(api)
    path = f"/api/v1/status-pages/{page['id']}"
    answer = await api.ask("org_admin", "PATCH", path, json={"language": "fr"})
    assert answer.status_code == 400
    assert await answer.get_json() == {"error": "language: must be one of auto, en, de"}
    assert (await api.client.get(f"/status/{page['slug']}?lang=fr")).status_code == 400


async def test_a_form_answers_and_subscribes_in_its_language(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe?lang=de"
    status, text, _ = await post(api, where, ("email", "nobody"))
    assert (status, "Das ist keine E-Mail-Adresse." in text) == (400, True)
    status, text, _ = await post(api, where, ("email", ADA))
    assert (status, "Sehen Sie in Ihr Postfach" in text) == (200, True)
    assert await rows(api, "select language from subscribers") == [("de",)]


async def test_a_stranger_does_not_change_the_language_of_a_subscriber(api: Api) -> None:
    page = await new_page(api)
    where = f"/status/{page['slug']}/subscribe"
    for confirmed, asked, kept in ((False, "de", "de"), (False, "en", "en"), (True, "de", "en")):
        async with api.pool.transaction("change") as tx:
            await tx.execute("delete from subscription_requests")
            if confirmed:
                await tx.execute("update subscribers set confirmed_at = now()")
        assert (await post(api, f"{where}?lang={asked}", ("email", ADA)))[0] == 200
        assert await rows(api, "select language from subscribers") == [(kept,)]


async def test_the_preview_of_an_unlisted_page_links_with_its_token(api: Api) -> None:
    page = await new_page(api, visibility="unlisted")
    path = f"/projects/{api.project}/status-pages/{page['id']}/preview"
    text = await (await api.ask("org_admin", "GET", path)).get_data(as_text=True)
    assert f"/status/{page['slug']}?token={page['unlisted_token']}&amp;lang=de" in text
