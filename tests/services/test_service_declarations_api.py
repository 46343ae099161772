"""Declarations of services: numbered revisions, expected revisions, validation and backfill."""

from typing import Any

import pytest
import trio

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_text
from leadline.storage.results.rules.repair_range import earliest_repairable
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import (
    NOWHERE,
    audited,
    call,
    declared,
    document,
    new,
    refused,
    uid_of,
)

EFFECTIVE = to_text(Instant(FROZEN_NOW + MINUTE))
USUAL = {
    "aggregation": {"mode": "all", "degraded_min": 1, "healthy_min": 1},
    "region": {"mode": "all_regions", "degraded_min_regions": 1, "healthy_min_regions": 1},
    "missing_data": "unknown",
    "maintenance": "exclude",
    "freshness": {"active_multiplier": 3, "active_floor": "1m30s"},
}


async def put(api: Api, path: str, body: Any) -> Any:
    return await call(api, "PUT", f"{path}/declaration", body)


async def revisions(api: Api) -> list[tuple[Any, ...]]:
    return await api.rows("select revision from service_revisions order by 1")


async def test_a_declaration_governs_from_the_next_minute(api: Api) -> None:
    path = await new(api, "checkout")
    one, two = (await api.new_monitor()).uid, (await api.new_monitor()).uid
    body = {**document(two, one), "sli": [str(one)]}
    said = await put(api, path, body)
    assert said["declaration"] == {
        "revision": 1,
        "effective_at": EFFECTIVE,
        "created_at": to_text(FROZEN_NOW),
        "created_by": str(api.users["editor"][1]),
        "monitors": [str(two), str(one)],
        "sli": [str(one)],
        "policies": USUAL,
    }
    epoch = said["epoch"]
    assert (epoch["seq"], epoch["effective_at"], epoch["members"]) == (1, EFFECTIVE, 1)
    detail = await call(api, "GET", path, who="viewer")
    assert (detail["declaration"], detail["epoch"]) == (said["declaration"], epoch)
    # A watermark at the start means that no time is sealed.
    assert detail["materialization"] == {"materialization_start": EFFECTIVE, "repairing": []}
    assert (await audited(api))[-1] == (
        "service.declare",
        f"service:{uid_of(path)} project:{api.project} slug=checkout revision=1 monitors=2 sli=1",
    )


async def test_policies_are_stored_unchanged(api: Api) -> None:
    path, monitor = await new(api, "checkout"), (await api.new_monitor()).uid
    policies = {
        "aggregation": {"mode": "quorum", "degraded_min": 1, "healthy_min": 2},
        "region": {"mode": "per_region", "degraded_min_regions": 2, "healthy_min_regions": 3},
        "missing_data": "ignore",
        "maintenance": "exclude",
        "freshness": {"active_multiplier": 2, "active_floor": "2h500ms"},
    }
    said = await put(api, path, {**document(monitor), "policies": policies})
    assert said["declaration"]["policies"] == policies
    spelt = {"freshness": {"active_floor": "61s0ms"}}
    said = await put(api, path, {**document(monitor, revision=1), "policies": spelt})
    freshness = {"active_multiplier": 3, "active_floor": "1m1s"}
    assert said["declaration"]["policies"] == {**USUAL, "freshness": freshness}


async def test_the_same_document_again_is_the_same_revision(api: Api) -> None:
    path, monitor = await new(api, "checkout"), (await api.new_monitor()).uid
    first = await put(api, path, document(monitor))
    before = await audited(api)
    assert await put(api, path, document(monitor, revision=1)) == first
    assert await audited(api) == before
    second = await put(api, path, {**document(monitor, revision=1), "sli": []})
    assert second["declaration"]["revision"] == 2
    assert await revisions(api) == [(1,), (2,)]


