"""The replay of a draft policy over the HTTP API: the state of each minute, without any write."""

from itertools import pairwise
from typing import Any

from leadline.storage.core.instant import DAY, MINUTE, Instant, from_text, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import DOWN, UP, call, declared, refused, sealed

CLAUSES = {
    "budget_exhausted": "block",
    "budget_consumed": "warn",
    "page_burn_firing": "ignore",
    "ticket_burn_firing": "ignore",
    "service_incident_open": "ignore",
}
DRAFT: dict[str, Any] = {
    "expected_revision": None,
    "schema_version": 2,
    "window_mode": "one",
    "window": "24h",
    "clauses": CLAUSES,
    "budget_consumed_percent": 50,
    "max_seal_lag_seconds": 900,
    "unknown_behavior": "block",
}
TABLES = ("gate_policies", "gate_overrides", "gate_decisions", "audit_entries")


async def a_service(api: Api) -> str:
    """Creates a service with two days of history: a day up, then ten minutes down, and up since.
    The objective is 99 % of a day, which allows 14.4 minutes.
    """
    path = await declared(api)
    await call(api, "PUT", f"{path}/sla-target", {"window": "24h", "objective": 99})
    await sealed(api, path, (1440, UP), (10, DOWN), (1430, UP))
    async with api.pool.transaction("governed") as tx:
        begins = Instant(FROZEN_NOW - 2 * DAY)
        await tx.execute(
            "update service_revisions set effective_at = at(%(at)s), governs_from = at(%(at)s)",
            at=begins,
        )
    return path


async def replayed(api: Api, path: str, days: int = 3, **given: Any) -> Any:
    body = {**DRAFT, **given}
    found = await call(
        api, "POST", f"{path}/gate/policy/replay", body, query={"days": str(days)}, who="viewer"
    )
    for spans in (found["in_force"], found["draft"]):
        assert spans[0]["from"] == found["from"]
        assert spans[-1]["to"] == found["to"]
        for earlier, later in pairwise(spans):
            assert earlier["to"] == later["from"]
            assert earlier["state"] != later["state"] or earlier["reasons"] != later["reasons"]
    return found


def spans_of(found: Any, which: str) -> list[tuple[int, str, list[str]]]:
    """Returns (minutes before now, state, reasons) of each span, the earliest first."""
    return [
        ((FROZEN_NOW - from_text(span["from"])) // MINUTE, span["state"], span["reasons"])
        for span in found[which]
    ]


async def test_a_replay_is_exact_to_the_minute(api: Api) -> None:
    path = await a_service(api)
    found = await replayed(api, path)
    assert found["to"] == to_text(FROZEN_NOW)
    assert spans_of(found, "in_force") == [(3 * 1440, "NOT_CONFIGURED", ["not_configured"])]
    # A budget is known after one measured hour. Half of it is used 7.2 minutes into the outage,
    # until enough of the outage has left the window.
    assert spans_of(found, "draft") == [
        (3 * 1440, "UNKNOWN", ["no_governing_revision"]),
        (2880, "UNKNOWN", ["never_sealed"]),
        (2879, "UNKNOWN", ["budget_withheld"]),
        (2820, "ALLOW", []),
        (1432, "WARN", ["budget_consumed"]),
    ]


async def test_the_policy_in_force_is_replayed_from_its_start(api: Api) -> None:
    path = await a_service(api)
    await call(api, "PUT", f"{path}/gate/policy", DRAFT)
    async with api.pool.transaction("began") as tx:
        at = Instant(FROZEN_NOW - 1432 * MINUTE - 1)
        await tx.execute("update gate_policies set began_at = at(%(at)s)", at=at)
    found = await replayed(api, path, clauses={**CLAUSES, "budget_consumed": "block"})
    assert spans_of(found, "in_force")[-2:] == [
        (3 * 1440, "NOT_CONFIGURED", ["not_configured"]),
        (1432, "WARN", ["budget_consumed"]),
    ]
    assert spans_of(found, "draft")[-1] == (1432, "BLOCK", ["budget_consumed"])


async def test_decisions_are_replayed_with_their_own_evidence(api: Api) -> None:
    path = await a_service(api)
    await call(api, "PUT", f"{path}/gate/policy", DRAFT)
    decision = await call(api, "POST", f"{path}/gate")
    assert decision["state"] == "WARN"
    before = [await api.rows(f"select count(*) from {table}") for table in TABLES]
    found = await replayed(api, path, clauses={**CLAUSES, "budget_consumed": "ignore"})
    assert found["decisions"] == [
        {
            "decision_id": decision["decision_id"],
            "evaluated_at": decision["evaluated_at"],
            "state": "WARN",
            "draft_state": "ALLOW",
        }
    ]
    assert [await api.rows(f"select count(*) from {table}") for table in TABLES] == before


async def test_an_invalid_draft_is_refused_with_its_field(api: Api) -> None:
    path = await a_service(api)
    there = f"{path}/gate/policy/replay"
    assert await refused(api, "POST", there, {**DRAFT, "window": None}, 400)
    without = {name: value for name, value in DRAFT.items() if name != "window"}
    said = await refused(api, "POST", there, without, 400)
    assert said == "window: is required for one window"
    for days in ("0", "32", "x"):
        answer = await api.ask("viewer", "POST", f"/api/v1{there}", DRAFT, query={"days": days})
        assert answer.status_code == 400
    elsewhere = path.replace(str(api.project), str(api.projects["acme/mill"][1]))
    for body in (DRAFT, without):
        await call(api, "POST", f"{elsewhere}/gate/policy/replay", body, 404, who="org_admin")


async def test_a_replay_takes_a_token_of_the_rate_limit(api: Api) -> None:
    path = await a_service(api)
    for _ in range(10):
        await replayed(api, path, days=1)
    answer = await api.ask("viewer", "POST", f"/api/v1{path}/gate/policy/replay", DRAFT)
    assert answer.status_code == 429
    assert (await answer.get_json())["error"] == "principal_rate"
    assert int(answer.headers["Retry-After"]) == 6
