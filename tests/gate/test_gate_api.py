"""The release gate over HTTP: the result of each clause, its evidence, and the stored decision,
which equals the response.
"""

import json
from typing import Any
from uuid import UUID

import pytest

from leadline.storage.core.instant import MINUTE, SECOND, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.incidents.test_service_incidents_api import opened
from tests.support.app.gating import CLAUSES, Gated, policy
from tests.support.app.serving import DOWN, NOWHERE, UNKNOWN, UP, call, new, services_of, uid_of

NOW = to_text(FROZEN_NOW)
DAY_BEFORE = to_text(Instant(FROZEN_NOW - 1_440 * MINUTE))
# A hundredth of a day may be bad: 14.4 minutes.
SOME = ((1_440 - 12, UP), (12, DOWN))
ALL = ((1_440 - 36, UP), (36, DOWN))


def reasons(said: Any) -> list[tuple[str, Any, Any]]:
    return [(r["code"], r.get("assignment"), r.get("value")) for r in said["reasons"]]


async def test_a_healthy_service_is_allowed_with_all_evidence(gated: Gated) -> None:
    path = await gated.service()
    made = await gated.put(path)
    said = await gated.ask(path)
    target = said["target_id"]
    leases = [
        {
            "rule_key": key,
            "severity": severity,
            "firing": False,
            "last_verdict": "clear",
            "evaluated_at": NOW,
            "lease_until": to_text(Instant(FROZEN_NOW + 90 * SECOND)),
            "fresh": True,
        }
        for key, severity in (
            ("24h page 1h/5m 14.4", "page"),
            ("24h ticket 6h/30m 6", "ticket"),
        )
    ]
    assert said == {
        "schema_version": 1,
        "decision_id": said["decision_id"],
        "evaluated_at": NOW,
        "service_id": uid_of(path),
        "service_slug": "checkout",
        "service_name": "checkout",
        "state": "ALLOW",
        "action": "ALLOW",
        "unoverridden_action": "ALLOW",
        # Nobody evaluates incidents of the service. The clause is ignored, and the reason is
        # reported.
        "reasons": [
            {
                "code": "never_evaluated",
                "clause": "service_incident_open",
                "assignment": "ignore",
            }
        ],
        "policy_revision": 1,
        "actor_label": "viewer",
        "policy_source": "service",
        "policy_owner_id": uid_of(path),
        "window_mode": "one",
        "window": "24h",
        "unknown_behavior": "block",
        "max_seal_lag_seconds": 3_600,
        "target_id": target,
        "objective": 99.0,
        "objective_updated_at": said["objective_updated_at"],
        "sealed_through": NOW,
        "seal_lag": 0.0,
        "fact_revisions": said["fact_revisions"],
        "governing_revision": said["governing_revision"],
        "burn_leases": leases,
        "coverage_state": {
            signal: {"armed": False, "reason": "no_owning_service"} for signal in ("live", "burn")
        },
        "facts_fresh_until": to_text(Instant(FROZEN_NOW + 90 * SECOND)),
        "evidence": [
            {
                "window": "24h",
                "target_id": target,
                "objective": 99.0,
                "from": DAY_BEFORE,
                "to": NOW,
                "good_seconds": 86_400.0,
                "bad_seconds": 0.0,
                "unknown_seconds": 0.0,
                "excluded_seconds": 0.0,
                "availability": 100.0,
                "burned_percent": 0.0,
                "rules": leases,
            }
        ],
    }
    assert said["governing_revision"]["revision"] == 1
    facts = said["fact_revisions"]
    assert facts["count"] == 1
    assert facts["first_id"] == facts["last_id"] is not None
    assert len(facts["digest"]) == 64
    assert made["revision"] == 1
    assert UUID(said["decision_id"]).version == 7