@pytest.mark.parametrize("expected", [0, 2, 99])
async def test_a_wrong_expected_revision_is_refused(api: Api, expected: int) -> None:
    path = await declared(api)
    monitor = (await api.new_monitor()).uid
    body = document(monitor, revision=expected)
    assert await refused(api, "PUT", f"{path}/declaration", body, 409) == "revision_conflict"
    assert await revisions(api) == [(1,)]


async def test_a_declaration_without_members_is_accepted(api: Api) -> None:
    path = await new(api, "checkout")
    said = await put(api, path, document())
    assert (said["declaration"]["monitors"], said["epoch"]["members"]) == ([], 0)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"expected_revision": -1}, "expected_revision: "),
        ({"monitors": [NOWHERE]}, "monitors: is not a monitor of this project"),
        ({"sli": [NOWHERE]}, "sli_not_in_monitors"),
        ({"policies": {"aggregation": {"mode": "most"}}}, "policies.aggregation.mode: "),
        ({"policies": {"aggregation": {"modus": "all"}}}, "invalid JSON body"),
        (
            {"policies": {"aggregation": {"mode": "quorum", "healthy_min": 2, "degraded_min": 3}}},
            "policies.aggregation.degraded_min: must not be above healthy_min",
        ),
        ({"policies": {"aggregation": {"healthy_min": 0}}}, "policies.aggregation."),
        (
            {"policies": {"region": {"degraded_min_regions": 2}}},
            "policies.region.degraded_min_regions: must not be above healthy_min_regions",
        ),
        ({"policies": {"missing_data": "good"}}, "policies.missing_data: "),
        ({"policies": {"maintenance": "include"}}, "policies.maintenance: "),
        (
            {"policies": {"freshness": {"active_multiplier": 1}}},
            "policies.freshness.active_multiplier: must be 2 to 10",
        ),
        (
            {"policies": {"freshness": {"active_floor": "90"}}},
            "policies.freshness.active_floor: ",
        ),
        (
            {"policies": {"freshness": {"active_floor": "1ns"}}},
            "policies.freshness.active_floor: must be whole microseconds",
        ),
        (
            {"policies": {"freshness": {"active_floor": "24h1s"}}},
            "policies.freshness.active_floor: must be at most 24h",
        ),
        ({"backfill_from": "yesterday"}, "backfill_from: must be an RFC 3339 instant"),
        (
            {"backfill_from": to_text(Instant(FROZEN_NOW + SECOND))},
            "backfill_from: must not be in the future",
        ),
    ],
)
async def test_an_invalid_declaration_is_refused_with_its_field(
    api: Api, given: dict[str, Any], error: str
) -> None:
    path = await new(api, "checkout")
    body = {**document(), **given}
    assert (await refused(api, "PUT", f"{path}/declaration", body, 400)).startswith(error)
    assert await revisions(api) == []


async def test_members_are_unique_and_belong_to_the_project(api: Api) -> None:
    path, one = await new(api, "checkout"), (await api.new_monitor()).uid
    where = f"{path}/declaration"
    twice = {"monitors": [str(one)] * 2, "sli": []}
    assert "twice" in await refused(api, "PUT", where, {**document(), **twice}, 400)
    twice = {"monitors": [str(one)], "sli": [str(one)] * 2}
    assert "sli: must not name" in await refused(api, "PUT", where, {**document(), **twice}, 400)
    mill = (await api.new_monitor("acme/mill")).uid
    said = await refused(api, "PUT", where, document(one, mill), 400)
    assert said == "monitors: is not a monitor of this project"
    many = document(*[f"019b0000-0000-7000-8000-{n:012d}" for n in range(201)])
    said = await refused(api, "PUT", where, many, 400)
    assert said == "monitors: must have at most 200 entries"


