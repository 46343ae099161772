"""Edits of escalation policies by editors of the project. An update replaces all steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_project, demand_row, is_managed
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.instant import SECOND
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..queries import escalation_policies, oncall_uses
from ..rows import EscalationPolicyRow
from ..rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    TargetKind,
    ack_timeout_fault,
    ladder_fault,
    nesting_fault,
)
from ..tables import escalation_policies as policies
from .check_targets import RequestedTarget, lock_targets

POLICIES_OF_PROJECT_MOST: Final = 100
EDIT = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True)
class StepDraft:
    """Requested step. Each target has a kind and an id."""

    after_seconds: int
    targets: Sequence[tuple[TargetKind, str]]


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    name: str
    steps: Sequence[StepDraft]
    repeat_last: bool = False
    ack_timeout_seconds: int = 0


async def create_policy(
    tx: Tx, principal: Principal, project: UUID, draft: PolicyDraft
) -> EscalationPolicyRow:
    """Creates a policy.

    Raises:
        Refused not_found, forbidden, invalid with its field, policy_quota.
    """
    home = await demand_project(tx, principal, EDIT, project)
    _check(draft)
    await lock_project(tx, home)
    if await policies.count_policies(tx, home.org, home.id) >= POLICIES_OF_PROJECT_MOST:
        raise Refused("policy_quota")
    row = await create_held_policy(tx, principal, home, uuid7(), draft)
    await _check_nesting(tx, row)
    return row


async def create_held_policy(
    tx: Tx, principal: Principal, home: ProjectRow, uid: UUID, draft: PolicyDraft
) -> EscalationPolicyRow:
    """Creates a policy in a locked project that has room for it. The caller checks the nesting.

    Raises:
        Refused invalid with its field.
    """
    _check(draft)
    ladder = await _ladder(tx, home.org, home.id, draft)
    await policies.insert_policy(tx, home.org, home.id, uid, draft.name, ladder)
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "escalation_policy.create", _target(row))
    return row


async def replace_policy(
    tx: Tx, principal: Principal, policy: UUID, draft: PolicyDraft
) -> EscalationPolicyRow:
    """Replaces a policy. Open incidents continue with the new steps. An equal one is not written.

    Raises:
        Refused not_found, forbidden, invalid with its field, managed_by_file.
    """
    seen = demand_row(principal, EDIT, await escalation_policies.select_policy(tx, policy))
    _check(draft)
    # Edits of a project's policies follow each other, so that no two of them close a circle.
    await lock_project(tx, await demand_project(tx, principal, EDIT, seen.project_uid))
    before = await _lock(tx, principal, policy)
    _expect_unmanaged(principal, before)
    if not await replace_held_policy(tx, principal, before, draft):
        return before
    await _check_nesting(tx, before)
    await policies.look_at_incidents_again(tx, before)
    return await _written(tx, policy)


async def replace_held_policy(
    tx: Tx, principal: Principal, before: EscalationPolicyRow, draft: PolicyDraft
) -> bool:
    """Replaces a locked policy. Returns False if it is equal, which is not written.

    The caller checks the nesting, and then looks at the incidents again.

    Raises:
        Refused invalid with its field.
    """
    _check(draft)
    ladder = await _ladder(tx, before.org, before.project, draft)
    if draft.name == before.name and ladder == await policies.select_ladder(
        tx, before.org, before.id
    ):
        return False
    await policies.update_policy(tx, before, draft.name, ladder)
    row = await _written(tx, before.uid)
    await audit(tx, principal, row.org, "escalation_policy.update", _target(row))
    return True


async def delete_policy(tx: Tx, principal: Principal, policy: UUID) -> None:
    """Deletes a policy.

    Raises:
        Refused not_found, forbidden, managed_by_file, and in_use if a monitor, a service, an
        alert route or a step refers to it.
    """
    row = await _lock(tx, principal, policy)
    _expect_unmanaged(principal, row)
    if await oncall_uses.is_policy_used(tx, row.org, row.id):
        raise Refused("in_use")
    await policies.delete_policy(tx, row)
    await audit(tx, principal, row.org, "escalation_policy.delete", _target(row))


async def put_default_policy(
    tx: Tx, principal: Principal, project: UUID, policy: UUID | None
) -> None:
    """Sets the policy of incidents about Leadline in the project. None removes it.

    Raises:
        Refused not_found, forbidden. Refused invalid, if the project has no such policy.
        Refused managed_by_file, if a bundle manages the policy, or the one that is the default.
    """
    home = await demand_project(tx, principal, EDIT, project)
    await lock_project(tx, home)
    key = None
    before = await escalation_policies.select_default_policy_uid(tx, home.org, home.id)
    for uid in {policy, before} - {None} if policy != before else ():
        row = None if uid is None else await escalation_policies.select_policy(tx, uid)
        if row is not None and row.project == home.id:
            _expect_unmanaged(principal, row)
    if policy is not None:
        key = await policies.lock_shared_policy(tx, home.org, home.id, policy)
        if key is None:
            raise Refused(
                "invalid", "escalation_policy_id", "names no escalation policy of this project"
            )
    if policy == before:
        return
    await policies.set_default_policy(tx, home.org, home.id, key)
    target = f"project:{home.uid} default_policy={policy or 'none'}"
    await audit(tx, principal, home.org, "project.update", target)


def _check(draft: PolicyDraft) -> None:
    expect("name", name_fault(draft.name))
    expect("ack_timeout_seconds", ack_timeout_fault(draft.ack_timeout_seconds))
    wrong = ladder_fault(
        [step.after_seconds for step in draft.steps], [len(step.targets) for step in draft.steps]
    )
    if wrong is not None:
        raise Refused("invalid", *wrong)


async def _check_nesting(tx: Tx, row: EscalationPolicyRow) -> None:
    """Checks the policies that the project has after the write.

    Raises:
        Refused invalid.
    """
    ladders = await policies.select_ladders_of(tx, row.org, row.project)
    expect("steps", nesting_fault(ladders))


async def _ladder(tx: Tx, org: int, project: int, draft: PolicyDraft) -> EscalationPolicy:
    given = [
        RequestedTarget(f"steps[{index}].targets[{place}].id", kind, text)
        for index, step in enumerate(draft.steps)
        for place, (kind, text) in enumerate(step.targets)
    ]
    held = iter(await lock_targets(tx, org, project, given))
    steps = tuple(
        EscalationStep(step.after_seconds * SECOND, tuple(next(held) for _ in step.targets))
        for step in draft.steps
    )
    return EscalationPolicy(steps, draft.repeat_last, draft.ack_timeout_seconds * SECOND)


def _expect_unmanaged(principal: Principal, row: EscalationPolicyRow) -> None:
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")


async def _lock(tx: Tx, principal: Principal, policy: UUID) -> EscalationPolicyRow:
    return demand_row(principal, EDIT, await policies.lock_policy(tx, policy))


async def _written(tx: Tx, policy: UUID) -> EscalationPolicyRow:
    row = await escalation_policies.select_policy(tx, policy)
    assert row is not None, "the new row is missing"
    return row


def _target(row: EscalationPolicyRow) -> str:
    return f"escalation_policy:{row.uid} project:{row.project_uid} steps={len(row.after_seconds)}"
