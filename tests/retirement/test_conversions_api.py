"""A component is bound to another source only after a preview of the change."""

from typing import Any

import pytest

from leadline.http.status_pages.schemas.status_pages import ConversionPreview
from tests.status_pages.test_components_api import (
    BY_HAND,
    OWNER,
    audited,
    generation,
    listed,
    make,
    stored,
)
from tests.support.app.cast import Api
from tests.support.app.paging import stands
from tests.support.app.serving import NOWHERE, call

STALE = {"error": "page_configuration_stale"}


async def preview(api: Api, component: Any, status: int = 200, /, **target: Any) -> Any:
    path = f"/components/{component['id']}/conversion/preview"
    return await call(api, "POST", path, target, status, who=OWNER)


async def convert(api: Api, component: Any, status: int = 200, /, **target: Any) -> Any:
    path = f"/components/{component['id']}/conversion"
    return await call(api, "POST", path, target, status, who=OWNER)


def seen(preview: Any) -> dict[str, int]:
    return {name: preview[name] for name in ("revision", "page_generation")}


async def test_a_preview_shows_page_and_component_before_and_after(api: Api) -> None:
    page = await api.new_status_page()
    made = await make(api, page, manual_status="degraded")
    await make(api, page, name="Search", **BY_HAND)
    monitor = await api.new_monitor()
    await stands(api, monitor, "down")
    before = await stored(api)
    found = await preview(api, made, source="monitor", monitor_id=str(monitor.uid))
    assert set(found) == set(ConversionPreview.__struct_fields__)
    assert (found["component"]["status"], found["proposed"]["status"]) == (
        "degraded",
        "major_outage",
    )
    assert found["component"]["daily"] == []
    assert len(found["proposed"]["daily"]) == 90
    assert found["component"]["id"] == found["proposed"]["id"] == made["id"]
    assert found["summary"] == summary("degraded", "impaired", 0)
    assert found["proposed_summary"] == summary("major_outage", "impaired", 0)
    assert (found["revision"], found["page_generation"]) == (1, 3)
    assert (found["no_op"], found["reverts_to"]) == (False, "manual")
    assert len(found["notes"]) == 1
    assert await stored(api) == before, "a preview wrote a row"
    assert [action for action, _ in await audited(api)] == ["status_component.create"] * 2


def summary(status: str, state: str, unmeasured: int) -> dict[str, Any]:
    return {"summary": status, "summary_state": state, "unmeasured_count": unmeasured}


async def test_the_page_after_the_conversion_equals_the_preview(api: Api) -> None:
    page = await api.new_status_page()
    row = await api.new_monitor()
    monitor = row.uid
    made = await make(api, page, monitor_id=str(monitor))
    await make(api, page, name="Search", **BY_HAND)
    await stands(api, row, "down")
    service = await api.new_service()
    target = {"source": "service", "service_id": str(service)}
    found = await preview(api, made, **target)
    converted = await convert(api, made, **target, **seen(found))
    assert (converted["source"], converted["service_id"]) == ("service", str(service))
    assert "monitor_id" not in converted
    assert (converted["revision"], await generation(api)) == (2, 4)
    back = {"source": "monitor", "monitor_id": str(monitor)}
    again = await preview(api, made, **back)
    assert again["component"] == found["proposed"]
    assert again["summary"] == found["proposed_summary"]
    assert again["proposed"] == found["component"]
    assert again["reverts_to"] == "service"
    await convert(api, made, **back, **seen(again))
    assert (await listed(api, page))[0]["monitor_id"] == str(monitor)


async def test_a_component_of_a_deleted_source_is_bound_again(api: Api) -> None:
    page = await api.new_status_page()
    monitor, other = (await api.new_monitor()).uid, (await api.new_monitor()).uid
    made = await make(api, page, monitor_id=str(monitor))
    await call(api, "DELETE", f"/monitors/{monitor}", status=204)
    target = {"source": "monitor", "monitor_id": str(other)}
    found = await preview(api, made, **target)
    assert (found["component"]["reason"], found["component"]["unavailable"]) == ("not_bound", True)
    assert (found["proposed"]["reason"], found["no_op"]) == ("no_result_yet", False)
    assert "unavailable" not in found["proposed"]
    converted = await convert(api, made, **target, **seen(found))
    assert converted["monitor_id"] == str(other)


