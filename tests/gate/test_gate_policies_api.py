"""Gate policies: inheritance, validation of each field, and revision numbers."""

from typing import Any

import pytest
import trio

from leadline.storage.core.instant import to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.gating import Gated, policy
from tests.support.app.serving import call, document, new, refused, uid_of

NOW = to_text(FROZEN_NOW)


async def policy_of(gated: Gated, path: str, status: int = 200) -> Any:
    return await call(gated.api, "GET", f"{path}/gate/policy", status=status, who="viewer")


async def remove(gated: Gated, path: str, expected: object, status: int = 204) -> Any:
    query = {"expected_revision": str(expected)}
    return await call(gated.api, "DELETE", f"{path}/gate/policy", status=status, query=query)


async def audited(gated: Gated) -> list[tuple[str, str]]:
    return await gated.api.rows(
        "select action, target from audit_entries where action like 'gate_%%' order by id"
    )


async def test_a_policy_is_put_read_and_deleted(gated: Gated) -> None:
    path = await new(gated.api, "checkout")
    for where in (path, gated.project):
        assert await policy_of(gated, where, 404) == {"error": "not_configured"}
        assert await remove(gated, where, 1, 404) == {"error": "not_configured"}
    made = await gated.put(path)
    body = policy()
    del body["expected_revision"]
    assert made == {
        **body,
        "revision": 1,
        "updated_at": NOW,
        "updated_by": "editor",
        "policy_source": "service",
        "policy_owner_id": uid_of(path),
    }
    assert await policy_of(gated, path) == made
    assert await policy_of(gated, gated.project, 404) == {"error": "not_configured"}
    await remove(gated, path, 1)
    assert await policy_of(gated, path, 404) == {"error": "not_configured"}
    of = f"service:{uid_of(path)} project:{gated.api.project} revision=1"
    assert await audited(gated) == [("gate_policy.create", of), ("gate_policy.delete", of)]


async def test_a_service_uses_its_own_policy_or_that_of_its_project(gated: Gated) -> None:
    path, other = await new(gated.api, "checkout"), await new(gated.api, "other")
    of_project = await gated.put(gated.project, budget_consumed_percent=50)
    assert (of_project["policy_source"], of_project["policy_owner_id"]) == (
        "project",
        str(gated.api.project),
    )
    assert await policy_of(gated, gated.project) == of_project
    assert await policy_of(gated, path) == of_project
    own = await gated.put(path, budget_consumed_percent=60)
    assert own["revision"] == 1
    assert await policy_of(gated, path) == own
    assert await policy_of(gated, other) == of_project
    assert await policy_of(gated, gated.project) == of_project
    # A service cannot delete an inherited policy.
    assert await remove(gated, other, 1, 404) == {"error": "not_configured"}
    await remove(gated, path, 1)
    assert await policy_of(gated, path) == of_project
    said = await gated.ask(path)
    assert (said["policy_source"], said["policy_owner_id"]) == ("project", str(gated.api.project))


async def test_revision_numbers_are_not_reused_after_a_deletion(gated: Gated) -> None:
    path = await new(gated.api, "checkout")
    for where in (path, gated.project):
        seen = [(await gated.put(where))["revision"]]
        seen.append((await gated.put(where, 1, unknown_behavior="warn"))["revision"])
        await remove(gated, where, 2)
        seen.append((await gated.put(where))["revision"])
        await remove(gated, where, 3)
        seen.append((await gated.put(where))["revision"])
        assert seen == [1, 2, 3, 4]


async def test_putting_the_same_document_again_changes_nothing(gated: Gated) -> None:
    path = await gated.service()
    made = await gated.put(path)
    override = await gated.let_through(path, 1)
    before = await audited(gated)
    gated.clock.forward(60)
    assert await gated.put(path, 1) == made
    # The request must name the current revision.
    assert await gated.put(path, None, 409) == {"error": "revision_conflict"}
    assert await gated.put(path, 2, 409) == {"error": "revision_conflict"}
    assert await audited(gated) == before
    found = await call(gated.api, "GET", f"{path}/gate/override", who="viewer")
    assert found == override


