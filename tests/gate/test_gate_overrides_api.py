"""Gate overrides: permission, expiry, policy revision, revocation and conflicts."""

from typing import Any

import pytest
import trio

from leadline.storage.core.instant import DAY, SECOND, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.gate.test_gate_policies_api import audited, remove
from tests.support.app.gating import Gated, policy
from tests.support.app.serving import DOWN, NOWHERE, UP, call

BURNED = ((1_400, UP), (40, DOWN))


async def blocked(gated: Gated, slug: str = "checkout") -> str:
    """Creates a service whose error budget is used up, and returns its path."""
    return await gated.service(slug, *BURNED)


async def active(gated: Gated, path: str, status: int = 200) -> Any:
    return await call(gated.api, "GET", f"{path}/gate/override", status=status, who="viewer")


async def record(gated: Gated, path: str, uid: str) -> Any:
    found = await call(gated.api, "GET", f"{path}/gate/overrides/{uid}", who="viewer")
    listed = await call(gated.api, "GET", f"{path}/gate/overrides", who="viewer")
    assert found in listed["items"]
    return found


async def end(gated: Gated, path: str, uid: str, status: int = 204) -> Any:
    where = f"{path}/gate/overrides/{uid}"
    return await call(gated.api, "DELETE", where, status=status, who="project_admin")


async def test_an_override_turns_block_into_allow_and_keeps_the_state(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path)
    assert await active(gated, path, 404) == {"error": "none_active"}
    before = await gated.ask(path)
    made = await gated.let_through(path, 1)
    assert made == {
        "id": made["id"],
        "reason": "It mends it.",
        "expires_at": to_text(Instant(FROZEN_NOW + 3_600 * SECOND)),
        "created_at": to_text(FROZEN_NOW),
        "actor_label": "project_admin",
        "policy_revision": 1,
    }
    assert await active(gated, path) == made
    after = await gated.ask(path)
    assert (before["state"], before["action"]) == ("BLOCK", "BLOCK")
    told_of = {name: made[name] for name in ("id", "actor_label", "reason", "expires_at")}
    assert after == {
        **before,
        "decision_id": after["decision_id"],
        "action": "ALLOW",
        "override_id": made["id"],
        "override": told_of,
    }
    assert after["unoverridden_action"] == "BLOCK"


@pytest.mark.parametrize(
    ("change", "state", "action", "overridden"),
    [
        ({}, "BLOCK", "BLOCK", "ALLOW"),
        ({"window": "7d"}, "UNKNOWN", "BLOCK", "ALLOW"),
        ({"window": "7d", "unknown_behavior": "warn"}, "UNKNOWN", "WARN", "WARN"),
        ({"budget_exhausted": "warn", "budget_consumed": "warn"}, "WARN", "WARN", "WARN"),
        ({"budget_exhausted": "ignore", "budget_consumed": "ignore"}, "ALLOW", "ALLOW", "ALLOW"),
    ],
)
async def test_an_override_changes_only_block(
    gated: Gated, change: Any, state: str, action: str, overridden: str
) -> None:
    path = await blocked(gated)
    await gated.put(path, **change)
    await gated.let_through(path, 1)
    said = await gated.ask(path)
    assert (said["state"], said["unoverridden_action"], said["action"]) == (
        state,
        action,
        overridden,
    )
    assert "override" in said


async def test_an_override_expires_by_the_clock(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path, max_seal_lag_seconds=86_400)
    made = await gated.let_through(path, 1, seconds=60)
    gated.clock.forward(59.999)
    assert (await gated.ask(path))["action"] == "ALLOW"
    assert (await record(gated, path, made["id"]))["status"] == "active"
    gated.clock.forward(0.001)
    said = await gated.ask(path)
    assert said["action"] == "BLOCK"
    assert "override_id" not in said
    assert await active(gated, path, 404) == {"error": "none_active"}
    found = await record(gated, path, made["id"])
    assert (found["status"], found["revoked_at"], found["revoked_reason"]) == (
        "expired",
        None,
        None,
    )
    assert await end(gated, path, made["id"], 409) == {"error": "override_not_active"}
    # Another override can be created.
    await gated.let_through(path, 1)


