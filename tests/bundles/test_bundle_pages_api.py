"""Bundles of format 3 in the API: status pages and their components."""

import random
from typing import Any

import pytest

from tests.bundles.test_bundle_on_call_api import bundle
from tests.bundles.test_bundles_api import TAKE, WEB, applied, ask, export, release
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.run import effort

WHO = "org_admin"
PAGE: dict[str, Any] = {
    "title": "Shop",
    "visibility": "unlisted",
    "timezone": "Europe/Berlin",
    "branding": {"accent_color": "#112233"},
    "components": [
        {"name": "Web", "monitor": "web", "group": "Front", "show_latency": True},
        {"name": "Shop", "service": "shop"},
        {"name": "Office", "description": "Set by hand"},
    ],
}
SECTIONS: dict[str, Any] = {"monitors": {"web": WEB}, "services": {"shop": {"name": "Shop"}}}


async def whole(api: Api, **pages: Any) -> dict[str, Any]:
    return bundle(**SECTIONS, status_pages=pages)


async def apply(api: Api, document: dict[str, Any], query: str = "") -> dict[str, str]:
    path = f"/projects/{api.project}/bundle"
    plan = await call(api, "POST", f"{path}/plan{query}", document, who=WHO)
    found = await call(api, "POST", f"{path}/apply{query}", document, who=WHO)
    assert plan["changes"] == found["changes"]
    again = await call(api, "POST", f"{path}/plan{query}", document, who=WHO)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}
    return {one["uid"]: one["action"] for one in found["changes"] if one["kind"] == "status_page"}


async def page_of(api: Api, slug: str = "shop") -> Any:
    rows = await call(api, "GET", f"/organizations/{api.orgs['acme'][1]}/status-pages", who=WHO)
    uid = next(one["id"] for one in rows if one["slug"] == slug)
    page = await call(api, "GET", f"/status-pages/{uid}", who=WHO)
    components = await call(api, "GET", f"/status-pages/{uid}/components", who=WHO)
    return {**page, "components": components}


async def test_a_page_comes_changes_and_is_left_to_people(api: Api) -> None:
    document = await whole(api, shop=PAGE)
    assert await apply(api, document) == {"shop": "create"}
    exported = await export(api)
    assert exported["status_pages"] == {"shop": PAGE}
    page = await page_of(api)
    ids = {one["name"]: one["id"] for one in page["components"]}
    for method, path, body in (
        ("PATCH", f"/status-pages/{page['id']}", {"title": "X"}),
        ("DELETE", f"/status-pages/{page['id']}", None),
        ("PATCH", f"/components/{ids['Web']}", {"name": "X"}),
        ("DELETE", f"/components/{ids['Web']}", None),
    ):
        assert await call(api, method, path, body, 409, who=WHO) == {"error": "managed_by_file"}
    # People set the status of a manual component, which an application keeps.
    path = f"/components/{ids['Office']}"
    body = {"name": "Office", "description": "Set by hand", "manual_status": "major_outage"}
    await call(api, "PATCH", path, body, who=WHO)
    components = [
        {"name": "Office", "description": "Set"},
        {"name": "Website", "monitor": "web"},
        {"name": "New"},
    ]
    changed = await whole(api, shop={"title": "The shop", "components": components})
    assert await apply(api, changed) == {"shop": "update"}
    page = await page_of(api)
    assert [one["name"] for one in page["components"]] == ["Office", "Website", "New"]
    assert [one["id"] for one in page["components"]][:2] == [ids["Office"], ids["Web"]]
    assert page["components"][0]["manual_status"] == "major_outage"
    assert (page["title"], page["visibility"]) == ("The shop", "listed")
    assert await apply(api, await whole(api)) == {"shop": "orphan"}
    await call(api, "PATCH", f"/status-pages/{page['id']}", {"title": "X"}, who=WHO)
    await call(api, "DELETE", f"/status-pages/{page['id']}", None, 204, who=WHO)


async def test_a_component_of_a_deleted_monitor_stays_as_it_is(api: Api) -> None:
    await apply(api, await whole(api, shop=PAGE))
    await release(api)
    rows = await call(api, "GET", f"/projects/{api.project}/monitors", who=WHO)
    for row in (one for one in rows if one["slug"] == "web"):
        await call(api, "DELETE", f"/monitors/{row['id']}", None, 204, who=WHO)
    lost = (await page_of(api))["components"][0]
    assert (lost["name"], lost["source"], lost.get("monitor_id")) == ("Web", "monitor", None)
    exported = (await export(api))["status_pages"]
    assert [one["name"] for one in exported["shop"]["components"]] == ["Shop", "Office"]
    exported["shop"]["title"] = "The shop"
    services = {"shop": {"name": "Shop"}}
    only = bundle(services=services, status_pages=exported)
    assert await apply(api, only, TAKE) == {"shop": "update"}
    page = await page_of(api)
    assert page["title"] == "The shop"
    assert [one["name"] for one in page["components"]] == ["Web", "Shop", "Office"]
    assert page["components"][0] == lost
    # A manual component of its name is another one.
    exported["shop"]["components"].append({"name": "Web"})
    assert await apply(api, bundle(services=services, status_pages=exported)) == {"shop": "update"}
    page = await page_of(api)
    assert page["components"][0] == lost
    assert page["components"][3]["manual_status"] == "operational"
    # A monitor of its name is its new source.
    exported["shop"]["components"][2]["monitor"] = "web"
    assert await apply(api, await whole(api, **exported)) == {"shop": "update"}
    page = await page_of(api)
    assert [one["name"] for one in page["components"]] == ["Shop", "Office", "Web"]
    assert page["components"][2]["id"] == lost["id"]


