"""Global admins set the branding, anyone can read it, and the public pages show it."""

from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.app.paging import new_page
from tests.support.app.serving import told

PATH = "/settings/branding"
WHOLE = {
    "product_name": "Harbour Watch",
    "accent_color": "#17559C",
    "logo_url": "https://cdn.example/logo.svg",
    "footer_text": "Harbour Goods, Quay 1",
    "support_url": "https://help.example/",
    "announcement": {"enabled": True, "text": "We move on Sunday.", "level": "warning"},
}


async def put(api: Api, body: Any, status: int = 200) -> Any:
    return await told(api, "PUT", PATH, body, status, who="global_admin")


async def public(api: Api) -> Any:
    return await told(api, "GET", "/public/branding", who="nobody")


async def test_branding_is_empty_by_default(api: Api) -> None:
    found = await told(api, "GET", PATH, who="global_admin")
    assert found["configured"] is False
    assert (found["product_name"], found["announcement"]["enabled"]) == ("", False)
    assert "announcement" not in await public(api)


async def test_branding_is_public_and_can_be_written_back(api: Api) -> None:
    assert await put(api, WHOLE) == {"configured": True, **WHOLE}
    found = await told(api, "GET", PATH, who="global_admin")
    assert found == {"configured": True, **WHOLE}
    assert await public(api) == WHOLE
    assert await put(api, found) == found
    ((action, target),) = await api.rows(
        "select distinct action, target from audit_entries where action like 'settings.%%'"
    )
    assert (action, target) == ("settings.branding", "settings:branding")


async def test_omitted_fields_return_to_their_defaults(api: Api) -> None:
    await put(api, WHOLE)
    await put(api, {})
    found = await public(api)
    assert (found["product_name"], found["logo_url"]) == ("", "")
    assert "announcement" not in found


@pytest.mark.parametrize(
    ("field", "value"),
    [("accent_color", "red"), ("logo_url", "http://a.example/"), ("support_url", "javascript:1")],
)
async def test_an_invalid_field_is_refused_by_name_and_changes_nothing(
    api: Api, field: str, value: str
) -> None:
    await put(api, WHOLE)
    found = await put(api, {**WHOLE, field: value}, 400)
    assert found["error"].startswith(f"{field}: ")
    assert await public(api) == WHOLE


async def test_the_public_page_shows_the_branding(api: Api) -> None:
    page = await new_page(api)
    await put(api, WHOLE)
    answer = await api.ask("nobody", "GET", f"/status/{page['slug']}")
    text = await answer.get_data(as_text=True)
    for words in ("Harbour Watch", "We move on Sunday.", "Harbour Goods, Quay 1", "/theme/17559c"):
        assert words in text
    policy = answer.headers["Content-Security-Policy"]
    assert "img-src 'self' https://cdn.example data:" in policy
    theme = await api.ask("nobody", "GET", "/theme/17559c")
    assert await theme.get_data(as_text=True) == ":root { --accent: #17559c; }\n"
    assert theme.headers["Content-Type"] == "text/css; charset=utf-8"
    for wrong in ("17559", "17559c7", "17559g", "red;}"):
        assert (await api.ask("nobody", "GET", f"/theme/{wrong}")).status_code == 404