async def test_an_edit_after_the_preview_prevents_the_conversion(api: Api) -> None:
    page = await api.new_status_page()
    made, other = await make(api, page, **BY_HAND), await make(api, page, **BY_HAND)
    target = {"source": "manual", "manual_status": "no_data"}
    path = f"/components/{other['id']}"
    for change in (
        ("PATCH", f"/components/{made['id']}", {"name": "New"}, 200),
        ("PATCH", path, {"name": "New"}, 200),
        ("PATCH", f"/status-pages/{page}", {"title": "New"}, 200),
        ("DELETE", path, None, 204),
    ):
        found = await preview(api, made, **target)
        await call(api, *change, who=OWNER)
        before = await stored(api)
        assert await convert(api, made, 409, **target, **seen(found)) == STALE
        assert await stored(api) == before
    found = await preview(api, made, **target)
    for wrong in ({"revision": 70}, {"page_generation": 70}, {"revision": 1 << 70}):
        assert await convert(api, made, 409, **target, **{**seen(found), **wrong}) == STALE
    assert (await convert(api, made, **target, **seen(found)))["manual_status"] == "no_data"
    assert await convert(api, made, 409, **target, **seen(found)) == STALE


async def test_a_conversion_to_the_present_source_writes_no_row(api: Api) -> None:
    page = await api.new_status_page()
    monitor, service = (await api.new_monitor()).uid, await api.new_service()
    for number, (source, bound) in enumerate(
        {
            "monitor": {"monitor_id": str(monitor)},
            "service": {"service_id": str(service)},
            "manual": {"manual_status": "maintenance"},
        }.items()
    ):
        made = await make(api, page, **bound)
        before, log = await stored(api), await audited(api)
        found = await preview(api, made, source=source, **bound)
        assert (found["no_op"], found["notes"]) == (True, []), number
        assert "reverts_to" not in found
        assert found["component"] == found["proposed"]
        assert found["summary"] == found["proposed_summary"]
        assert await convert(api, made, source=source, **bound, **seen(found)) == made
        assert (await stored(api), await audited(api)) == (before, log)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "source: is required"),
        ({"source": "none"}, "source: "),
        ({"source": "manual"}, "manual_status: is required"),
        ({"source": "monitor"}, "monitor_id: is required"),
        ({"source": "service", "monitor_id": NOWHERE}, "service_id: is required"),
        (
            {"source": "manual", "manual_status": "no_data", "service_id": NOWHERE},
            "service_id: is not of source manual",
        ),
        ({"source": "monitor", "monitor_id": NOWHERE}, "binding not found"),
        ({"source": "service", "service_id": NOWHERE}, "binding not found"),
        ({"source": "manual", "manual_status": "fine"}, "manual_status: "),
        ({"source": "manual", "manual_status": "no_data", "revision": "1"}, "revision: "),
        ({"source": "manual", "manual_status": "no_data", "force": True}, "invalid JSON body"),
    ],
)
async def test_an_invalid_target_is_refused_in_preview_and_conversion(
    api: Api, body: dict[str, Any], error: str
) -> None:
    made = await make(api, await api.new_status_page(), **BY_HAND)
    before = await stored(api)
    assert (await preview(api, made, 400, **body))["error"].startswith(error)
    done = {"revision": 1, "page_generation": 2, **body}
    assert (await convert(api, made, 400, **done))["error"].startswith(error)
    assert await stored(api) == before


@pytest.mark.parametrize("missing", ["revision", "page_generation"])
async def test_a_conversion_names_the_previewed_revisions(api: Api, missing: str) -> None:
    made = await make(api, await api.new_status_page(), **BY_HAND)
    given = {"revision": 1, "page_generation": 2}
    del given[missing]
    target = {"source": "manual", "manual_status": "no_data"}
    assert await convert(api, made, 400, **target, **given) == {"error": f"{missing}: is required"}


async def test_a_binding_out_of_reach_is_refused_as_one_that_is_not_there(api: Api) -> None:
    made = await make(api, await api.new_status_page(), **BY_HAND)
    foreign = (await api.new_monitor("other/shop")).uid
    elsewhere = (await api.new_monitor("acme/mill")).uid
    missing = await preview(api, made, 400, source="monitor", monitor_id=NOWHERE)
    for uid in (foreign, elsewhere):
        target = {"source": "monitor", "monitor_id": str(uid)}
        assert await preview(api, made, 400, **target) == missing
        given = {"revision": 1, "page_generation": 2}
        assert await convert(api, made, 400, **target, **given) == missing


async def test_a_conversion_is_audited_by_the_ids_of_its_ends(api: Api) -> None:
    page = await api.new_status_page()
    monitor, service = (await api.new_monitor()).uid, await api.new_service()
    made = await make(api, page, monitor_id=str(monitor))
    ends = [
        {"source": "service", "service_id": str(service)},
        {"source": "manual", "manual_status": "operational"},
    ]
    for target in ends:
        await convert(api, made, **target, **seen(await preview(api, made, **target)))
    named = f"status_component:{made['id']} status_page:{page}"
    assert (await audited(api))[1:] == [
        ("status_component.convert", f"{named} monitor:{monitor}->service:{service}"),
        ("status_component.convert", f"{named} service:{service}->manual"),
    ]
