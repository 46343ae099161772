"""Services over HTTP: creation, lists, deletion, dependencies and escalation policies."""

from typing import Any
from uuid import UUID

import pytest

from leadline.storage.core.instant import to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import (
    NOWHERE,
    audited,
    call,
    declared,
    document,
    managed,
    new,
    refused,
    services_of,
    uid_of,
)

NOW = to_text(FROZEN_NOW)


async def generation(api: Api, path: str) -> int:
    graph = await call(api, "GET", f"{path}/dependencies", who="viewer")
    return int(graph["graph_generation"])


async def depend(
    api: Api, path: str, *upstreams: str, status: int = 200, seen: int | None = None
) -> Any:
    body = {
        "depends_on": [uid_of(upstream) for upstream in upstreams],
        "graph_generation": await generation(api, path) if seen is None else seen,
    }
    return await call(api, "PUT", f"{path}/dependencies", body, status)


async def test_a_service_is_created_listed_read_and_deleted(api: Api) -> None:
    body = {"slug": "checkout", "name": "Checkout", "description": "Money\ncomes in here."}
    made = await call(api, "POST", services_of(api), body, 201)
    assert made == {**body, "id": made["id"], "created_at": NOW, "updated_at": NOW}
    assert await call(api, "GET", services_of(api), who="viewer") == [
        {
            "service": made,
            "revision": 0,
            "context_members": 0,
            "sli_members": 0,
            "epoch_seq": 0,
            "repairing_count": 0,
        }
    ]
    path = f"{services_of(api)}/{made['id']}"
    assert await call(api, "GET", path, who="viewer") == {
        "service": made,
        "declaration": None,
        "epoch": None,
        "materialization": {"repairing": []},
        "reliability": None,
        "alerting_state": {
            signal: {"armed": False, "reason": "no_owning_service"} for signal in ("live", "burn")
        },
        "alerting": {
            "owns_paging": False,
            "page_on": ["down"],
            "page_on_unknown": False,
            "confirm_evaluations": 2,
            "renotify_seconds": 0,
        },
        "dependencies": {"graph_generation": 0, "depends_on": [], "depended_on_by": []},
        "supersedes": [],
        "sla_targets": [],
    }
    await call(api, "DELETE", path, status=204)
    assert await call(api, "GET", services_of(api)) == []
    for method in ("GET", "DELETE"):
        assert await call(api, method, path, status=404) == {"error": "not_found"}
    target = f"service:{made['id']} project:{api.project} slug=checkout"
    assert await audited(api) == [("service.create", target), ("service.delete", target)]


async def test_name_and_slug_are_derived_from_each_other(
    api: Api,
) -> None:
    made = await call(api, "POST", services_of(api), {"slug": "pay"}, 201)
    assert made["name"] == "pay"
    slugs = []
    for _ in range(2):
        made = await call(api, "POST", services_of(api), {"name": "Größe & Co"}, 201)
        slugs.append(made["slug"])
    assert slugs == ["grosse-co", "grosse-co-2"]
    assert await refused(api, "POST", services_of(api), {}, 400) == "slug: is required"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"slug": "Checkout"}, "slug: "),
        ({"slug": "1a"}, "slug: "),
        ({"slug": "a", "name": ""}, "name: "),
        ({"slug": "a", "name": "  "}, "name: "),
        ({"slug": "a", "name": "a\tb"}, "name: "),
        ({"slug": "a", "description": "x" * 2_001}, "description: "),
        ({"slug": "a", "description": "\u0007"}, "description: "),
        ({"slug": "a", "depends_on": ["x"]}, "depends_on"),
        ({"slug": "a", "managed_by": "files"}, "invalid JSON body"),
        ({"slug": "a", "escalation_policy_id": "x"}, "owner_not_in_project"),
        ({"slug": "a", "escalation_policy_id": NOWHERE}, "owner_not_in_project"),
        ({"slug": "a", "oncall_schedule_id": NOWHERE}, "owner_not_in_project"),
        ({"slug": "a", "depends_on": [NOWHERE]}, "dependency_not_in_project"),
    ],
)
async def test_an_invalid_service_is_refused(api: Api, body: dict[str, Any], field: str) -> None:
    said = await refused(api, "POST", services_of(api), body, 400)
    assert said.startswith(field)
    assert await call(api, "GET", services_of(api)) == []
    assert await audited(api) == []


async def test_a_slug_is_unique_in_its_project(api: Api) -> None:
    await new(api, "checkout")
    said = await refused(api, "POST", services_of(api), {"slug": "checkout"}, 409)
    assert said == "slug_taken"
    other = services_of(api, "acme/mill")
    await call(api, "POST", other, {"slug": "checkout"}, 201)