@pytest.mark.parametrize(
    ("lengths", "clauses", "state", "action", "told_of"),
    [
        (SOME, {}, "BLOCK", "BLOCK", [("budget_consumed", "block", 83.33)]),
        (SOME, {"budget_consumed": "warn"}, "WARN", "WARN", [("budget_consumed", "warn", 83.33)]),
        (
            SOME,
            {"budget_consumed": "ignore"},
            "ALLOW",
            "ALLOW",
            [("budget_consumed", "ignore", 83.33)],
        ),
        (SOME, {"budget_consumed_percent": 84}, "ALLOW", "ALLOW", []),
        (
            ALL,
            {"budget_consumed": "warn"},
            "BLOCK",
            "BLOCK",
            [("budget_exhausted", "block", 250.0), ("budget_consumed", "warn", 250.0)],
        ),
        # The coverage of the day is too low: the budget is unknown.
        (
            ((1_000, UP), (440, UNKNOWN)),
            {},
            "UNKNOWN",
            "BLOCK",
            [("budget_withheld", "block", None)] * 2,
        ),
        (
            ((1_000, UP), (440, UNKNOWN)),
            {"unknown_behavior": "warn"},
            "UNKNOWN",
            "WARN",
            [("budget_withheld", "block", None)] * 2,
        ),
        (
            ((1_000, UP), (440, UNKNOWN)),
            {"budget_exhausted": "ignore", "budget_consumed": "ignore"},
            "ALLOW",
            "ALLOW",
            [("budget_withheld", "ignore", None)] * 2,
        ),
    ],
)
async def test_the_budget_clauses_follow_the_policy(
    gated: Gated, lengths: Any, clauses: Any, state: str, action: str, told_of: Any
) -> None:
    path = await gated.service("checkout", *lengths)
    await gated.put(path, **clauses)
    said = await gated.ask(path)
    assert (said["state"], said["action"], said["unoverridden_action"]) == (state, action, action)
    seen = [(code, to, value and round(value, 2)) for code, to, value in reasons(said)[:-1]]
    assert seen == told_of
    assert all(r["window"] == "24h" for r in said["reasons"][:-1])


@pytest.mark.parametrize(
    ("firing", "clause"), [("page", "page_burn_firing"), ("ticket", "ticket_burn_firing")]
)
async def test_a_firing_burn_rule_blocks(gated: Gated, firing: str, clause: str) -> None:
    path = await gated.service()
    await gated.put(path)
    await gated.evaluate_burn_rules(path, firing)
    said = await gated.ask(path)
    assert said["state"] == "BLOCK"
    (reason, _) = said["reasons"]
    assert (reason["code"], reason["clause"]) == (clause, clause)
    assert reason["value"] in [
        lease["rule_key"] for lease in said["burn_leases"] if lease["firing"]
    ]


async def test_a_stale_evaluation_is_unknown(gated: Gated) -> None:
    path = await gated.service()
    await gated.put(path)
    gated.clock.forward(90)
    assert (await gated.ask(path))["state"] == "ALLOW"
    gated.clock.forward(0.001)
    said = await gated.ask(path)
    assert (said["state"], said["action"]) == ("UNKNOWN", "BLOCK")
    assert {code for code, to, _ in reasons(said) if to == "block"} == {"facts_stale"}
    assert not any(lease["fresh"] for lease in said["burn_leases"])
    assert said["seal_lag"] == 90.001
    # The time at which the oldest input became stale, not the time of the decision.
    assert said["facts_fresh_until"] == to_text(Instant(FROZEN_NOW + 90 * SECOND))


async def test_a_stale_watermark_is_unknown(gated: Gated) -> None:
    path = await gated.service()
    await gated.put(path, max_seal_lag_seconds=300)
    gated.clock.forward(300)
    await gated.evaluate_burn_rules(path)
    assert (await gated.ask(path))["state"] == "ALLOW"
    gated.clock.forward(1)
    await gated.evaluate_burn_rules(path)
    said = await gated.ask(path)
    assert {code for code, to, _ in reasons(said) if to == "block"} == {"seal_stale"}
    assert said["facts_fresh_until"] == to_text(Instant(FROZEN_NOW + 300 * SECOND))


async def test_an_open_incident_blocks_with_its_id(gated: Gated) -> None:
    path = await gated.service()
    await gated.put(path, service_incident_open="block")
    said = await gated.ask(path)
    assert (said["state"], reasons(said)) == ("UNKNOWN", [("never_evaluated", "block", None)])
    incident = await opened(gated.api, path)
    said = await gated.ask(path)
    assert said["state"] == "BLOCK"
    assert reasons(said) == [("service_incident_open", "block", uid_of(incident))]