async def test_people_delete_a_component_of_a_deleted_monitor(api: Api) -> None:
    await apply(api, await whole(api, shop=PAGE))
    await release(api, {"monitors": ["web"]})
    rows = await call(api, "GET", f"/projects/{api.project}/monitors", who=WHO)
    for row in (one for one in rows if one["slug"] == "web"):
        await call(api, "DELETE", f"/monitors/{row['id']}", None, 204, who=WHO)
    web, shop, _ = (await page_of(api))["components"]
    await call(api, "DELETE", f"/components/{shop['id']}", None, 409, who=WHO)
    await call(api, "DELETE", f"/components/{web['id']}", None, 204, who=WHO)


async def test_only_an_administrator_of_the_organization_changes_pages(api: Api) -> None:
    document = await whole(api, shop=PAGE)
    said = "status_pages.shop: must be applied by an administrator of the organization"
    for verb in ("plan", "apply"):
        assert (await ask(api, verb, document, 400))["error"].startswith(said)
    await apply(api, document)
    assert set((await applied(api, document)).values()) == {"unchanged"}
    await release(api)
    assert (await ask(api, "plan", document, 400, TAKE))["error"].startswith(said)
    assert await apply(api, document, TAKE) == {"shop": "unchanged"}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ({"title": " "}, "title: must not be blank"),
        ({"title": "x", "slug": "No"}, "slug: "),
        ({"title": "x", "slug": "confirm"}, "slug: is an address of all pages"),
        ({"title": "x", "timezone": "Mars"}, "timezone: must be the name"),
        ({"title": "x", "branding": {"accent_color": "red"}}, "branding.accent_color: "),
        ({"title": "x", "visibility": "public"}, "visibility: must be one of"),
        ({"title": "x", "components": [{"name": ""}]}, "components[0].name: must not be blank"),
        ({"title": "x", "components": [{"name": "a", "monitor": "no"}]}, "components[0].monitor: "),
        (
            {"title": "x", "components": [{"name": "a", "monitor": "web", "service": "shop"}]},
            "comp",
        ),
        ({"title": "x", "components": [{"name": "a", "show_latency": True}]}, "components[0].show"),
        ({"title": "x", "components": [{"name": "a"}] * 201}, "components: must have at most"),
        ({"title": "x", "domain": "a.example.org"}, "domain"),
    ],
)
async def test_a_wrong_page_is_named(api: Api, page: dict[str, Any], said: str) -> None:
    path = f"/projects/{api.project}/bundle/plan"
    answer = await call(api, "POST", path, await whole(api, shop=page), 400, who=WHO)
    assert answer["error"].startswith(f"status_pages.shop.{said}")


async def test_a_taken_slug_is_a_conflict(api: Api) -> None:
    body = {"slug": "shop", "title": "Other"}
    await call(
        api, "POST", f"/organizations/{api.orgs['acme'][1]}/status-pages", body, 201, who=WHO
    )
    path = f"/projects/{api.project}/bundle/plan"
    answer = await call(api, "POST", path, await whole(api, shop=PAGE), 409, who=WHO)
    assert answer["error"].startswith("status_pages.shop")


@pytest.mark.parametrize("seed", effort.varied(range(3), range(40)))
async def test_an_export_creates_the_same_pages(api: Api, seed: int) -> None:
    pages = random_pages(random.Random(seed))
    await apply(api, await whole(api, **pages))
    changed = random_pages(random.Random(f"{seed} changed"))
    await apply(api, await whole(api, **changed))
    if seed % 2:
        await release(api)
    exported = await export(api)
    assert set((await apply(api, exported, "?name=any")).values()) <= {"unchanged"}
    mill = api.projects["acme/mill"][1]
    # A slug is unique in the installation.
    copied = {
        uid: {**page, "slug": f"{page.get('slug', uid)}-copy"}
        for uid, page in exported.get("status_pages", {}).items()
    }
    copy = {**exported, "format": 3, "project": "mill", "status_pages": copied}
    path = f"/projects/{mill}/bundle"
    await call(api, "POST", f"{path}/apply", copy, who=WHO)
    found = await call(api, "GET", path, who=WHO)
    assert found.get("status_pages", {}) == copied
    again = await call(api, "POST", f"{path}/plan", copy, who=WHO)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}


def random_pages(rnd: random.Random) -> dict[str, Any]:
    sources: list[dict[str, Any]] = [
        {"monitor": "web"},
        {"monitor": "web", "show_latency": True},
        {"service": "shop"},
        {},
    ]
    return {
        f"p{n}": {
            "title": rnd.choice(["Shop", "ü <b>"]),
            "visibility": rnd.choice(["listed", "unlisted", "internal"]),
            "timezone": rnd.choice(["UTC", "Asia/Kathmandu"]),
            "language": rnd.choice(["auto", "de"]),
            "branding": rnd.choice([{}, {"footer_text": "x", "support_url": "https://a.example"}]),
            "components": [
                {
                    "name": rnd.choice(["a", "b", "c"]),
                    "group": rnd.choice(["", "G"]),
                    **rnd.choice(sources),
                }
                for _ in range(rnd.randint(0, 6))
            ],
        }
        for n in range(rnd.randint(0, 3))
    }
