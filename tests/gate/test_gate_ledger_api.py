"""Stored decisions: pages, filters, retention, and the errors of a gate that cannot answer."""

from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid4

from leadline.daemon.process.metrics import Metrics
from leadline.http.gate.routes import gate as gate_routes
from leadline.storage.core.instant import DAY, Instant, to_text
from leadline.storage.engine.partitions import drop_partitions
from tests.conftest import FROZEN_NOW
from tests.support.app.gating import PLENTY, Gated
from tests.support.app.serving import DOWN, NOWHERE, UP, call, new
from tests.support.app.sockets import held

WEEK = {"from": to_text(FROZEN_NOW), "to": to_text(Instant(FROZEN_NOW + 7 * DAY))}
STATES = ("ALLOW", "WARN", "BLOCK", "UNKNOWN", "NOT_CONFIGURED")


async def listed(gated: Gated, status: int = 200, **query: Any) -> Any:
    """Returns one page; a query parameter can have several values."""
    path = f"/api/v1{gated.project}/gate/decisions"
    answer = await gated.api.ask("viewer_token", "GET", path, query={**WEEK, **query})
    assert answer.status_code == status, await answer.get_data()
    return await answer.get_json()


async def ids(gated: Gated, limit: int, **query: Any) -> list[str]:
    """Returns the ids of all pages in their order."""
    found: list[str] = []
    cursor = None
    while True:
        page = await listed(
            gated, limit=limit, **query, **({} if cursor is None else {"cursor": cursor})
        )
        assert len(page["items"]) <= limit
        found += [item["decision_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
        assert len(page["items"]) == limit


async def lived(gated: Gated) -> list[Any]:
    """Decisions of two services in three states, some of one millisecond, newest first."""
    good = await gated.service("good")
    bad = await gated.service("bad", (1_400, UP), (40, DOWN))
    made = [await gated.ask(good), await gated.ask(bad)]
    await gated.put(gated.project)
    for steps in (0, 0, 0.001, 0, 5, 3_000):
        gated.clock.forward(steps)
        made += [await gated.ask(path, "viewer_token") for path in (good, bad, good)]
    assert {said["state"] for said in made} == {"ALLOW", "BLOCK", "UNKNOWN", "NOT_CONFIGURED"}
    return sorted(made, key=lambda said: UUID(said["decision_id"]), reverse=True)


async def test_pages_of_any_size_are_complete_and_in_order(gated: Gated) -> None:
    made = await lived(gated)
    everything = [said["decision_id"] for said in made]
    for limit in (1, 3, 7, 20, 200):
        assert await ids(gated, limit) == everything
    page = await listed(gated)
    summary = set(page["items"][0])
    assert page == {
        "items": [
            {name: said[name] for name in said if name in summary | {"action", "policy_revision"}}
            for said in made
        ],
        "next_cursor": None,
    }
    assert "evidence" not in summary


async def test_states_services_and_ranges_are_filtered(gated: Gated) -> None:
    made = await lived(gated)
    for states in (["BLOCK"], ["ALLOW", "NOT_CONFIGURED"], ["UNKNOWN", "UNKNOWN"], ["WARN"]):
        expected = [said["decision_id"] for said in made if said["state"] in states]
        assert await ids(gated, 2, state=states) == expected
    for service in {said["service_id"] for said in made}:
        expected = [said["decision_id"] for said in made if said["service_id"] == service]
        assert await ids(gated, 4, service_id=service) == expected
        some = [said for said in made if said["service_id"] == service and said["state"] == "BLOCK"]
        found = await ids(gated, 1, service_id=service, state="BLOCK")
        assert found == [said["decision_id"] for said in some]
    # `from` is inclusive and `to` is exclusive.
    for at in {said["evaluated_at"] for said in made}:
        after = [said["decision_id"] for said in made if said["evaluated_at"] >= at]
        assert await ids(gated, 200, **{"from": at}) == after
        before = [said["decision_id"] for said in made if said["evaluated_at"] < at]
        if at != WEEK["from"]:
            assert await ids(gated, 200, to=at) == before


async def test_decisions_of_another_project_are_not_found(gated: Gated) -> None:
    made = await lived(gated)
    mill = gated.api.projects["acme/mill"][1]
    answer = await gated.api.ask(
        "token", "GET", f"/api/v1/projects/{mill}/gate/decisions", query=WEEK
    )
    assert await answer.get_json() == {"items": [], "next_cursor": None}
    service = made[0]["service_id"]
    answer = await gated.api.ask(
        "token",
        "GET",
        f"/api/v1/projects/{mill}/gate/decisions",
        query={**WEEK, "service_id": service},
    )
    assert await answer.get_json() == {"items": [], "next_cursor": None}
    assert await ids(gated, 5, service_id=NOWHERE) == []
    foreign = f"/api/v1/projects/{mill}/gate/decisions/{made[0]['decision_id']}"
    assert (await gated.api.ask("token", "GET", foreign)).status_code == 404
    for uid in (uuid4(), NOWHERE, "ffffffff-ffff-ffff-ffff-ffffffffffff", UUID(int=0)):
        path = f"/api/v1{gated.project}/gate/decisions/{uid}"
        answer = await gated.api.ask("token", "GET", path)
        assert (answer.status_code, await answer.get_json()) == (404, {"error": "not_found"})


async def test_a_cursor_is_bound_to_its_query(gated: Gated) -> None:
    await lived(gated)
    cursor = (await listed(gated, limit=2))["next_cursor"]
    other = {"to": to_text(Instant(FROZEN_NOW + 6 * DAY))}
    service = (await listed(gated))["items"][0]["service_id"]
    for query in (other, {"state": "BLOCK"}, {"service_id": service}):
        found = await listed(gated, 400, cursor=cursor, **query)
        assert found == {"error": "cursor_invalid"}
    for bad in ("", "x", cursor[:-2], cursor + "AA", "é"):
        assert await listed(gated, 400, cursor=bad) == {"error": "cursor_invalid"}
    # The order and repetition of states do not change the query.
    cursor = (await listed(gated, limit=1, state=["BLOCK", "ALLOW"]))["next_cursor"]
    await listed(gated, cursor=cursor, state=["ALLOW", "BLOCK", "ALLOW"])


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"from": None}, "range_required"),
        ({"to": None}, "range_required"),
        ({"from": ""}, "range_invalid"),
        ({"from": "yesterday"}, "range_invalid"),
        ({"to": "2026-01-06"}, "range_invalid"),
        ({"to": WEEK["from"]}, "range_invalid"),
        ({"from": WEEK["to"], "to": WEEK["from"]}, "range_invalid"),
        ({"to": "2026-02-05T00:00:00.001Z"}, "range_too_wide"),
        ({"limit": "0"}, "limit_invalid"),
        ({"limit": "201"}, "limit_invalid"),
        ({"limit": "x"}, "limit_invalid"),
        ({"state": "allow"}, "state_invalid: allow"),
        ({"state": ["ALLOW", "MAYBE"]}, "state_invalid: MAYBE"),
        ({"state": ""}, "state_invalid: "),
        ({"service_id": "x"}, "service_id: "),
        ({"limit": ["1", "2"]}, "limit: is given more than once"),
    ],
)
async def test_an_invalid_query_is_refused(gated: Gated, query: Any, error: str) -> None:
    given = {name: value for name, value in {**WEEK, **query}.items() if value is not None}
    path = f"/api/v1{gated.project}/gate/decisions"
    answer = await gated.api.ask("viewer", "GET", path, query=given)
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith(error)
    await listed(gated, to="2026-02-05T00:00:00Z")