async def test_a_service_without_a_declaration_is_blocked_as_unknown(gated: Gated) -> None:
    path = await new(gated.api, "empty")
    await gated.put(gated.project, service_incident_open="block")
    said = await gated.ask(path)
    assert (said["state"], said["action"]) == ("UNKNOWN", "BLOCK")
    assert {r["code"] for r in said["reasons"]} == {"no_governing_revision"}
    assert {r["clause"] for r in said["reasons"]} == set(CLAUSES)
    for lacking in ("sealed_through", "seal_lag", "target_id", "objective", "governing_revision"):
        assert lacking not in said
    assert "facts_fresh_until" not in said
    assert (said["burn_leases"], said["evidence"]) == ([], [])


async def test_a_window_without_an_objective_is_unknown(gated: Gated) -> None:
    path = await gated.service()
    await gated.put(path, window="7d")
    said = await gated.ask(path)
    blocking = {code for code, to, _ in reasons(said) if to == "block"}
    assert (said["state"], blocking) == ("UNKNOWN", {"window_target_missing"})
    assert said["window"] == "7d"
    assert said["evidence"] == []


async def test_the_worst_of_all_windows_decides(gated: Gated) -> None:
    path = await gated.service("checkout", (252, DOWN), (10_080 - 252, UP), window="7d")
    await gated.put(path, schema_version=2, window_mode="all", window=...)
    first = await gated.ask(path)
    assert first["state"] == "BLOCK"
    await gated.aim(path, "24h")
    said = await gated.ask(path)
    assert (said["schema_version"], said["window_mode"]) == (2, "all")
    for lacking in ("window", "target_id", "objective", "objective_updated_at"):
        assert lacking not in said
    assert [(each["window"], each["burned_percent"]) for each in said["evidence"]] == [
        ("24h", 0.0),
        ("7d", 250.0),
    ]
    assert said["evidence"][1] == first["evidence"][0]
    assert len(said["burn_leases"]) == 4
    assert {(r["code"], r.get("window")) for r in said["reasons"]} == {
        ("budget_exhausted", "7d"),
        ("budget_consumed", "7d"),
        ("never_evaluated", None),
    }


async def test_a_missing_policy_is_a_stored_decision(gated: Gated) -> None:
    path = await gated.service("checkout", *ALL)
    said = await gated.ask(path)
    assert (said["state"], said["reasons"]) == ("NOT_CONFIGURED", [{"code": "not_configured"}])
    for lacking in ("action", "unoverridden_action", "policy_revision", "policy_source", "window"):
        assert lacking not in said
    # The response has the figures, for the author of a policy.
    assert said["evidence"][0]["burned_percent"] == 250.0
    assert await gated.count() == 1


@pytest.mark.parametrize("kind", ["allow", "block", "unknown", "none", "all", "overridden"])
async def test_a_stored_decision_equals_its_response_byte_for_byte(gated: Gated, kind: str) -> None:
    lengths = ALL if kind in ("block", "overridden") else ()
    path = await gated.service("checkout", *lengths)
    if kind == "all":
        await gated.put(path, schema_version=2, window_mode="all", window=...)
    elif kind != "none":
        window = "90d" if kind == "unknown" else "24h"
        await gated.put(path, window=window)
    if kind == "overridden":
        await gated.let_through(path, 1)
    gated.clock.forward(1.234567)
    answer = await gated.api.ask("token", "POST", f"/api/v1{path}/gate", {})
    said = await answer.get_data()
    gated.clock.forward(600)
    # Later changes do not change the stored decision.
    await call(gated.api, "PUT", f"{path}/sla-target", {"window": "24h", "objective": 50})
    read = f"/api/v1{gated.project}/gate/decisions/{json.loads(said)['decision_id']}"
    again = await gated.api.ask("viewer", "GET", read)
    assert again.status_code == 200
    assert await again.get_data() == said