async def test_the_first_declaration_can_backfill(api: Api) -> None:
    path, one = await new(api, "checkout"), (await api.new_monitor()).uid
    begins = Instant(FROZEN_NOW - HOUR + 30 * SECOND)
    said = await put(api, path, {**document(one), "backfill_from": to_text(begins)})
    assert said["declaration"]["effective_at"] == EFFECTIVE
    floored = Instant(FROZEN_NOW - HOUR)
    ((governs, effective),) = await api.rows(
        "select governs_from, effective_at from service_revisions"
    )
    assert (governs, effective) == (floored, FROZEN_NOW + MINUTE)
    assert await api.rows(
        "select materialization_start, sealed_through, backfill_from from services"
    ) == [(FROZEN_NOW + MINUTE, FROZEN_NOW + MINUTE, floored)]
    # The past is an epoch of its own, and so is the time before the member was created.
    assert await api.rows("select seq, effective_at from service_epochs order by seq") == [
        (1, floored),
        (2, FROZEN_NOW),
        (3, FROZEN_NOW + MINUTE),
    ]
    assert said["epoch"]["seq"] == 3
    (repair,) = (await call(api, "GET", path))["materialization"]["repairing"]
    assert (repair["from"], repair["to"]) == (to_text(floored), EFFECTIVE)


async def test_a_later_declaration_cannot_backfill(api: Api) -> None:
    path = await declared(api)
    monitor = (await api.new_monitor()).uid
    for expected in (0, 1):
        body = {**document(monitor, revision=expected), "backfill_from": to_text(FROZEN_NOW)}
        said = await refused(api, "PUT", f"{path}/declaration", body, 400)
        assert said == "retroactive_not_first_revision"


async def test_backfill_is_limited_by_the_retention_of_results(api: Api) -> None:
    path = await new(api, "checkout")
    earliest = earliest_repairable(FROZEN_NOW, api.context.options.heartbeat_days, 0)
    assert FROZEN_NOW - 30 * DAY < earliest < FROZEN_NOW
    body = {**document(), "backfill_from": to_text(Instant(earliest - 1_000))}
    said = await refused(api, "PUT", f"{path}/declaration", body, 422)
    assert said.startswith(f"backfill_from: must not be before {to_text(earliest)}")
    await put(api, path, {**document(), "backfill_from": to_text(earliest)})


async def test_long_freshness_shortens_the_backfill(api: Api) -> None:
    path = await new(api, "checkout")
    member = await api.new_monitor(interval_seconds=86_400)
    earliest = earliest_repairable(FROZEN_NOW, api.context.options.heartbeat_days, 10 * DAY)
    body = {**document(member.uid), "backfill_from": to_text(Instant(earliest - 1_000))}
    body["policies"] = {"freshness": {"active_multiplier": 10}}
    said = await refused(api, "PUT", f"{path}/declaration", body, 422)
    assert said.startswith(f"backfill_from: must not be before {to_text(earliest)}")
    await put(api, path, {**body, "backfill_from": to_text(earliest)})


async def test_a_declared_member_cannot_be_deleted(api: Api) -> None:
    one, two = (await api.new_monitor()).uid, (await api.new_monitor()).uid
    path = await new(api, "checkout")
    await put(api, path, {**document(one, two), "sli": [str(one)]})
    for uid in (one, two):
        assert await refused(api, "DELETE", f"/monitors/{uid}", None, 409) == "in_use"
    await put(api, path, document(two, revision=1))
    await call(api, "DELETE", f"/monitors/{one}", status=204)
    assert await refused(api, "DELETE", f"/monitors/{two}", None, 409) == "in_use"
    await call(api, "DELETE", path, status=204)
    await call(api, "DELETE", f"/monitors/{two}", status=204)


async def test_of_two_concurrent_declarations_one_succeeds(api: Api) -> None:
    path = await new(api, "checkout")
    monitors = [(await api.new_monitor()).uid for _ in range(2)]
    statuses: list[int] = []

    async def declare(uid: object) -> None:
        where = f"/api/v1{path}/declaration"
        statuses.append((await api.ask("editor", "PUT", where, document(uid))).status_code)

    async with trio.open_nursery() as nursery:
        for uid in monitors:
            nursery.start_soon(declare, uid)
    assert sorted(statuses) == [200, 409]
    assert await revisions(api) == [(1,)]