async def test_a_decision_past_retention_is_not_found(gated: Gated) -> None:
    path = await gated.service()
    old = await gated.ask(path)
    gated.clock.forward(86_400)
    young = await gated.ask(path, "viewer_token")
    before = Instant(FROZEN_NOW + DAY)
    assert await drop_partitions(gated.api.pool, "gate_decisions", before=before) == [
        "gate_decisions_20260105"
    ]
    assert await ids(gated, 10) == [young["decision_id"]]
    read = f"{gated.project}/gate/decisions/{old['decision_id']}"
    found = await call(gated.api, "GET", read, status=404, who="viewer_token")
    assert found == {"error": "not_found"}


async def later(gated: Gated, path: str, code: str) -> None:
    """The gate answers 503 with the code, counts the error and stores no decision."""
    before, kept = gated.api.context.gate_counts.errors[code], await gated.count()
    answer = await gated.api.ask("viewer_token", "POST", f"/api/v1{path}/gate")
    assert (answer.status_code, await answer.get_json()) == (503, {"error": code})
    assert int(answer.headers["Retry-After"]) >= 1
    assert gated.api.context.gate_counts.errors[code] == before + 1
    assert await gated.count() == kept


async def test_without_a_partition_the_gate_cannot_answer(gated: Gated) -> None:
    path = await gated.service()
    gated.clock.forward(30 * 86_400)
    await later(gated, path, "ledger_unwritable")


