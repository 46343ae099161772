"""Edits of gate policies, based on the revision that the caller has seen.

Invariants: an equal document writes no row. Another document is a new revision and revokes all
overrides of the former one, in every service that inherits it.
"""

from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...accounts.transactions.object_marks import SETTINGS, expect_unmanaged_object
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.queries.service_timeouts import select_longest_timeouts
from ...services.queries.services import select_services_of_project
from ...services.rows import ServiceRow
from ...services.transactions.lock_service import demand_service, expect_unmanaged, lock_home
from ..queries import gate_policies as gate_policies_queries
from ..rows import GatePolicyRow
from ..rules.gate_override import Ended
from ..rules.gate_policy import SEAL_LAG_MOST_SECONDS, Document, fault, least_seal_lag_seconds
from ..tables import gate_overrides, gate_policies


async def put_policy(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID | None,
    expected_revision: int | None,
    document: Document,
) -> GatePolicyRow:
    """Replaces the policy of a service; with None of the project.

    Args:
        expected_revision: None if the caller has seen no policy.

    Raises:
        Refused not_found, forbidden, revision_conflict, policy_invalid with its field,
        managed_by_file.
    """
    wrong = fault(document)
    if wrong is not None:
        raise Refused("policy_invalid", *wrong)
    home, row = await _hold(tx, principal, project, service)
    key = None if row is None else row.id
    await _check_seal_lag(tx, home, row, document)
    before = await gate_policies_queries.select_policy(tx, home.org, home.id, key)
    if (None if before is None else before.revision) != expected_revision:
        raise Refused("revision_conflict")
    if before is not None and before.document == document:
        return before
    await gate_policies.put_policy(tx, home.org, home.id, key, document, principal.label)
    if before is not None:
        await _end_overrides(tx, principal, home, before, Ended.POLICY_CHANGED)
    after = await gate_policies_queries.select_policy(tx, home.org, home.id, key)
    assert after is not None, "the new policy is missing"
    verb = "create" if before is None else "update"
    await _audit(tx, principal, after, verb, f"revision={after.revision}")
    return after


async def delete_policy(
    tx: Tx, principal: Principal, project: UUID, service: UUID | None, expected_revision: int
) -> None:
    """Deletes a policy and revokes its overrides.

    Raises:
        Refused not_found, forbidden, not_configured, revision_conflict, managed_by_file.
    """
    home, row = await _hold(tx, principal, project, service)
    key = None if row is None else row.id
    before = await gate_policies_queries.select_policy(tx, home.org, home.id, key)
    if before is None:
        raise Refused("not_configured")
    if before.revision != expected_revision:
        raise Refused("revision_conflict")
    await gate_policies.end_policy(tx, home.org, home.id, key)
    await _end_overrides(tx, principal, home, before, Ended.POLICY_DELETED)
    await _audit(tx, principal, before, "delete", f"revision={before.revision}")


async def _hold(
    tx: Tx, principal: Principal, project: UUID, service: UUID | None
) -> tuple[ProjectRow, ServiceRow | None]:
    home, _ = await lock_home(tx, principal, project)
    if service is None:
        await expect_unmanaged_object(tx, principal, home.org, home.id, SETTINGS, home.uid)
        return home, None
    row = await demand_service(tx, principal, project, service)
    if row.gate_managed:
        expect_unmanaged(principal, row)
    return home, row


async def _check_seal_lag(
    tx: Tx, home: ProjectRow, service: ServiceRow | None, document: Document
) -> None:
    """Refuses a seal lag below the reachable minimum, as every decision would be unknown."""
    rows = [service] if service else await select_services_of_project(tx, home.org, home.id)
    timeouts = await select_longest_timeouts(tx, [row.key for row in rows], tx.now)
    least = least_seal_lag_seconds(max(timeouts.values(), default=0))
    if document.max_seal_lag_seconds < least:
        rule = f"must be {least}–{SEAL_LAG_MOST_SECONDS}, because member runs can take this long"
        raise Refused("policy_invalid", "max_seal_lag_seconds", rule)


async def _end_overrides(
    tx: Tx, principal: Principal, home: ProjectRow, before: GatePolicyRow, why: Ended
) -> None:
    await gate_overrides.revoke_bound(
        tx, home.org, home.id, before.service, before.revision, why, principal.actor
    )


async def _audit(tx: Tx, principal: Principal, policy: GatePolicyRow, verb: str, said: str) -> None:
    target = f"{policy.source}:{policy.owner} project:{policy.project_uid} {said}"
    await audit(tx, principal, policy.org, f"gate_policy.{verb}", target)
