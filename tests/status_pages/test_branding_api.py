"""Global admins set the branding, anyone can read it, and the public pages show it."""

from pathlib import Path
from typing import Any

import pytest

from leadline.http.ui import static_files
from leadline.storage.core.token import digest
from tests.support.app.cast import Api
from tests.support.app.paging import new_page
from tests.support.app.serving import call

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
    return await call(api, "PUT", PATH, body, status, who="global_admin")


async def public(api: Api) -> Any:
    return await call(api, "GET", "/public/branding", who="nobody")


async def test_branding_is_empty_by_default(api: Api) -> None:
    found = await call(api, "GET", PATH, who="global_admin")
    assert found["configured"] is False
    assert (found["product_name"], found["announcement"]["enabled"]) == ("", False)
    assert "announcement" not in await public(api)


async def test_branding_is_public_and_can_be_written_back(api: Api) -> None:
    assert await put(api, WHOLE) == {"configured": True, **WHOLE}
    found = await call(api, "GET", PATH, who="global_admin")
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


OWN = {
    "accent_color": "#AB1234",
    "logo_url": "https://own.example/logo.svg",
    "footer_text": "Mill Ltd\nQuay 2",
    "support_url": "https://own-help.example/",
}
EMPTY = dict.fromkeys(OWN, "")


async def brand(api: Api, page: Any, body: Any, status: int = 200, who: str = "org_admin") -> Any:
    path = f"/status-pages/{page['id']}"
    return await call(api, "PATCH", path, {"branding": body}, status, who=who)


async def shown(api: Api, path: str) -> tuple[str, str]:
    """Returns the HTML and its Content-Security-Policy."""
    answer = await api.ask("nobody", "GET", path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True), answer.headers["Content-Security-Policy"]


async def test_a_page_has_its_own_branding_and_empty_fields_of_the_installation(api: Api) -> None:
    await put(api, WHOLE)
    page, other = await new_page(api), await new_page(api, slug="other")
    assert page["branding"] == EMPTY
    made = await brand(api, page, OWN)
    assert made["branding"] == OWN
    assert made["title"] == page["title"]
    for path in ("", "/history", "/subscribe"):
        text, policy = await shown(api, f"/status/{page['slug']}{path}")
        for words in ("/theme/ab1234", "https://own.example/logo.svg", "Mill Ltd", "own-help"):
            assert words in text, path
        for words in ("Harbour Goods, Quay 1", "/theme/17559c", "cdn.example"):
            assert words not in text
        assert "img-src 'self' https://own.example data:" in policy
        assert "cdn.example" not in policy
    text, _ = await shown(api, f"/status/{page['slug']}")
    assert "Harbour Watch" in text
    assert "We move on Sunday." in text
    text, policy = await shown(api, f"/status/{other['slug']}")
    assert "/theme/17559c" in text
    assert "own.example" not in text + policy
    made = await brand(api, page, {"footer_text": "Mill Ltd"})
    assert made["branding"] == EMPTY | {"footer_text": "Mill Ltd"}
    text, policy = await shown(api, f"/status/{page['slug']}")
    assert "/theme/17559c" in text
    assert "https://cdn.example" in policy
    assert "Mill Ltd" in text
    assert await public(api) == WHOLE


async def test_pages_of_incidents_and_subscriptions_have_the_branding_of_the_page(api: Api) -> None:
    page = await new_page(api)
    await brand(api, page, OWN)
    monitor = await api.new_monitor()
    await api.new_component(page["id"], monitor=monitor.uid)
    incident = await api.new_incident(monitor=monitor.uid, body="We look into it.")
    subscriber = await api.new_subscriber(page["id"])
    token = f"leadline_subscription_{'0' * 43}"
    async with api.pool.transaction("known token") as tx:
        await tx.execute(
            "update subscribers set token_hash = %(hash)s where uid = %(uid)s",
            hash=digest(token),
            uid=subscriber,
        )
    for path in (
        f"{page['slug']}/incidents/{incident}",
        f"confirm/{token}",
        f"unsubscribe/{token}",
    ):
        text, policy = await shown(api, f"/status/{path}")
        assert "/theme/ab1234" in text
        assert "https://own.example" in policy


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("accent_color", "red", "must be a colour as #rrggbb"),
        ("accent_color", "#12345", "must be a colour as #rrggbb"),
        ("accent_color", "#17559c;}", "must be a colour as #rrggbb"),
        ("logo_url", "http://a.example/", "must be an https URL"),
        ("logo_url", "https://a.example; script-src *", "must be an https URL"),
        ("logo_url", "https://a\x01.example/", "must be an https URL"),
        # The policy of the page would allow images of every host.
        ("logo_url", "https://*/logo.svg", "must be an https URL"),
        ("logo_url", "https://*.example/logo.svg", "must be an https URL"),
        ("logo_url", "https://a$b/logo.svg", "must be an https URL"),
        ("logo_url", "https://a.example:/logo.svg", "must be an https URL"),
        ("support_url", "https://a.example/\x1b", "must be an https URL"),
        ("logo_url", "https://user:secret@a.example/", "must not contain a user name"),
        ("logo_url", f"https://a.example/{'a' * 500}", "must be at most 500 characters"),
        ("support_url", "javascript:alert(1)", "must be an https URL"),
        ("footer_text", "a" * 10_000, "must be at most 500 characters"),
    ],
)
async def test_an_invalid_field_of_a_page_is_refused_and_changes_nothing(
    api: Api, field: str, value: str, said: str
) -> None:
    page = await new_page(api)
    before = await brand(api, page, OWN)
    refused = await brand(api, page, OWN | {field: value}, 400)
    assert refused["error"] == f"branding.{field}: {said}"
    for wrong in ({field: 1}, {"product_name": "x"}, "red", None):
        await brand(api, page, wrong, 400)
    await brand(api, page, {"footer_text": "a\0b"}, 400)
    path = f"/status-pages/{page['id']}"
    assert await call(api, "GET", path, who="org_admin") == before


async def test_branding_of_a_page_is_escaped_audited_and_for_organization_admins(api: Api) -> None:
    page = await new_page(api)
    for who, status in (("viewer", 403), ("editor", 403), ("stranger", 404), ("nobody", 401)):
        await brand(api, page, OWN, status, who)
    hostile = "<script>alert(1)</script>\u202e\"'"
    for _ in range(2):
        await brand(api, page, OWN | {"footer_text": hostile})
    text, _ = await shown(api, f"/status/{page['slug']}")
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    rows = await api.rows(
        "select target from audit_entries where action = 'status_page.update' order by id"
    )
    assert [target.rpartition(" ")[2] for (target,) in rows] == ["branding"]
    await call(api, "PATCH", f"/status-pages/{page['id']}", {"title": "New"}, who="org_admin")
    found = await call(api, "GET", f"/status-pages/{page['id']}", who="viewer")
    assert (found["title"], found["branding"]["accent_color"]) == ("New", "#AB1234")


def test_the_accent_colours_only_the_bar_above_a_page() -> None:
    """No text and no mark has the accent, so that each colour keeps the contrast of the page."""
    static = Path(static_files.__file__).parent / "static"
    uses = [
        line
        for path in sorted(static.glob("*.css"))
        for line in path.read_text().splitlines()
        if "var(--accent" in line
    ]
    assert len(uses) == 1
    assert uses[0].startswith('body::before { content: ""; display: block; height: 4px;')
