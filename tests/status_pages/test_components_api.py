"""Components of status pages: bindings, order, edits and the audit log."""

from typing import Any
from uuid import UUID

import pytest

from leadline.http.status_pages.schemas.status_pages import Component
from leadline.storage.core.instant import to_text
from leadline.storage.status_pages.rules.status_page import COMPONENTS_MOST
from leadline.storage.status_pages.transactions import edit_components
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import NOWHERE, call

OWNER = "org_admin"
BY_HAND = {"manual_status": "operational"}


async def make(api: Api, page: UUID, status: int = 201, /, **given: Any) -> Any:
    path = f"/status-pages/{page}/components"
    return await call(api, "POST", path, {"name": "Checkout", **given}, status, who=OWNER)


async def edit(api: Api, component: Any, status: int = 200, /, **given: Any) -> Any:
    body = {"name": component["name"], **given}
    return await call(api, "PATCH", f"/components/{component['id']}", body, status, who=OWNER)


async def listed(api: Api, page: UUID, who: str = OWNER) -> Any:
    return await call(api, "GET", f"/status-pages/{page}/components", who=who)


async def stored(api: Api) -> list[tuple[Any, ...]]:
    tables = ("status_pages", "status_components")
    return [row for t in tables for row in await api.rows(f"select t::text from {t} t order by id")]


async def generation(api: Api) -> int:
    ((found,),) = await api.rows("select generation from status_pages")
    return int(found)


async def audited(api: Api) -> list[tuple[str, str]]:
    return [
        (action, target)
        for action, target in await api.rows(
            "select action, target from audit_entries"
            " where action like 'status_component%%' order by id"
        )
    ]


async def organization_page(api: Api) -> UUID:
    return await api.new_status_page(project=None)


async def test_a_component_is_created_listed_edited_and_deleted(api: Api) -> None:
    page = await api.new_status_page()
    made = await make(api, page, description="Pays\nall.", group="Shop", **BY_HAND)
    assert made == {
        "id": made["id"],
        "status_page_id": str(page),
        "name": "Checkout",
        "description": "Pays\nall.",
        "group": "Shop",
        "position": 0,
        "org_id": str(api.org),
        "source": "manual",
        "manual_status": "operational",
        "show_latency": False,
        "revision": 1,
        "created_at": to_text(FROZEN_NOW),
        "updated_at": to_text(FROZEN_NOW),
    }
    assert set(made) <= set(Component.__struct_fields__)
    assert await listed(api, page, "viewer") == [made]
    edited = await edit(api, made, name="Paying", manual_status="degraded", position=4)
    assert edited == made | {
        "name": "Paying",
        "manual_status": "degraded",
        "position": 4,
        "revision": 2,
    }
    path = f"/components/{made['id']}"
    await call(api, "DELETE", path, status=204, who=OWNER)
    await call(api, "DELETE", path, status=404, who=OWNER)
    assert await listed(api, page) == []


async def test_a_name_alone_makes_a_manual_component(api: Api) -> None:
    made = await make(api, await api.new_status_page())
    assert (made["source"], made["manual_status"]) == ("manual", "operational")


