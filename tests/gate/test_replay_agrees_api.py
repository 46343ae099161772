"""The gate and the replay of its policy give the same state for a minute if all minutes before it
are sealed: random services on a real database, with service and project policies.
"""

import random
from typing import Any
from uuid import UUID

import pytest

from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.gate.queries.gate_replay import select_past, select_policies_in_force
from leadline.storage.gate.rules.gate_replay import replay
from leadline.storage.objectives.transactions.evaluate_burn_rules import evaluate_service_burns
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.rules.service_health import Durations
from leadline.storage.services.tables.services import select_service
from tests.conftest import FROZEN_NOW
from tests.incidents.test_service_incidents_api import opened
from tests.support.app.gating import CLAUSES, Gated
from tests.support.app.serving import DOWN, UNKNOWN, UP, call, uid_of

PLANNED = Durations(excluded_us=MINUTE)
HALF = Durations(
    good_us=MINUTE // 2,
    bad_us=MINUTE // 2,
    healthy_us=MINUTE // 2,
    down_us=MINUTE // 2,
)
WITHIN = TimeSpan(Instant(FROZEN_NOW - DAY), Instant(FROZEN_NOW + MINUTE))


async def row_of(gated: Gated, path: str) -> ServiceRow:
    async with gated.api.pool.transaction("row") as tx:
        row = await select_service(tx, UUID(uid_of(path)))
    assert row is not None
    return row


async def evaluated(gated: Gated, path: str) -> None:
    """Runs the real evaluator without earlier evaluations."""
    row = await row_of(gated, path)
    async with gated.api.pool.transaction("evaluate") as tx:
        await tx.execute("update service_alerting set burn_evaluated_at = null")
        await tx.execute(
            "update burn_rules set evaluated_at = null, firing = false, last_verdict = null"
        )
        await evaluate_service_burns(tx, [row.key])


async def replayed_now(gated: Gated, path: str) -> tuple[str, list[str]]:
    """Returns the replayed state of the current minute."""
    row = await row_of(gated, path)
    async with gated.api.pool.transaction("past", read_only=True) as tx:
        past = await select_past(tx, row, WITHIN)
        policies = await select_policies_in_force(tx, row, WITHIN.from_)
    *_, last = [each for each in replay(past, policies, WITHIN) if each is not None]
    assert last.span.until == WITHIN.until
    return last.state.value, sorted(last.reasons)


async def asked_now(gated: Gated, path: str) -> tuple[str, list[str]]:
    said = await gated.ask(path)
    counted = {r["code"] for r in said["reasons"] if r.get("assignment") != "ignore"}
    return said["state"], sorted(counted)


def a_policy(rnd: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {
        name: rnd.choice(["block", "warn", "ignore"])
        for name in CLAUSES
        if name != "service_incident_open"
    }
    given |= {
        "service_incident_open": rnd.choice(["block", "ignore", "ignore"]),
        "unknown_behavior": rnd.choice(["warn", "block"]),
        "budget_consumed_percent": rnd.choice([1, 40, 100]),
    }
    if rnd.random() < 0.5:
        return {**given, "schema_version": 2, "window_mode": "all", "window": ...}
    return {**given, "window": rnd.choice(["24h", "24h", "7d"])}


@pytest.mark.parametrize("seed", range(12))
async def test_the_replay_of_the_newest_minute_equals_the_gate(gated: Gated, seed: int) -> None:
    rnd = random.Random(seed)
    lengths = [
        (rnd.choice([1, 5, 30, 200, 700]), rnd.choice([UP, UP, UP, DOWN, HALF, UNKNOWN, PLANNED]))
        for _ in range(rnd.randint(1, 8))
    ]
    path = await gated.service("checkout", *lengths)
    if rnd.random() < 0.5:
        await gated.aim(path, "7d")
    await evaluated(gated, path)
    if rnd.random() < 0.5:
        await opened(gated.api, path, began=-20, over=rnd.choice([None, 0]))
    own, shared = None, None
    for _ in range(6):
        act = rnd.choice(["own", "own", "shared", "shared", "delete"])
        if act == "own":
            own = (await gated.put(path, own, **a_policy(rnd)))["revision"]
        elif act == "shared":
            shared = (await gated.put(gated.project, shared, **a_policy(rnd)))["revision"]
        elif own is not None:
            query = {"expected_revision": str(own)}
            await call(gated.api, "DELETE", f"{path}/gate/policy", None, 204, query=query)
            own = None
        assert await replayed_now(gated, path) == await asked_now(gated, path)


async def test_an_evaluation_under_another_objective_is_unknown(gated: Gated) -> None:
    path = await gated.service()
    await gated.put(path)
    assert (await gated.ask(path))["state"] == "ALLOW"
    gated.clock.forward(30)
    await call(gated.api, "PUT", f"{path}/sla-target", {"window": "24h", "objective": 99.99})
    said = await gated.ask(path)
    assert said["state"] == "UNKNOWN"
    assert {r["code"] for r in said["reasons"]} == {"never_evaluated"}
    await gated.evaluate_burn_rules(path)
    assert (await gated.ask(path))["state"] == "ALLOW"
    assert gated.clock.now == FROZEN_NOW + 30 * SECOND