@pytest.mark.parametrize(
    ("data", "content_type", "status", "error"),
    [
        (b'{"dry_run": true}', "application/json", 400, "invalid JSON body"),
        (b"[]", "application/json", 400, "invalid JSON body"),
        (b"null", "application/json", 400, "invalid JSON body"),
        (b"{", "application/json", 400, "invalid JSON body"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
    ],
)
async def test_the_gate_accepts_only_an_empty_document(
    gated: Gated, data: bytes, content_type: str, status: int, error: str
) -> None:
    path = f"/api/v1{await gated.service()}/gate"
    headers = {"Content-Type": content_type}
    answer = await gated.api.ask("viewer", "POST", path, data=data, headers=headers)
    assert (answer.status_code, await answer.get_json()) == (status, {"error": error})
    assert await gated.count() == 0
    for given in ({"data": b"{}", "headers": {"Content-Type": "application/json"}}, {}):
        answer = await gated.api.ask("viewer", "POST", path, **given)  # type: ignore[arg-type]
        assert answer.status_code == 200


async def test_slugs_name_the_project_and_the_service_of_a_request(gated: Gated) -> None:
    """As a token that is restricted to actions cannot read the lists."""
    uid = uid_of(await gated.service())
    project = str(gated.api.project)
    for who in ("gate_token", "pipeline_token", "viewer_token", "viewer"):
        for names in (("shop", "checkout"), ("shop", uid), (project, "checkout")):
            found = await gated.ask("/projects/{}/services/{}".format(*names), who)
            assert found["service_id"] == uid
    change = {
        "source": "ci",
        "external_id": "1",
        "kind": "deploy",
        "phase": "started",
        "occurred_at": to_text(gated.clock.now),
    }
    path = "/projects/shop/services/checkout"
    told_ = await call(gated.api, "POST", f"{path}/changes", change, 201, who="change_token")
    assert told_["change"]["service_id"] == uid
    for who, where in (
        ("gate_token", "/projects/shop/services/nothing"),
        ("gate_token", "/projects/mill/services/checkout"),
        ("gate_token", "/projects/shop/services/Checkout"),
        ("gate_token", "/projects/shop/services/%27"),
        ("foreign_token", path),
        ("stranger", path),
    ):
        refused = await call(gated.api, "POST", f"{where}/gate", status=404, who=who)
        assert refused == {"error": "not_found"}
    # Other routes take ids only.
    await call(gated.api, "GET", f"{path}/gate/policy", status=404)
    await call(gated.api, "POST", f"{path}/gate", status=403, who="change_token")


async def test_a_service_is_found_only_in_its_own_project(gated: Gated) -> None:
    path = await gated.service()
    mill = f"{services_of(gated.api, 'acme/mill')}/{uid_of(path)}"
    for where in (mill, f"{services_of(gated.api)}/{NOWHERE}"):
        reads = ["policy", "override", "overrides", f"overrides/{NOWHERE}"]
        asked: list[tuple[str, str, Any]] = [
            ("POST", "", None),
            *(("GET", f"/{read}", None) for read in reads),
            ("PUT", "/policy", policy()),
            ("DELETE", "/policy?expected_revision=1", None),
            ("DELETE", f"/overrides/{NOWHERE}", None),
            (
                "POST",
                "/override",
                {"policy_revision": 1, "reason": "x", "expires_at": "2026-01-05T01:00:00Z"},
            ),
        ]
        for method, of, body in asked:
            found = await call(gated.api, method, f"{where}/gate{of}", body, 404, who="org_admin")
            assert found == {"error": "not_found"}, (method, of)
    assert await gated.count() == 0


async def test_a_decision_stores_the_name_of_its_caller(gated: Gated) -> None:
    path = await gated.service()
    by = {who: (await gated.ask(path, who))["actor_label"] for who in ("viewer", "gate_token")}
    assert by["viewer"] == "viewer"
    assert by["gate_token"] != by["viewer"]
    kept = await gated.api.rows(
        "select via_token, actor_user from gate_decisions order by via_token"
    )
    assert [row[0] for row in kept] == [False, True]
    assert kept[0][1] == gated.api.users["viewer"][1]


async def test_decisions_of_a_deleted_service_lose_its_id(gated: Gated) -> None:
    path = await gated.service()
    said = await gated.ask(path)
    await call(gated.api, "DELETE", path, status=204)
    read = f"{gated.project}/gate/decisions/{said['decision_id']}"
    assert await call(gated.api, "GET", read) == {**said, "service_id": None}
