"""Mutes by API: scopes, bounds, audit, the mutes of an object, and no way to another tenant."""

from typing import Any
from uuid import uuid4

import pytest

from leadline.storage.mutes.rules.label_matcher import TEXT_LONGEST
from tests.support.app.cast import Api
from tests.support.app.serving import call

UNTIL = "2026-01-06T00:00:00.000Z"


def path_of(api: Api, project: str = "acme/shop") -> str:
    return f"/projects/{api.projects[project][1]}/mutes"


async def make(api: Api, status: int = 201, **given: Any) -> Any:
    body = {"reason": "known", "ends_at": UNTIL, **given}
    return await call(api, "POST", path_of(api), body, status)


async def test_a_mute_is_made_listed_changed_and_ended(api: Api) -> None:
    made = await make(api, matchers="{tag=db}", reason=" network \n change ")
    assert made == {
        "id": made["id"],
        "project_id": str(api.project),
        "matchers": 'tag="db"',
        "reason": "network change",
        "starts_at": made["created_at"],
        "ends_at": UNTIL,
        "state": "active",
        "muted_by": made["muted_by"],
        "created_at": made["created_at"],
    }
    later = await make(api, matchers="tag=x", starts_at="2026-01-05T23:00:00Z")
    assert later["state"] == "pending"
    assert await call(api, "GET", path_of(api), who="viewer") == [made, later]
    one = f"/mutes/{made['id']}"
    changed = await call(
        api, "PATCH", one, {"reason": "still", "ends_at": "2026-01-07T00:00:00.000Z"}
    )
    assert changed == {**made, "reason": "still", "ends_at": "2026-01-07T00:00:00.000Z"}
    await call(api, "DELETE", one, status=204)
    await call(api, "DELETE", one, status=204)
    assert (await call(api, "GET", one))["state"] == "ended"
    assert await call(api, "PATCH", one, {"reason": "x"}, 409) == {"error": "mute_ended"}
    # One that has not started leaves nothing.
    await call(api, "DELETE", f"/mutes/{later['id']}", status=204)
    await call(api, "GET", f"/mutes/{later['id']}", status=404)
    states = [one["state"] for one in await call(api, "GET", path_of(api))]
    assert states == ["ended"]
    assert await call(api, "GET", f"{path_of(api)}?state=active") == []
    rows = await api.rows("select action, target from audit_entries order by id")
    assert [action for action, _ in rows] == [
        "mute.create",
        "mute.create",
        "mute.update",
        "mute.end",
        "mute.end",
    ]
    assert 'matchers={tag="db"}' in rows[0][1]
    assert rows[0][1].endswith("reason=network change")


async def test_the_mutes_of_an_object_are_those_in_force_for_it(api: Api) -> None:
    monitor = await api.new_monitor(tags=["db"])
    service = await api.new_service()
    incident = await api.new_incident(monitor=monitor.uid)
    by_tag = await make(api, matchers='tag="db"')
    own = await make(api, monitor_id=str(monitor.uid))
    of_service = await make(api, service_id=str(service))
    await make(api, monitor_id=str(monitor.uid), starts_at="2026-01-05T23:00:00Z")
    for path in (f"/monitors/{monitor.uid}", f"/incidents/{incident}"):
        found = await call(api, "GET", f"{path}/mutes", who="viewer")
        assert found == [by_tag, own]
    assert await call(
        api, "GET", f"/projects/{api.project}/services/{service}/mutes", who="viewer"
    ) == [of_service]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "matchers"),
        ({"matchers": "a=b", "monitor_id": str(uuid4())}, "matchers"),
        ({"monitor_id": str(uuid4())}, "monitor_id"),
        ({"service_id": str(uuid4())}, "service_id"),
        ({"matchers": "tag"}, "matchers"),
        ({"matchers": 'tag!="x"'}, "matchers"),
        ({"matchers": f'a="{"x" * TEXT_LONGEST}"'}, "matchers"),
        ({"matchers": "a=b", "reason": " "}, "reason"),
        ({"matchers": "a=b", "ends_at": "2026-01-04T00:00:00Z"}, "ends_at"),
        ({"matchers": "a=b", "ends_at": "soon"}, "ends_at"),
        ({"matchers": "a=b", "ends_at": "2027-06-01T00:00:00.000Z"}, "ends_at"),
    ],
)
async def test_a_wrong_mute_is_refused_with_its_field(
    api: Api, given: dict[str, Any], field: str
) -> None:
    refused = await make(api, 400, **given)
    assert refused["error"].startswith(f"{field}: ")


async def test_a_mute_of_another_project_applies_to_no_object_here(api: Api) -> None:
    here = await api.new_monitor(tags=["db"])
    body = {"reason": "x", "ends_at": UNTIL}
    mill = path_of(api, "acme/mill")
    foreign = {**body, "monitor_id": str(here.uid)}
    refused = await call(api, "POST", mill, foreign, 400, who="org_admin")
    assert refused == {"error": "monitor_id: names no monitor of this project"}
    await call(api, "POST", mill, {**body, "matchers": "tag=db"}, 201, who="org_admin")
    assert await call(api, "GET", f"/monitors/{here.uid}/mutes") == []