async def test_bound_components_name_their_source_and_its_project(api: Api) -> None:
    page = await api.new_status_page()
    monitor, service = (await api.new_monitor()).uid, await api.new_service()
    one = await make(api, page, monitor_id=str(monitor))
    other = await make(api, page, service_id=str(service))
    place = str(api.project)
    assert (one["source"], one["monitor_id"], one["source_project"]) == (
        "monitor",
        str(monitor),
        place,
    )
    assert (other["source"], other["service_id"], other["source_project"]) == (
        "service",
        str(service),
        place,
    )
    assert {"service_id", "manual_status"}.isdisjoint(one)
    assert {"monitor_id", "manual_status"}.isdisjoint(other)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({**BY_HAND, "monitor_id": NOWHERE}, "manual_status: a component has one source"),
        ({"service_id": NOWHERE, "monitor_id": NOWHERE}, "service_id: a component has one source"),
        ({**BY_HAND, "name": ""}, "name: "),
        ({**BY_HAND, "name": " "}, "name: must not be blank"),
        ({**BY_HAND, "name": "x" * 101}, "name: "),
        ({**BY_HAND, "name": "a\nb"}, "name: must not contain control characters"),
        ({**BY_HAND, "description": "x" * 501}, "description: "),
        ({**BY_HAND, "description": "a\u0007"}, "description: must not contain control characters"),
        ({**BY_HAND, "group": "x" * 101}, "group: "),
        ({**BY_HAND, "group": "a\tb"}, "group: must not contain control characters"),
        ({**BY_HAND, "position": -1}, "position: "),
        ({**BY_HAND, "position": 1 << 40}, "position: "),
        ({**BY_HAND, "position": "1"}, "position: "),
        ({"manual_status": "fine"}, "manual_status: "),
        ({"monitor_id": None}, "monitor_id: "),
        ({"monitor_id": "x"}, "monitor_id: "),
        ({**BY_HAND, "source": "manual"}, "invalid JSON body"),
    ],
)
async def test_an_invalid_component_is_refused_with_its_field(
    api: Api, body: dict[str, Any], error: str
) -> None:
    page = await api.new_status_page()
    before = await stored(api)
    refused = await make(api, page, 400, **body)
    assert refused["error"].startswith(error)
    assert await stored(api) == before
    assert await audited(api) == []


@pytest.mark.parametrize("field", ["monitor_id", "service_id"])
async def test_missing_and_foreign_bindings_get_the_same_error(api: Api, field: str) -> None:
    page, wide = await api.new_status_page(), await organization_page(api)
    other = await api.new_status_page(project=api.projects["acme/mill"][1])
    foreign = (await api.new_monitor("other/shop")).uid
    mine = (await api.new_monitor()).uid if field == "monitor_id" else await api.new_service()
    elsewhere = (await api.new_monitor("acme/mill")).uid
    before = await stored(api)
    missing = await make(api, page, 400, **{field: NOWHERE})
    assert missing == {"error": "binding not found"}
    for where, what in (
        (wide, NOWHERE),
        (page, foreign),
        (wide, foreign),
        (page, elsewhere),
        (other, mine),
        (page, api.project),
        (page, page),
    ):
        assert await make(api, where, 400, **{field: str(what)}) == missing
    assert await stored(api) == before
    await make(api, page, **{field: str(mine)})
    await make(api, wide, **{field: str(mine)})


async def test_a_service_id_is_not_accepted_as_a_monitor_id(api: Api) -> None:
    page = await api.new_status_page()
    monitor, service = (await api.new_monitor()).uid, await api.new_service()
    for body in ({"monitor_id": str(service)}, {"service_id": str(monitor)}):
        assert await make(api, page, 400, **body) == {"error": "binding not found"}


async def test_a_component_without_a_position_is_last(api: Api) -> None:
    page = await api.new_status_page()
    for name, given in (("a", {}), ("b", {"position": 7}), ("c", {}), ("d", {"position": 0})):
        await make(api, page, **{**BY_HAND, **given, "name": name})
    found = await listed(api, page)
    assert [(one["name"], one["position"]) for one in found] == [
        ("a", 0),
        ("d", 0),
        ("b", 7),
        ("c", 8),
    ]
    await edit(api, found[2], position=9)
    assert [one["name"] for one in await listed(api, page)] == ["a", "d", "c", "b"]