@pytest.mark.parametrize("where", ["service", "project"])
async def test_a_wrong_expected_revision_is_refused(gated: Gated, where: str) -> None:
    path = await new(gated.api, "checkout") if where == "service" else gated.project
    for unseen in (0, 1, 7):
        assert await gated.put(path, unseen, 409) == {"error": "revision_conflict"}
    await gated.put(path)
    for other in (None, 0, 2):
        assert await gated.put(path, other, 409, window="7d") == {"error": "revision_conflict"}
    assert await remove(gated, path, 2, 409) == {"error": "revision_conflict"}
    assert await remove(gated, path, 0, 409) == {"error": "revision_conflict"}
    assert (await policy_of(gated, path))["window"] == "24h"
    changed = await gated.put(path, 1, window="7d")
    assert (changed["revision"], changed["window"]) == (2, "7d")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, "expected_revision_required"),
        ("", "expected_revision_invalid"),
        ("-1", "expected_revision_invalid"),
        ("+1", "expected_revision_invalid"),
        ("1.0", "expected_revision_invalid"),
        ("one", "expected_revision_invalid"),
        ("null", "expected_revision_invalid"),
        ("١", "expected_revision_invalid"),
        ("99999999999999999999", "expected_revision_invalid"),
    ],
)
@pytest.mark.parametrize("where", ["service", "project"])
async def test_a_deletion_needs_the_expected_revision(
    gated: Gated, where: str, given: str | None, error: str
) -> None:
    path = await new(gated.api, "checkout") if where == "service" else gated.project
    await gated.put(path)
    query = None if given is None else {"expected_revision": given}
    found = await call(gated.api, "DELETE", f"{path}/gate/policy", status=400, query=query)
    assert found == {"error": error}
    assert (await policy_of(gated, path))["revision"] == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"expected_revision": ...}, "expected_revision: is required"),
        ({"expected_revision": "1"}, "expected_revision: "),
        ({"expected_revision": -1}, "expected_revision: "),
        ({"expected_revision": True}, "expected_revision: "),
        ({"expected_revision": 1.5}, "expected_revision: "),
        ({"expected_revision": 1 << 31}, "expected_revision: "),
        ({"schema_version": ...}, "schema_version: is required"),
        ({"schema_version": 0}, "schema_version: "),
        ({"schema_version": 3}, "schema_version: "),
        ({"schema_version": "1"}, "schema_version: "),
        ({"window": ...}, "window: is required for one window"),
        ({"window": "1h"}, "window: "),
        ({"window": None}, "window: "),
        ({"window_mode": "all"}, "window_mode: is not in schema 1"),
        ({"window_mode": "some"}, "window_mode: "),
        ({"schema_version": 2}, "window_mode: is required in schema 2"),
        (
            {"schema_version": 2, "window_mode": "all"},
            "window: must be left out for all windows",
        ),
        (
            {"schema_version": 2, "window_mode": "one", "window": ...},
            "window: is required for one window",
        ),
        ({"clauses": ...}, "clauses: is required"),
        ({"clauses": {}}, "clauses.budget_exhausted: is required"),
        ({"budget_exhausted": "allow"}, "clauses.budget_exhausted: "),
        ({"page_burn_firing": None}, "clauses.page_burn_firing: "),
        ({"budget_consumed_percent": 0}, "budget_consumed_percent: "),
        ({"budget_consumed_percent": 101}, "budget_consumed_percent: "),
        ({"budget_consumed_percent": 80.5}, "budget_consumed_percent: "),
        ({"budget_consumed_percent": ...}, "budget_consumed_percent: is required"),
        ({"max_seal_lag_seconds": 299}, "max_seal_lag_seconds: "),
        ({"max_seal_lag_seconds": 86_401}, "max_seal_lag_seconds: "),
        ({"max_seal_lag_seconds": ...}, "max_seal_lag_seconds: is required"),
        ({"unknown_behavior": "allow"}, "unknown_behavior: "),
        ({"unknown_behavior": "ignore"}, "unknown_behavior: "),
        ({"unknown_behavior": ...}, "unknown_behavior: is required"),
        ({"revision": 1}, "invalid JSON body"),
        ({"clauses": {"nothing": "block"}}, "invalid JSON body"),
    ],
)
async def test_an_invalid_policy_is_refused_with_its_field(
    gated: Gated, change: dict[str, Any], error: str
) -> None:
    path = await new(gated.api, "checkout")
    body = policy(**change)
    for where in (path, gated.project):
        said = await refused(gated.api, "PUT", f"{where}/gate/policy", body, 400)
        assert said.startswith(error)
        await policy_of(gated, where, 404)


@pytest.mark.parametrize(
    "given",
    [
        {"budget_consumed_percent": 1},
        {"budget_consumed_percent": 100},
        {"max_seal_lag_seconds": 300},
        {"max_seal_lag_seconds": 86_400},
        {"window_mode": "one"},
        {"schema_version": 2, "window_mode": "one", "window": "90d"},
        {"schema_version": 2, "window_mode": "all", "window": ...},
    ],
)
async def test_the_bounds_of_a_policy_are_inclusive(gated: Gated, given: dict[str, Any]) -> None:
    path = await new(gated.api, "checkout")
    made = await gated.put(path, **given)
    body = policy(**given)
    del body["expected_revision"]
    if body["schema_version"] == 1:
        body.pop("window_mode", None)
    assert {name: made[name] for name in body} == body
    assert set(made) - set(body) == {
        "revision",
        "updated_at",
        "updated_by",
        "policy_source",
        "policy_owner_id",
    }


async def test_a_seal_lag_below_the_longest_run_of_a_member_is_refused(gated: Gated) -> None:
    path = await new(gated.api, "slow")
    slow = await gated.api.new_monitor(interval_seconds=600, timeout_seconds=300)
    await call(gated.api, "PUT", f"{path}/declaration", document(slow.uid))
    gated.clock.forward(120)
    said = "max_seal_lag_seconds: must be 480–86400, because member runs can take this long"
    body = policy(max_seal_lag_seconds=479)
    for where in (path, gated.project):
        assert await refused(gated.api, "PUT", f"{where}/gate/policy", body, 400) == said
        assert (await gated.put(where, max_seal_lag_seconds=480))["revision"] == 1


async def test_of_concurrent_edits_of_one_revision_one_succeeds(gated: Gated) -> None:
    path = await new(gated.api, "checkout")
    for where in (path, gated.project):
        for seen in (None, 1):
            found = await put_at_once(gated, where, seen)
            assert sorted(found) == [200, 409, 409, 409]
            assert (await policy_of(gated, where))["revision"] == (seen or 0) + 1


async def put_at_once(gated: Gated, where: str, seen: int | None) -> list[int]:
    """Puts four different documents concurrently and returns the statuses."""
    found: list[int] = []

    async def put(percent: int) -> None:
        body = policy(seen, budget_consumed_percent=percent + (seen or 0))
        answer = await gated.api.ask("editor", "PUT", f"/api/v1{where}/gate/policy", body)
        found.append(answer.status_code)

    async with trio.open_nursery() as nursery:
        for percent in (10, 20, 30, 40):
            nursery.start_soon(put, percent)
    return found
