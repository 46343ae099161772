"""A monitor in several regions: its parts are created, edited, paused and deleted together."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.storage.bulk.queries import select_report
from leadline.storage.bulk.rows import BulkReport
from leadline.storage.bulk.rules import BulkAct, ObjectState
from leadline.storage.bulk.transactions import BulkContext, begin_action, perform_next
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api

REGIONS = ("core", "attic", "cellar", "roof")
OPTIONS = HttpOptions(regions=frozenset(REGIONS), reserved={"roof": frozenset({"other"})})
SHOP = {
    "name": "Shop",
    "type": "http",
    "target": "https://shop.example/",
    "interval_seconds": 30,
    "tags": ["shop"],
    "config": {"headers": {"Authorization": "Bearer sesame"}},
}


@pytest.fixture
async def wide(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    async with open_api(pool, FROZEN_NOW, passwords, options=OPTIONS) as made:
        yield made


async def ask(api: Api, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = await api.ask("editor", method, f"/api/v1{path}", body)
    return answer.status_code, await answer.get_json()


async def make(api: Api, **given: Any) -> Any:
    status, made = await ask(api, "POST", f"/projects/{api.project}/monitors", {**SHOP, **given})
    assert status == 201, made
    return made


async def parts(api: Api) -> dict[str, Any]:
    """Returns the monitors of the project by their slugs."""
    _, found = await ask(api, "GET", f"/projects/{api.project}/monitors")
    return {one["slug"]: one for one in found}


async def test_a_monitor_is_created_in_each_region_with_one_that_counts_them(wide: Api) -> None:
    made = await make(wide, regions=["attic", "core", "cellar"], renotify_seconds=600)
    found = await parts(wide)
    assert sorted(found) == ["shop", "shop-attic", "shop-cellar", "shop-core"]
    whole = found["shop"]
    assert whole == made
    assert (whole["regions"], whole["down_regions"]) == (["attic", "cellar", "core"], 2)
    children = [found[f"shop-{region}"]["id"] for region in ("attic", "core", "cellar")]
    assert whole["config"] == {"children": children, "mode": "quorum", "quorum": 2}
    assert (whole["auto_incident"], whole["renotify_seconds"]) == (True, 600)
    assert "regional_monitor_id" not in whole
    for region in ("attic", "core", "cellar"):
        member = found[f"shop-{region}"]
        assert member["name"] == f"Shop ({region})"
        assert (member["type"], member["target"]) == ("http", SHOP["target"])
        assert (member["region"], member["regional_monitor_id"]) == (region, whole["id"])
        assert (member["auto_incident"], member["renotify_seconds"]) == (False, 0)
        assert "regions" not in member


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"regions": ["core"]}, "regions: must have 2 to 16 entries"),
        ({"regions": []}, "regions: must have 2 to 16 entries"),
        ({"regions": ["core", "core"]}, "regions: must not name anything twice"),
        ({"regions": ["core", "moon"]}, "regions: moon is not a region of this installation"),
        ({"regions": ["core", "roof"]}, "regions: roof is not a region of this installation"),
        ({"regions": ["core", "attic"], "down_regions": 3}, "down_regions: must be 1 to 2"),
        ({"regions": ["core", "attic"], "down_regions": 0}, "down_regions: must be 1 to 2"),
        ({"down_regions": 1}, "down_regions: is used with regions only"),
        (
            {"regions": ["core", "attic"], "type": "push", "target": "", "config": {}},
            "regions: are not available for monitors of type push",
        ),
        ({"regions": ["core", "attic"], "interval_seconds": 1}, "interval_seconds: must be"),
        ({"regions": ["core", "attic"], "target": ""}, "target: is required"),
    ],
)
async def test_a_fault_names_the_field_and_creates_nothing(
    wide: Api, given: dict[str, Any], fault: str
) -> None:
    path = f"/projects/{wide.project}/monitors"
    status, answer = await ask(wide, "POST", path, {**SHOP, **given})
    assert status == 400
    assert answer["error"].startswith(fault), answer
    assert await parts(wide) == {}


async def test_an_edit_reaches_every_part(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    other = await wide.new_monitor()
    given = {
        "name": "Store",
        "target": "https://shop.example/new",
        "interval_seconds": 60,
        "tags": ["store"],
        "down_regions": 1,
        "depends_on": [str(other.uid)],
    }
    status, whole = await ask(wide, "PATCH", f"/monitors/{made['id']}", given)
    assert status == 200, whole
    assert (whole["name"], whole["down_regions"]) == ("Store", 1)
    assert (whole["depends_on"], whole["target"]) == ([str(other.uid)], "")
    found = await parts(wide)
    for region in ("core", "attic"):
        member = found[f"shop-{region}"]
        assert member["name"] == f"Store ({region})"
        assert (member["target"], member["depends_on"]) == (given["target"], [])
        assert (member["interval_seconds"], member["tags"]) == (60, ["store"])
        # The secret of each member was kept.
        assert member["config"] == {"headers": {"Authorization": ""}}
    rows = await wide.rows(
        "select count(*) from monitors where config_ciphertext is not null and slug like 'shop-%%'"
    )
    assert rows == [(2,)]


async def test_a_region_is_added_with_the_secrets_and_another_one_left(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    before = await parts(wide)
    path = f"/monitors/{made['id']}"
    status, whole = await ask(wide, "PATCH", path, {"regions": ["core", "cellar"]})
    assert status == 200, whole
    after = await parts(wide)
    assert sorted(after) == ["shop", "shop-cellar", "shop-core"]
    assert whole["regions"] == ["cellar", "core"]
    assert whole["config"]["children"] == [after["shop-core"]["id"], after["shop-cellar"]["id"]]
    assert after["shop-core"]["id"] == before["shop-core"]["id"]
    assert after["shop-cellar"]["target"] == SHOP["target"]
    rows = await wide.rows(
        "select m.slug, m.config_ciphertext is not null, s.region from monitors m"
        " join shards s on s.id = m.shard where m.slug = 'shop-cellar'"
    )
    assert rows == [("shop-cellar", True, "cellar")]


async def test_all_regions_can_be_replaced(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    path = f"/monitors/{made['id']}"
    status, whole = await ask(wide, "PATCH", path, {"regions": ["cellar", "attic"]})
    assert status == 200, whole
    status, whole = await ask(wide, "PATCH", path, {"regions": ["core", "cellar"]})
    assert (status, whole["regions"]) == (200, ["cellar", "core"])
    # Fewer regions than must be down.
    await ask(wide, "PATCH", path, {"regions": ["core", "cellar", "attic"], "down_regions": 3})
    status, answer = await ask(wide, "PATCH", path, {"regions": ["core", "cellar"]})
    assert (status, answer["error"]) == (400, "down_regions: must be 1 to 2")
    assert len(await parts(wide)) == 4


async def test_a_taken_slug_gets_a_number(wide: Api) -> None:
    made = await make(wide, slug="front", regions=["core", "attic"])
    body = {"name": "Front cellar", "type": "push", "slug": "front-cellar"}
    status, _ = await ask(wide, "POST", f"/projects/{wide.project}/monitors", body)
    assert status == 201
    given = {"regions": ["core", "attic", "cellar"]}
    status, whole = await ask(wide, "PATCH", f"/monitors/{made['id']}", given)
    assert status == 200, whole
    assert "front-cellar-2" in await parts(wide)


async def test_a_part_cannot_be_changed_alone(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    member = (await parts(wide))["shop-core"]
    path = f"/monitors/{member['id']}"
    assert await ask(wide, "PATCH", path, {"name": "x"}) == (409, {"error": "regional_monitor"})
    assert await ask(wide, "DELETE", path) == (409, {"error": "regional_monitor"})
    for given in ({"regions": ["core", "attic"]}, {"down_regions": 1}):
        status, answer = await ask(wide, "PATCH", path, given)
        assert (status, answer["error"]) == (
            400,
            "regions: can be set for a regional monitor only",
        )
    status, answer = await ask(wide, "PATCH", f"/monitors/{made['id']}", {"region": "attic"})
    assert (status, answer["error"]) == (400, "region: use regions for a regional monitor")
    status, _ = await ask(
        wide, "POST", f"/monitors/{made['id']}/convert-to-service", {"sli": [member["id"]]}
    )
    assert status == 409


async def test_it_is_deleted_with_its_parts_unless_something_uses_one(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    member = (await parts(wide))["shop-core"]
    body = {"name": "Other", "type": "push", "depends_on": [member["id"]]}
    status, other = await ask(wide, "POST", f"/projects/{wide.project}/monitors", body)
    assert status == 201, other
    path = f"/monitors/{made['id']}"
    status, answer = await ask(wide, "DELETE", path)
    assert (status, answer) == (409, {"error": "in_use"})
    status, answer = await ask(wide, "PATCH", path, {"regions": ["attic", "cellar"]})
    assert (status, answer) == (409, {"error": "in_use"})
    assert len(await parts(wide)) == 4
    assert (await ask(wide, "DELETE", f"/monitors/{other['id']}"))[0] == 204
    assert (await ask(wide, "DELETE", path))[0] == 204
    assert await parts(wide) == {}
    deleted = await wide.rows("select count(*) from audit_entries where action = 'monitor.delete'")
    assert deleted == [(4,)]


async def test_members_without_their_composite_are_ordinary(wide: Api) -> None:
    """A process of the version before deletes the composite alone."""
    made = await make(wide, regions=["core", "attic"])
    async with wide.pool.transaction("delete") as tx:
        await tx.execute("delete from monitors where uid = %(uid)s::uuid", uid=made["id"])
    member = (await parts(wide))["shop-core"]
    assert "regional_monitor_id" not in member
    status, _ = await ask(wide, "PATCH", f"/monitors/{member['id']}", {"name": "Alone"})
    assert status == 200
    assert (await ask(wide, "DELETE", f"/monitors/{member['id']}"))[0] == 204


async def test_an_action_on_a_selection_changes_all_parts_together(wide: Api) -> None:
    made = await make(wide, regions=["core", "attic"])
    ((uid,),) = await wide.rows(
        "select u.uid from users u join memberships m on m.user_id = u.id"
        " join projects p on p.org = m.org and (m.project is null or m.project = p.id)"
        " where m.role = 'editor' and p.uid = %(project)s order by u.id limit 1",
        project=wide.project,
    )
    who = replace(wide.editor, uid=uid)
    ground = BulkContext(keyring=wide.context.keyring, raw_days=30)

    async def act(act: BulkAct, *parts_of: str, **values: str) -> BulkReport:
        found = await parts(wide)
        objects = [(UUID(found[slug]["id"]), slug) for slug in parts_of]
        async with wide.pool.transaction("begin") as tx:
            begun = await begin_action(tx, who, wide.project, act, values, objects)
        while await perform_next(wide.pool, begun, ground):
            pass
        async with wide.pool.transaction("report", read_only=True) as tx:
            org, project = await tx.row("select org, project from operations limit 1") or (0, 0)
            report = await select_report(tx, org, project, begun, 20)
        assert report is not None
        return report

    report = await act(BulkAct.PAUSE, "shop", "shop-core", "shop-attic")
    assert report.counts[ObjectState.FAILED] == 0
    assert [one["enabled"] for one in (await parts(wide)).values()] == [False] * 3
    report = await act(BulkAct.RESUME, "shop-core")
    assert report.counts[ObjectState.FAILED] == 1
    await act(BulkAct.RESUME, "shop")
    await act(BulkAct.TAG, "shop", tag="night")
    found = await parts(wide)
    assert [one["enabled"] for one in found.values()] == [True] * 3
    assert [one["tags"] for one in found.values()] == [["shop", "night"]] * 3
    assert found["shop"]["id"] == made["id"]
    await act(BulkAct.DELETE, "shop")
    assert await parts(wide) == {}


async def test_the_limit_of_the_organization_counts_all_parts(wide: Api) -> None:
    path = f"/api/v1/organizations/{wide.org}/limits"
    answer = await wide.ask("global_admin", "PUT", path, {"monitors": 2})
    assert answer.status_code == 200, await answer.get_data()
    status, refused = await ask(
        wide,
        "POST",
        f"/projects/{wide.project}/monitors",
        {**SHOP, "regions": ["core", "attic"]},
    )
    assert status == 400
    assert "limit" in refused["error"], refused
    assert await parts(wide) == {}
