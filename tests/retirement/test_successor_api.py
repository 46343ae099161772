"""A service supersedes a monitor: the successor, retirement and reactivation, and the conversion of
a composite to a service with the same members."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.monitors.rows import MonitorRow
from tests.support.app.cast import Api
from tests.support.app.serving import call


async def successor(api: Api, monitor: UUID, service: object, status: int = 200) -> Any:
    return await call(api, "PUT", f"/monitors/{monitor}/successor", {"service_id": service}, status)


async def act(api: Api, monitor: UUID, what: str, status: int = 200) -> Any:
    return await call(api, "POST", f"/monitors/{monitor}/{what}", None, status)


async def supersedes(api: Api, service: UUID) -> list[Any]:
    found = await call(api, "GET", f"/projects/{api.project}/services/{service}")
    listed: list[Any] = found["supersedes"]
    return listed


async def composite(api: Api, *children: MonitorRow, **given: Any) -> MonitorRow:
    config = {"mode": "all", **given.pop("config", {})}
    config["children"] = [str(child.uid) for child in children]
    return await api.new_monitor(type="composite", target="", config=config, **given)


async def convert(api: Api, monitor: MonitorRow, status: int, *sli: UUID) -> Any:
    path = f"/monitors/{monitor.uid}/convert-to-service"
    return await call(api, "POST", path, {"sli": [str(uid) for uid in sli]}, status)


async def test_a_service_supersedes_a_monitor_until_it_is_removed(api: Api) -> None:
    row, service = await api.new_monitor(), await api.new_service()
    found = await successor(api, row.uid, str(service))
    assert found["superseded_by_service_id"] == str(service)
    (listed,) = await supersedes(api, service)
    assert listed == {
        "id": str(row.uid),
        "name": row.name,
        "slug": row.slug,
        "type": "http",
        "enabled": True,
    }
    audited = await api.rows("select count(*) from audit_entries")
    await successor(api, row.uid, str(service))
    assert await api.rows("select count(*) from audit_entries") == audited, (
        "an unchanged successor was audited"
    )
    found = await successor(api, row.uid, None)
    assert "superseded_by_service_id" not in found
    assert await supersedes(api, service) == []


async def test_only_a_service_of_the_project_can_supersede(api: Api) -> None:
    row = await api.new_monitor("acme/mill")
    for service in (await api.new_service(), uuid7()):
        refused = await call(
            api,
            "PUT",
            f"/monitors/{row.uid}/successor",
            {"service_id": str(service)},
            400,
            who="org_admin",
        )
        assert refused == {"error": "service_id: names no service of this project"}


async def test_a_monitor_without_a_successor_cannot_be_retired(api: Api) -> None:
    row = await api.new_monitor()
    assert await act(api, row.uid, "retire", 409) == {"error": "not_superseded"}
    assert await act(api, row.uid, "reactivate", 409) == {"error": "not_retired"}


async def test_a_retired_monitor_does_not_run_until_it_is_reactivated(api: Api) -> None:
    row, service = await api.new_monitor(), await api.new_service()
    await successor(api, row.uid, str(service))
    found = await act(api, row.uid, "retire")
    assert found["enabled"] is False
    assert found["retired_at"] == "2026-01-05T00:00:00.000Z"
    assert await act(api, row.uid, "retire") == found, "a second retirement changed the monitor"
    (listed,) = await supersedes(api, service)
    assert listed["retired_at"] == found["retired_at"]
    path = f"/monitors/{row.uid}"
    refused = await call(api, "PATCH", path, {"enabled": True}, 409)
    assert refused == {"error": "retired"}
    assert await successor(api, row.uid, None, 409) == {"error": "retired"}
    # The name of a retired monitor can change.
    assert (await call(api, "PATCH", path, {"name": "As it was"}))["name"] == "As it was"
    terms = await api.rows(
        "select enabled from monitor_terms where monitor = %(id)s order by from_at desc limit 1",
        id=row.id,
    )
    assert terms == [(False,)]
    assert await api.rows("select count(*) from jobs where monitor = %(id)s", id=row.id) == [(0,)]
    back = await act(api, row.uid, "reactivate")
    assert back["enabled"] is True
    assert "retired_at" not in back
    assert back["superseded_by_service_id"] == str(service)


async def test_a_used_monitor_cannot_be_retired(api: Api) -> None:
    service = await api.new_service()
    child, above, member = [await api.new_monitor() for _ in range(3)]
    await composite(api, child)
    await api.new_monitor(depends_on=[above.uid])
    declared = {
        "expected_revision": 0,
        "monitors": [str(member.uid)],
        "sli": [str(member.uid)],
        "policies": {},
    }
    path = f"/projects/{api.project}/services/{service}/declaration"
    await call(api, "PUT", path, declared)
    for row in (child, above, member):
        await successor(api, row.uid, str(service))
        assert await act(api, row.uid, "retire", 409) == {"error": "in_use"}


async def test_a_service_that_goes_leaves_what_is_retired_to_be_reactivated(api: Api) -> None:
    row, service = await api.new_monitor(), await api.new_service()
    await successor(api, row.uid, str(service))
    await act(api, row.uid, "retire")
    await call(api, "DELETE", f"/projects/{api.project}/services/{service}", None, 204)
    found = await call(api, "GET", f"/monitors/{row.uid}")
    assert "superseded_by_service_id" not in found
    assert "retired_at" in found
    assert (await act(api, row.uid, "reactivate"))["enabled"] is True


async def test_a_managed_monitor_cannot_be_changed(api: Api) -> None:
    row, service = await api.new_monitor(), await api.new_service()
    await successor(api, row.uid, str(service))
    async with api.pool.transaction("manage") as tx:
        await tx.execute(
            "update monitors set managed_by = 'ops', bundle_uid = 'x' where id = %(id)s",
            id=row.id,
        )
    assert await successor(api, row.uid, None, 409) == {"error": "managed_by_file"}
    for what in ("retire", "reactivate"):
        assert await act(api, row.uid, what, 409) == {"error": "managed_by_file"}


@pytest.mark.parametrize(
    ("config", "policies"),
    [
        ({"mode": "all"}, ("all", "all_regions")),
        ({"mode": "any"}, ("any", "any_region")),
        ({"mode": "quorum", "quorum": 2}, ("quorum", "all_regions")),
    ],
)
async def test_a_composite_becomes_a_service_with_the_same_status(
    api: Api, config: dict[str, Any], policies: tuple[str, str]
) -> None:
    one, other, third = [await api.new_monitor() for _ in range(3)]
    row = await composite(api, one, other, third, name="Shop", slug="the-shop", config=config)
    made = await convert(api, row, 201, one.uid, other.uid)
    service = made["service"]
    assert (service["slug"], service["name"]) == ("the-shop", "Shop")
    assert made["already_converted"] is False
    assert made["monitor"]["superseded_by_service_id"] == service["id"]
    assert made["monitor"]["enabled"] is True, "the conversion disabled the composite"
    found = await call(api, "GET", f"/projects/{api.project}/services/{service['id']}")
    declaration = found["declaration"]
    assert declaration["monitors"] == [str(r.uid) for r in (one, other, third)]
    assert declaration["sli"] == [str(one.uid), str(other.uid)]
    said = declaration["policies"]
    assert (said["aggregation"]["mode"], said["region"]["mode"]) == policies
    if policies[0] == "quorum":
        # Down when both are down.
        assert said["aggregation"]["healthy_min"] == 1
        assert said["aggregation"]["degraded_min"] == 1
    assert [each["id"] for each in found["supersedes"]] == [str(row.uid)]
    again = await convert(api, row, 200)
    assert again["already_converted"] is True
    assert again["service"] == found["service"]
    # A retired composite no longer protects its members from deletion.
    retired = await act(api, row.uid, "retire")
    assert "retired_at" in retired


async def test_the_service_has_the_paging_of_the_composite(api: Api) -> None:
    one, policy = await api.new_monitor(), await api.new_policy()
    row = await composite(api, one, escalation_policy_id=str(policy))
    made = await convert(api, row, 201, one.uid)
    assert made["service"]["escalation_policy_id"] == str(policy)


async def test_a_refused_conversion_has_a_reason_and_creates_no_service(api: Api) -> None:
    one, other, foreign = [await api.new_monitor() for _ in range(3)]
    row = await composite(api, one, other)
    before = await api.rows("select count(*) from services")

    async def refused(status: int, of: MonitorRow, *sli: UUID) -> str:
        said: str = (await convert(api, of, status, *sli))["error"]
        assert await api.rows("select count(*) from services") == before
        return said

    assert await refused(400, one, one.uid) == "type: only a composite becomes a service"
    assert await refused(400, row) == "sli: must name which of its 2 children count"
    said = await refused(400, row, one.uid, foreign.uid)
    assert said == "sli[1]: is not a child of the composite"
    await call(api, "PATCH", f"/monitors/{other.uid}", {"enabled": False})
    said = await refused(400, row, one.uid)
    assert said == f"children: {other.slug} is not live: it is paused or retired"
    await call(api, "PATCH", f"/monitors/{other.uid}", {"enabled": True})
    await api.new_service(slug=row.slug, name="in the way")
    before = await api.rows("select count(*) from services")
    assert await refused(409, row, one.uid) == f"slug: {row.slug} is taken by a service"


async def test_a_quorum_over_several_regions_cannot_be_converted(api: Api) -> None:
    here, there = await api.new_monitor(), await api.new_monitor(region="eu")
    row = await composite(api, here, there, config={"mode": "quorum", "quorum": 1})
    said = (await convert(api, row, 400, here.uid, there.uid))["error"]
    assert said.startswith("quorum: its children are in several regions")
    assert (await convert(api, row, 201, here.uid))["already_converted"] is False


async def test_one_of_many_concurrent_conversions_succeeds(api: Api) -> None:
    one = await api.new_monitor()
    row = await composite(api, one)
    statuses: Counter[int] = Counter()

    async def ask() -> None:
        path = f"/api/v1/monitors/{row.uid}/convert-to-service"
        answer = await api.ask("editor", "POST", path, {"sli": [str(one.uid)]})
        statuses[answer.status_code] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(ask)
    assert statuses == {201: 1, 200: 5}
    assert await api.rows("select count(*) from services where slug = %(s)s", s=row.slug) == [(1,)]
