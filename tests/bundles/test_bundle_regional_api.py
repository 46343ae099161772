"""Regional monitors in bundles: exported, created, edited, released and parted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.storage.engine.pools import Pool
from tests.bundles.test_bundles_api import applied, export, monitors
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import call

WEB: dict[str, Any] = {"type": "http", "target": "https://shop.example/", "auto_incident": False}
MEMBERS = {
    f"web-{place}": {**WEB, "name": f"Web {place}", "region": place} for place in ("core", "eu")
}
CHILDREN = "monitors.web.config.children"
WHOLE: dict[str, Any] = {
    "name": "Web",
    "type": "composite",
    "regional": True,
    "config": {"mode": "quorum", "quorum": 2, "children": ["web-core", "web-eu"]},
}


def bundle(**given: dict[str, Any]) -> dict[str, Any]:
    entries = {**MEMBERS, "web": WHOLE, **given}
    head = {"format": 3, "organization": "acme", "project": "shop"}
    return {**head, "monitors": entries}


@pytest.fixture
async def wide(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    options = HttpOptions(regions=frozenset({"core", "eu", "us"}))
    async with open_api(pool, FROZEN_NOW, passwords, options=options) as made:
        yield made


async def parts(api: Api) -> dict[str, bool]:
    """Returns the monitors of the project, and whether each is a part of a regional one."""
    found = await api.rows("select slug, regional_of is not null from monitors order by slug")
    return dict(found)


async def test_a_bundle_makes_edits_and_parts_a_regional_monitor(wide: Api) -> None:
    await applied(wide, bundle())
    found = await monitors(wide)
    assert (found["web"]["regions"], found["web"]["down_regions"]) == (["core", "eu"], 2)
    assert found["web-eu"]["regional_monitor_id"] == found["web"]["id"]
    changed = {uid: {**one, "interval_seconds": 30} for uid, one in MEMBERS.items()}
    added = {"web-us": {**changed["web-eu"], "name": "Web us", "region": "us"}}
    config = {**WHOLE["config"], "children": [*WHOLE["config"]["children"], "web-us"]}
    await applied(wide, bundle(**changed, **added, web={**WHOLE, "config": config}))
    found = await monitors(wide)
    assert (found["web"]["regions"], found["web-us"]["interval_seconds"]) == (
        ["core", "eu", "us"],
        30,
    )
    await applied(
        wide, bundle(**changed, **added, web={**WHOLE, "config": config, "regional": False})
    )
    assert not any((await parts(wide)).values())


async def test_an_export_is_applied_to_an_empty_project(wide: Api) -> None:
    body = {
        "type": "http",
        "name": "Web",
        "target": "https://shop.example/",
        "regions": ["eu", "us"],
    }
    path = f"/projects/{wide.project}/monitors"
    made = await call(wide, "POST", path, body, 201, who="editor")
    document = await export(wide)
    assert document["format"] == 3
    assert document["monitors"]["web"]["regional"] is True
    assert set((await applied(wide, document)).values()) == {"unchanged"}
    await call(wide, "DELETE", f"/monitors/{made['id']}", status=204, who="editor")
    assert set((await applied(wide, document)).values()) == {"create"}
    assert await parts(wide) == {"web": True, "web-eu": True, "web-us": True}
    await call(wide, "POST", f"/projects/{wide.project}/bundle/release", who="project_admin")
    assert await export(wide) == document
    web = (await monitors(wide))["web"]["id"]
    edited = await call(wide, "PATCH", f"/monitors/{web}", {"down_regions": 1}, who="editor")
    assert edited["down_regions"] == 1


async def test_an_earlier_format_leaves_it_joined(wide: Api) -> None:
    await applied(wide, bundle())
    document = bundle(web={name: one for name, one in WHOLE.items() if name != "regional"})
    assert set((await applied(wide, {**document, "format": 1})).values()) == {"unchanged"}
    assert all((await parts(wide)).values())


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"web": {**WHOLE, "config": {"mode": "all", "children": list(MEMBERS)}}}, "config.mode"),
        ({"web-eu": {**MEMBERS["web-eu"], "region": "core"}}, f"{CHILDREN}: regions"),
        ({"web-eu": {**MEMBERS["web-eu"], "retries": 2}}, f"{CHILDREN}: must have"),
        ({"web-eu": {**MEMBERS["web-eu"], "auto_incident": True}}, CHILDREN),
        ({"web-eu": {**MEMBERS["web-eu"], "depends_on": ["web-core"]}}, CHILDREN),
        ({"web-eu": {**WHOLE, "regional": False}}, "monitors.web"),
        ({"web2": {**WHOLE, "name": "Again"}}, "monitors.web2.config.children: must not be"),
        ({"web-core": {**MEMBERS["web-core"], "regional": True}}, "web-core.regional: is for"),
    ],
)
async def test_a_faulty_regional_entry_is_refused(
    wide: Api, given: dict[str, Any], fault: str
) -> None:
    path = f"/projects/{wide.project}/bundle/apply"
    refused = await call(wide, "POST", path, bundle(**given), 400, who="project_admin")
    assert fault in refused["error"], refused
    assert await parts(wide) == {}


async def test_a_bundle_does_not_change_one_part_of_people(wide: Api) -> None:
    body = {
        "type": "http",
        "name": "Web",
        "target": "https://shop.example/",
        "regions": ["eu", "us"],
    }
    await call(wide, "POST", f"/projects/{wide.project}/monitors", body, 201, who="editor")
    entry = {**WEB, "name": "Web (eu)", "region": "eu", "retries": 3}
    head = {"format": 3, "organization": "acme", "project": "shop"}
    document = {**head, "monitors": {"web-eu": entry}}
    path = f"/projects/{wide.project}/bundle/apply?take_over=true"
    refused = await call(wide, "POST", path, document, 400, who="project_admin")
    assert "is a part of a regional monitor that is not in the bundle" in refused["error"], refused


async def test_monitors_of_people_are_not_captured(wide: Api) -> None:
    path = f"/projects/{wide.project}/monitors"
    for uid, entry in MEMBERS.items():
        await call(wide, "POST", path, {**entry, "slug": uid}, 201, who="editor")
    apply = f"/projects/{wide.project}/bundle/apply"
    refused = await call(wide, "POST", apply, bundle(), 400, who="project_admin")
    assert "is left to its owner" in refused["error"], refused
    assert await parts(wide) == {"web-core": False, "web-eu": False}
    await applied(wide, bundle(), "?take_over=true")
    assert all((await parts(wide)).values())


async def test_a_member_of_another_regional_monitor_is_not_taken(wide: Api) -> None:
    await applied(wide, bundle())
    moved = {"web2": {**WHOLE, "name": "Again"}, "web": {**WHOLE, "regional": False}}
    apply = f"/projects/{wide.project}/bundle/apply"
    refused = await call(wide, "POST", apply, bundle(**moved), 400, who="project_admin")
    assert "is a part of another regional monitor" in refused["error"], refused


async def test_an_earlier_format_keeps_the_members_equal(wide: Api) -> None:
    await applied(wide, bundle())
    whole = {name: one for name, one in WHOLE.items() if name != "regional"}
    document = bundle(web=whole, **{"web-eu": {**MEMBERS["web-eu"], "retries": 2}})
    apply = f"/projects/{wide.project}/bundle/apply"
    refused = await call(wide, "POST", apply, {**document, "format": 1}, 400, who="project_admin")
    assert f"{CHILDREN}: must have" in refused["error"], refused


async def test_objectives_and_channels_of_a_regional_monitor_can_be_set(wide: Api) -> None:
    rule = {
        "long_window_seconds": 3_600,
        "short_window_seconds": 300,
        "threshold": 14.4,
        "severity": "page",
    }
    for objective in (99.0, 99.5):
        aims = {"30d": {"objective": objective, "burn_alert_enabled": True, "burn_rules": [rule]}}
        await applied(wide, bundle(web={**WHOLE, "sla_targets": aims, "channels": []}))
    await call(wide, "POST", f"/projects/{wide.project}/bundle/release", who="project_admin")
    web = (await monitors(wide))["web"]["id"]
    channel = {"channel_id": str(await wide.new_channel())}
    await call(wide, "POST", f"/monitors/{web}/notifications", channel, 204, who="editor")
    target = {"window": "7d", "objective": 99.0}
    await call(wide, "PUT", f"/monitors/{web}/sla-target", target, who="editor")