async def test_a_service_is_found_only_in_its_own_project(api: Api) -> None:
    path = await declared(api)
    uid = uid_of(path)
    reads = ["", "/dependencies", "/reliability", "/health", "/alerting", "/alerting/state"]
    for place in ("acme/mill", "other/shop"):
        elsewhere = f"{services_of(api, place)}/{uid}"
        for read in reads:
            await call(api, "GET", f"{elsewhere}{read}", status=404, who="org_admin")
        writes: list[tuple[str, str, Any]] = [
            ("DELETE", "", None),
            ("PUT", "/declaration", document()),
            ("PUT", "/dependencies", {"depends_on": [], "graph_generation": 0}),
            ("PUT", "/sla-target", {"objective": 99}),
            ("PATCH", "/alerting", {"owns_paging": True}),
            ("PUT", "/escalation-policy", {"escalation_policy_id": ""}),
            ("PUT", "/sla-target/burn-alerting", {"burn_alert_enabled": True}),
        ]
        for method, write, body in writes:
            said = await refused(api, method, f"{elsewhere}{write}", body, 404)
            assert said == "not_found", write
    assert (await call(api, "GET", path))["declaration"]["revision"] == 1


async def test_dependencies_are_listed_from_both_ends_with_health(api: Api) -> None:
    database, cache = await new(api, "database"), await new(api, "cache")
    shop = await new(api, "shop", depends_on=[uid_of(database)])
    graph = await depend(api, shop, database, cache)
    assert graph["graph_generation"] == 2
    assert [edge["slug"] for edge in graph["depends_on"]] == ["cache", "database"]
    assert graph["depended_on_by"] == []
    health = {"unstable": False, "as_of": NOW, "sli": "unknown", "diagnostics": "unknown"}
    assert graph["depends_on"][0] == {
        "id": uid_of(cache),
        "slug": "cache",
        "name": "cache",
        "health": health,
    }
    below = await call(api, "GET", f"{database}/dependencies", who="viewer")
    assert [edge["slug"] for edge in below["depended_on_by"]] == ["shop"]
    assert (await call(api, "GET", shop))["dependencies"] == graph
    assert (await depend(api, shop))["depends_on"] == []
    assert (await call(api, "GET", f"{cache}/dependencies"))["depended_on_by"] == []


async def test_the_same_dependencies_again_change_nothing(api: Api) -> None:
    one, other = await new(api, "one"), await new(api, "other")
    first = await depend(api, one, other)
    before = await audited(api)
    assert await depend(api, one, other, other) == first
    assert await audited(api) == before


async def test_a_stale_graph_generation_is_refused(api: Api) -> None:
    one, two, three = [await new(api, slug) for slug in ("one", "two", "three")]
    seen = await generation(api, one)
    await depend(api, one, two)
    stale = await depend(api, three, two, status=409, seen=seen)
    assert stale == {"error": "graph_generation_stale"}
    await depend(api, three, two)
    seen = await generation(api, one)
    await call(api, "DELETE", two, status=204)
    stale = await depend(api, one, three, status=409, seen=seen)
    assert stale == {"error": "graph_generation_stale"}
    graph = await depend(api, one, three)
    assert [edge["slug"] for edge in graph["depends_on"]] == ["three"]


async def test_a_dependency_cycle_is_refused_and_named_by_slugs(api: Api) -> None:
    one, two, three = [await new(api, slug) for slug in ("one", "two", "three")]
    await depend(api, one, two)
    await depend(api, two, three)
    said = await depend(api, three, one, status=400)
    assert said == {"error": "dependency_cycle: three -> one -> two -> three"}
    said = await depend(api, one, one, status=400)
    assert said == {"error": "dependency_cycle: one -> one"}
    graph = await call(api, "GET", f"{three}/dependencies")
    assert graph["depends_on"] == []


async def test_a_dependency_chain_has_at_most_ten_steps(api: Api) -> None:
    chain = [await new(api, "s0")]
    for number in range(1, 11):
        chain.append(await new(api, f"s{number}", depends_on=[uid_of(chain[-1])]))
    body = {"slug": "s11", "depends_on": [uid_of(chain[-1])]}
    assert await refused(api, "POST", services_of(api), body, 400) == "dependency_depth"
    deeper = await new(api, "deeper")
    assert (await depend(api, chain[0], deeper, status=400))["error"].startswith("dependency_depth")