async def conflicting(gated: Gated, times: int) -> None:
    """Makes the next inserts into the ledger fail with a serialization conflict."""
    async with gated.api.pool.transaction("conflict") as tx:
        await tx.execute("create sequence tries")
        await tx.execute(
            "create function conflict() returns trigger language plpgsql as $$ begin "
            f"if nextval('tries') <= {times} then "
            "raise exception 'meanwhile' using errcode = '40001'; end if; return new; end $$"
        )
        await tx.execute(
            "create trigger conflicts before insert on gate_decisions "
            "for each row execute function conflict()"
        )


async def test_a_conflict_is_retried_once(gated: Gated) -> None:
    path = await gated.service()
    await conflicting(gated, 1)
    await gated.ask(path)
    assert await gated.count() == 1


async def test_a_second_conflict_is_reported(gated: Gated) -> None:
    path = await gated.service()
    await conflicting(gated, 2)
    await later(gated, path, "snapshot_conflict")
    await gated.ask(path)


async def test_a_timeout_is_reported(
    gated: Gated, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await gated.service()
    monkeypatch.setattr(gate_routes, "EVALUATE_SECONDS", 0.2)
    async with held(dsn, "gate_policies"):
        answer = await gated.api.ask("viewer", "POST", f"/api/v1{path}/gate")
    assert (answer.status_code, await answer.get_json()) == (503, {"error": "timeout"})
    assert answer.headers["Retry-After"] == "1"
    assert await gated.count() == 0
    assert not gated.api.context.gate._inside


async def test_decisions_are_counted(gated: Gated) -> None:
    context = gated.api.context
    good, bare = await gated.service("good"), await new(gated.api, "bare")
    await gated.put(good, budget_exhausted="block")
    bad = await gated.service("bad", (1_400, UP), (40, DOWN))
    await gated.put(bad)
    await gated.let_through(bad, 1)
    for path in (good, good, bare, bad):
        await gated.ask(path)
    context.gate_counts.rejected["process_rate"] += 3
    metrics = Metrics()
    metrics.watch_asked(context)
    text = metrics.render().decode()
    for labels, count in (
        ('action="ALLOW",overridden="false",state="ALLOW"', 2),
        ('action="none",overridden="false",state="NOT_CONFIGURED"', 1),
        ('action="ALLOW",overridden="true",state="BLOCK"', 1),
    ):
        assert f"leadline_gate_decisions_total{{{labels}}} {count}.0" in text
    assert 'leadline_gate_evaluate_rejected_total{reason="process_rate"} 3.0' in text
    assert "leadline_gate_decision_duration_seconds_count 4.0" in text
    assert 'leadline_gate_decision_duration_seconds_bucket{le="+Inf"} 4.0' in text


async def test_refused_requests_are_counted_by_reason(gated: Gated) -> None:
    path = await gated.service()
    context = gated.api.context
    with ExitStack() as others:
        for _ in range(PLENTY.inflight_process):
            others.enter_context(context.gate.permit("somebody", gated.clock.now))
        answer = await gated.api.ask("viewer", "POST", f"/api/v1{path}/gate")
    assert (answer.status_code, await answer.get_json()) == (429, {"error": "process_inflight"})
    assert context.gate_counts.rejected == {"process_inflight": 1}
    assert not context.gate_counts.errors
    assert await gated.count() == 0