async def test_an_override_is_revoked_once_and_names_the_user(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path)
    made = await gated.let_through(path, 1)
    gated.clock.forward(5)
    await end(gated, path, made["id"])
    assert await end(gated, path, made["id"], 409) == {"error": "override_not_active"}
    assert await record(gated, path, made["id"]) == {
        **made,
        "actor_user_id": str(gated.api.users["project_admin"][1]),
        "via_token": False,
        "status": "revoked",
        "revoked_at": to_text(gated.clock.now),
        "revoked_reason": "manual",
        "revoked_by_label": "project_admin",
        "revoked_by_user_id": str(gated.api.users["project_admin"][1]),
        "revoked_via_token": False,
    }
    assert (await gated.ask(path))["action"] == "BLOCK"
    assert [action for action, _ in await audited(gated)] == [
        "gate_policy.create",
        "gate_override.create",
        "gate_override.revoke",
    ]


async def test_editing_or_deleting_the_policy_revokes_its_override(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path)
    first = await gated.let_through(path, 1)
    await gated.put(path, 1, budget_consumed_percent=90)
    found = await record(gated, path, first["id"])
    assert (found["status"], found["revoked_reason"]) == ("revoked", "policy_changed")
    assert (found["revoked_by_label"], found["revoked_via_token"]) == ("editor", False)
    assert (await gated.ask(path))["action"] == "BLOCK"
    second = await gated.let_through(path, 2)
    await remove(gated, path, 2)
    found = await record(gated, path, second["id"])
    assert (found["status"], found["revoked_reason"]) == ("revoked", "policy_deleted")
    listed = await call(gated.api, "GET", f"{path}/gate/overrides", who="viewer")
    assert [item["id"] for item in listed["items"]] == [second["id"], first["id"]]
    # The same document again is another revision: the earlier override does not apply.
    await gated.put(path)
    assert (await gated.ask(path))["action"] == "BLOCK"


async def test_a_project_policy_edit_revokes_inherited_overrides_only(gated: Gated) -> None:
    heir, own, returned = [await blocked(gated, slug) for slug in ("heir", "own", "returned")]
    await gated.put(gated.project)
    await gated.put(own)
    by = {path: await gated.let_through(path, 1) for path in (heir, own, returned)}
    # The service inherited the policy before, and has its own policy now.
    await gated.put(returned)
    await gated.put(gated.project, 1, budget_consumed_percent=90)
    seen = {path: await record(gated, path, by[path]["id"]) for path in by}
    assert {path: (of["status"], of["revoked_reason"]) for path, of in seen.items()} == {
        heir: ("revoked", "policy_changed"),
        own: ("active", None),
        returned: ("revoked", "policy_changed"),
    }


async def test_an_override_is_inert_while_another_policy_governs(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(gated.project)
    made = await gated.let_through(path, 1)
    # The first revision of the service's own policy has the same number, but is another revision.
    await gated.put(path)
    assert (await record(gated, path, made["id"]))["status"] == "inert"
    assert await active(gated, path, 404) == {"error": "none_active"}
    assert (await gated.ask(path))["action"] == "BLOCK"
    other = await gated.let_through(path, 1)
    assert (await gated.ask(path))["override_id"] == other["id"]
    await remove(gated, path, 1)
    assert (await record(gated, path, other["id"]))["status"] == "revoked"
    assert (await record(gated, path, made["id"]))["status"] == "active"
    assert (await gated.ask(path))["override_id"] == made["id"]
    # An inert override can be revoked, and does not become active again.
    await gated.put(path)
    await end(gated, path, made["id"])
    await remove(gated, path, 2)
    assert (await gated.ask(path))["action"] == "BLOCK"


async def test_one_override_is_active_for_the_current_revision(gated: Gated) -> None:
    path = await blocked(gated)
    assert await gated.let_through(path, 1, 404) == {"error": "not_configured"}
    await gated.put(path)
    for unseen in (0, 2):
        assert await gated.let_through(path, unseen, 409) == {"error": "revision_conflict"}
    await gated.let_through(path, 1)
    assert await gated.let_through(path, 1, 409) == {"error": "override_active"}
    assert len((await call(gated.api, "GET", f"{path}/gate/overrides"))["items"]) == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"reason": ""}, "reason: must be 1–500 characters"),
        ({"reason": " \n\t "}, "reason: must be 1–500 characters"),
        ({"reason": "x" * 501}, "reason: must be 1–500 characters"),
        ({"reason": "a\u0007b"}, "reason: must not contain control characters"),
        ({"reason": None}, "reason: "),
        ({"expires_at": to_text(FROZEN_NOW)}, "expires_at: must be in the future"),
        (
            {"expires_at": to_text(Instant(FROZEN_NOW + 7 * DAY + 1_000))},
            "expires_at: must be at most 7 days ahead",
        ),
        ({"expires_at": "tomorrow"}, "expires_at: must be an RFC 3339 instant"),
        ({"expires_at": "2026-01-06T00:00:00"}, "expires_at: must be an RFC 3339 instant"),
        ({"expires_at": 1}, "expires_at: "),
        ({"policy_revision": "1"}, "policy_revision: "),
        ({"policy_revision": -1}, "policy_revision: "),
        ({"policy_revision": None}, "policy_revision: "),
        ({"id": NOWHERE}, "invalid JSON body"),
    ],
)
async def test_an_invalid_override_is_refused_with_its_field(
    gated: Gated, change: Any, error: str
) -> None:
    path = await blocked(gated)
    await gated.put(path)
    body = {"policy_revision": 1, "reason": "x", "expires_at": "2026-01-06T00:00:00Z", **change}
    where = f"{path}/gate/override"
    said = await call(gated.api, "POST", where, body, 400, who="project_admin")
    assert said["error"].startswith(error)
    assert (await call(gated.api, "GET", f"{path}/gate/overrides"))["items"] == []