async def test_a_service_has_at_most_twenty_dependencies_of_its_project(api: Api) -> None:
    upstreams = [await new(api, f"u{n}") for n in range(21)]
    one = await new(api, "one")
    said = await depend(api, one, *upstreams, status=400)
    assert said == {"error": "too_many_dependencies"}
    assert len((await depend(api, one, *upstreams[:20]))["depends_on"]) == 20
    mill = await call(api, "POST", services_of(api, "acme/mill"), {"slug": "mill"}, 201)
    for foreign in (mill["id"], NOWHERE):
        said = await depend(api, one, foreign, status=400)
        assert said == {"error": "dependency_not_in_project"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"graph_generation": 0}, "depends_on: is required"),
        ({"depends_on": []}, "graph_generation: is required"),
        ({"depends_on": None, "graph_generation": 0}, "depends_on: expected array, got null"),
    ],
)
async def test_an_invalid_dependency_document_is_refused(api: Api, body: Any, error: str) -> None:
    path = await new(api, "one")
    assert await refused(api, "PUT", f"{path}/dependencies", body, 400) == error


async def test_a_file_managed_service_is_read_only(api: Api) -> None:
    one, other = await declared(api, "one"), await new(api, "other")
    await call(api, "PUT", f"{one}/sla-target", {"objective": 99})
    await depend(api, one, other)
    await managed(api, one)
    seen = await generation(api, one)
    monitor = (await api.new_monitor()).uid
    writes: list[tuple[str, str, Any]] = [
        ("DELETE", "", None),
        ("PUT", "/declaration", document(monitor, revision=1)),
        ("PUT", "/dependencies", {"depends_on": [], "graph_generation": seen}),
        ("PUT", "/sla-target", {"objective": 98}),
        ("PATCH", "/alerting", {"owns_paging": True}),
        ("PUT", "/escalation-policy", {"escalation_policy_id": ""}),
        ("PUT", "/sla-target/burn-alerting", {"burn_alert_enabled": True}),
    ]
    before = await call(api, "GET", one)
    assert before["service"]["managed_by"] == "files"
    for method, write, body in writes:
        assert await refused(api, method, f"{one}{write}", body, 409) == "managed_by_file", write
    # The file declares a dependency on the other service.
    assert await refused(api, "DELETE", other, None, 409) == "managed_by_file"
    assert await call(api, "GET", one) == before


async def test_support_hours_of_a_file_managed_service_are_set(api: Api) -> None:
    path = await new(api, "one")
    await managed(api, path)
    window = {"weekdays": ["mon"], "from": "09:00", "to": "17:00"}
    hours = {"timezone": "Europe/Berlin", "windows": [window]}
    assert await call(api, "PUT", f"{path}/support-hours", hours) == hours


async def test_the_paging_target_belongs_to_the_project_and_stays(api: Api) -> None:
    policy, schedule = await api.new_policy(), await api.new_schedule()
    path = await new(api, "one", oncall_schedule_id=str(schedule))
    owner = f"{path}/escalation-policy"
    for bad in (NOWHERE, "x", str(schedule)):
        body = {"escalation_policy_id": bad}
        assert await refused(api, "PUT", owner, body, 400) == "owner_not_in_project"
    body = {"escalation_policy_id": str(policy)}
    assert await call(api, "PUT", owner, body) == body
    shown = (await call(api, "GET", path))["service"]
    assert shown["escalation_policy_id"] == str(policy)
    assert shown["oncall_schedule_id"] == str(schedule)
    for counted_on in (f"/escalation-policies/{policy}", f"/oncall-schedules/{schedule}"):
        assert await refused(api, "DELETE", counted_on, None, 409) == "in_use"
    empty = {"escalation_policy_id": ""}
    assert await call(api, "PUT", owner, empty) == empty
    assert "escalation_policy_id" not in (await call(api, "GET", path))["service"]
    await call(api, "DELETE", f"/escalation-policies/{policy}", status=204)
    await call(api, "DELETE", path, status=204)
    await call(api, "DELETE", f"/oncall-schedules/{schedule}", status=204)


async def test_a_list_shows_declarations_and_watermarks(api: Api) -> None:
    context = (await api.new_monitor()).uid
    path = await declared(api, "one", members=2)
    detail = await call(api, "GET", path)
    members = [UUID(uid) for uid in detail["declaration"]["monitors"]]
    body = {**document(*members, context, revision=1), "sli": [str(uid) for uid in members]}
    await call(api, "PUT", f"{path}/declaration", body)
    (shown,) = await call(api, "GET", services_of(api))
    assert shown["revision"] == 2
    assert (shown["context_members"], shown["sli_members"]) == (3, 2)
    assert shown["epoch_seq"] == 1
    assert "sealed_through" not in shown
