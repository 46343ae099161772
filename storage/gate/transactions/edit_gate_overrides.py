"""Edits of gate overrides, which allow a blocked release for a limited time.

Invariants: a service has at most one active override. It belongs to the policy revision that its
creator has seen.
"""

from typing import Final
from uuid import UUID

from ...accounts.queries.projects import select_project
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...core.instant import Instant, to_text
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.rows import ServiceRow
from ...services.tables.service_dependencies import lock_graph
from ...services.tables.services import lock_service
from ..queries import gate_overrides as gate_overrides_queries
from ..queries.gate_policies import select_governing
from ..rows import GateOverrideRow, GatePolicyRow
from ..rules.gate_override import (
    Ended,
    OverrideBinding,
    OverrideStatus,
    expiry_fault,
    reason_fault,
    status,
)
from ..rules.gate_policy import PolicySource
from ..tables import gate_overrides

ADMIN: Final = Permission(Need.PROJECT_ADMIN)


async def create_override(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID,
    policy_revision: int,
    reason: str,
    expires_at: Instant,
    *,
    seen_source: PolicySource | None = None,
) -> GateOverrideRow:
    """Creates an override of the governing policy revision.

    Args:
        policy_revision: revision that the caller has seen.
        seen_source: owner of the seen policy, None if unknown.

    Raises:
        Refused not_found, forbidden, not_configured, override_active, revision_conflict,
        override_invalid with its field.
    """
    row = await _hold(tx, principal, project, service)
    reason = reason.strip()
    for field, rule in (
        ("reason", reason_fault(reason)),
        ("expires_at", expiry_fault(expires_at, tx.now)),
    ):
        if rule is not None:
            raise Refused("override_invalid", field, rule)
    policy = await select_governing(tx, row.org, row.project, row.id)
    if policy is None:
        raise Refused("not_configured")
    if policy.revision != policy_revision or policy.source != (seen_source or policy.source):
        raise Refused("revision_conflict")
    standing = await gate_overrides_queries.select_standing(
        tx, row.key, policy.source, policy.revision
    )
    if standing is not None:
        raise Refused("override_active")
    uid = await gate_overrides.insert_override(
        tx, row.key, policy.source, policy.revision, reason, expires_at, principal.actor
    )
    said = f"revision={policy.revision} until={to_text(expires_at)}"
    await _audit(tx, principal, row, "create", uid, said)
    found = await gate_overrides_queries.select_override(tx, row.key, uid)
    assert found is not None, "the new override is missing"
    return found


async def revoke_override(
    tx: Tx, principal: Principal, project: UUID, service: UUID, override: UUID
) -> None:
    """Revokes an active or inert override; an inert one can become active again.

    Raises:
        Refused not_found, forbidden, override_not_active.
    """
    row = await _hold(tx, principal, project, service)
    found = await gate_overrides_queries.select_override(tx, row.key, override)
    if found is None:
        raise Refused(NOT_FOUND)
    policy = await select_governing(tx, row.org, row.project, row.id)
    before = status_of(found, policy, tx.now)
    if before not in (OverrideStatus.ACTIVE, OverrideStatus.INERT):
        raise Refused("override_not_active")
    await gate_overrides.revoke(tx, row.org, [found.id], Ended.MANUAL, principal.actor)
    await _audit(tx, principal, row, "revoke", override, f"{before}->revoked")


def status_of(
    override: GateOverrideRow, governing: GatePolicyRow | None, now: Instant
) -> OverrideStatus:
    """Returns the status. `governing` is the policy of the override's service."""
    bound = OverrideBinding(override.policy_source, override.policy_revision)
    governs = None if governing is None else OverrideBinding(governing.source, governing.revision)
    return status(bound, override.expires_at, override.revoked_at, governs, now)


async def _hold(tx: Tx, principal: Principal, project: UUID, service: UUID) -> ServiceRow:
    """Locks the project before the service, as for policies, so that the policy stays."""
    home = await select_project(tx, project)
    if home is None:
        raise Refused(NOT_FOUND)
    demand(principal, ADMIN, Scope(home.org, home.id))
    await lock_graph(tx, home.org, home.id)
    row = await lock_service(tx, service)
    if row is None or row.project_uid != project:
        raise Refused(NOT_FOUND)
    return row


async def _audit(
    tx: Tx, principal: Principal, service: ServiceRow, verb: str, override: UUID, said: str
) -> None:
    target = f"gate_override:{override} service:{service.uid} {said}"
    await audit(tx, principal, service.org, f"gate_override.{verb}", target)