async def test_the_bounds_of_an_override_are_inclusive(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path)
    made = await gated.let_through(path, 1, reason=f"  {'ä' * 500}\n", seconds=7 * 86_400)
    assert made["reason"] == "ä" * 500
    await end(gated, path, made["id"])
    made = await gated.let_through(path, 1, reason="x", expires_at="2026-01-05T00:00:00.001Z")
    assert made["expires_at"] == "2026-01-05T00:00:00.001Z"


async def test_an_override_of_another_service_is_not_found(gated: Gated) -> None:
    path, other = await blocked(gated), await blocked(gated, "other")
    await gated.put(gated.project)
    made = await gated.let_through(path, 1)
    for uid in (made["id"], NOWHERE):
        where = f"{other}/gate/overrides/{uid}"
        for method in ("GET", "DELETE"):
            found = await call(gated.api, method, where, status=404, who="project_admin")
            assert found == {"error": "not_found"}
    assert await active(gated, other, 404) == {"error": "none_active"}
    assert (await gated.ask(other))["action"] == "BLOCK"


async def test_of_two_concurrent_overrides_one_is_created(gated: Gated) -> None:
    path = await blocked(gated)
    await gated.put(path)
    found: list[tuple[int, Any]] = []

    async def make() -> None:
        body = {"policy_revision": 1, "reason": "x", "expires_at": "2026-01-06T00:00:00Z"}
        where = f"/api/v1{path}/gate/override"
        answer = await gated.api.ask("project_admin", "POST", where, body)
        found.append((answer.status_code, (await answer.get_json()).get("error")))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(make)
    assert sorted(found) == [(201, None), *[(409, "override_active")] * 3]


@pytest.mark.parametrize("inherited", [False, True])
async def test_a_concurrent_edit_leaves_no_active_override(gated: Gated, inherited: bool) -> None:
    """In either order, no override of an ended revision is active."""
    path = await blocked(gated)
    where = gated.project if inherited else path
    await gated.put(where)
    for revision in range(1, 9):
        found = await edit_and_let_through(gated, path, where, revision)
        assert found["edit"] == 200
        assert found["let"] in (201, 409)
        assert await active(gated, path, 404) == {"error": "none_active"}
        listed = (await call(gated.api, "GET", f"{path}/gate/overrides"))["items"]
        assert {item["status"] for item in listed} <= {"revoked"}
        assert (await gated.ask(path))["action"] == "BLOCK"


async def edit_and_let_through(
    gated: Gated, path: str, where: str, revision: int
) -> dict[str, int]:
    """Edits the policy and creates an override of the previous revision concurrently; returns both
    statuses.
    """
    found: dict[str, int] = {}

    async def ask(name: str, who: str, method: str, of: str, body: Any) -> None:
        answer = await gated.api.ask(who, method, f"/api/v1{of}", body)
        found[name] = answer.status_code

    edit = policy(revision, budget_consumed_percent=10 + revision)
    body = {"policy_revision": revision, "reason": "x", "expires_at": "2026-01-06T00:00:00Z"}
    acts = [
        ("edit", "editor", "PUT", f"{where}/gate/policy", edit),
        ("let", "project_admin", "POST", f"{path}/gate/override", body),
    ]
    async with trio.open_nursery() as nursery:
        for act in acts if revision % 2 else reversed(acts):
            nursery.start_soon(ask, *act)
    return found