async def test_the_component_quota_of_a_page(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert COMPONENTS_MOST == 200
    monkeypatch.setattr(edit_components, "COMPONENTS_MOST", 2)
    page = await api.new_status_page()
    first = await make(api, page, **BY_HAND)
    await make(api, page, **BY_HAND)
    assert await make(api, page, 409, **BY_HAND) == {"error": "component_quota"}
    await make(api, await api.new_status_page(), **BY_HAND)
    await call(api, "DELETE", f"/components/{first['id']}", status=204, who=OWNER)
    await make(api, page, **BY_HAND)


async def test_only_manual_components_accept_a_manual_status(api: Api) -> None:
    page = await api.new_status_page()
    bound = await make(api, page, monitor_id=str((await api.new_monitor()).uid))
    before = await stored(api)
    refused = await edit(api, bound, 400, manual_status="operational")
    assert refused == {"error": "manual_status: is for a component that is set by hand"}
    for body in ({"monitor_id": NOWHERE}, {"service_id": NOWHERE}, {"source": "manual"}):
        assert await edit(api, bound, 400, **body) == {"error": "invalid JSON body"}
    assert await stored(api) == before


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": " "}, "name: must not be blank"),
        ({"description": "x" * 501}, "description: "),
        ({"group": "a\nb"}, "group: "),
        ({"position": -1}, "position: "),
        ({"manual_status": "fine"}, "manual_status: "),
    ],
)
async def test_an_invalid_edit_changes_nothing(api: Api, body: dict[str, Any], error: str) -> None:
    made = await make(api, await api.new_status_page(), **BY_HAND)
    before = await stored(api)
    assert (await edit(api, made, 400, **body))["error"].startswith(error)
    assert await stored(api) == before


async def test_omitted_fields_of_an_edit_stay_unchanged(api: Api) -> None:
    page = await api.new_status_page()
    made = await make(api, page, description="d", group="g", position=3, **BY_HAND)
    assert await edit(api, made, name="New") == made | {"name": "New", "revision": 2}
    cleared = await edit(api, made, name="New", description="", group="")
    assert (cleared["description"], cleared["group"], cleared["position"]) == ("", "", 3)


async def test_an_edit_raises_the_revision_and_an_empty_edit_does_not(
    api: Api,
) -> None:
    page = await api.new_status_page()
    assert await generation(api) == 1
    made = await make(api, page, **BY_HAND)
    other = await make(api, page, **BY_HAND)
    assert await generation(api) == 3
    assert (await edit(api, made, name="New"))["revision"] == 2
    assert await generation(api) == 4
    before, log = await stored(api), await audited(api)
    assert (await edit(api, made, name="New", **BY_HAND))["revision"] == 2
    assert (await stored(api), await audited(api)) == (before, log)
    await call(api, "DELETE", f"/components/{other['id']}", status=204, who=OWNER)
    assert await generation(api) == 5


async def test_a_component_outlives_its_monitor_or_service(api: Api) -> None:
    page = await api.new_status_page()
    monitor, service = (await api.new_monitor()).uid, await api.new_service()
    await make(api, page, monitor_id=str(monitor))
    await make(api, page, service_id=str(service))
    await call(api, "DELETE", f"/monitors/{monitor}", status=204)
    await call(api, "DELETE", f"/projects/{api.project}/services/{service}", status=204)
    found = await listed(api, page)
    assert [one["source"] for one in found] == ["monitor", "service"]
    for one in found:
        assert {"monitor_id", "service_id", "source_project"}.isdisjoint(one)


async def test_bindings_are_hidden_from_members_of_other_projects(
    api: Api,
) -> None:
    page = await organization_page(api)
    await make(api, page, monitor_id=str((await api.new_monitor()).uid))
    await make(api, page, service_id=str(await api.new_service()))
    bound = {"monitor_id", "service_id", "source_project"}
    for who in ("viewer", "shopkeeper", "shop_token", "global_admin"):
        assert [len(bound & set(one)) for one in await listed(api, page, who)] == [2, 2], who
    for one in await listed(api, page, "neighbour"):
        assert bound.isdisjoint(one)
        assert one["name"] == "Checkout"


async def test_every_write_has_one_audit_entry_with_ids(api: Api) -> None:
    page = await api.new_status_page()
    made = await make(api, page, description="Hidden words", **BY_HAND)
    named = f"status_component:{made['id']} status_page:{page}"
    await edit(api, made, name="Hidden name")
    await edit(api, made, name="Hidden name", manual_status="no_data")
    await call(api, "DELETE", f"/components/{made['id']}", status=204, who=OWNER)
    assert await audited(api) == [
        ("status_component.create", named),
        ("status_component.update", named),
        ("status_component.update", f"{named} status=operational->no_data"),
        ("status_component.delete", named),
    ]
