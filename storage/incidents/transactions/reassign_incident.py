"""Reassigns an incident to a person, who is paged at once, or to an escalation policy.

The acknowledgement and the snooze in force end, because another recipient has to answer. The first
acknowledgement stays recorded.
"""

from typing import Final
from uuid import UUID

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_row
from ...core.instant import Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...notifications.transactions.enqueue_notifications import cancel_later_messages
from ...oncall.queries.escalation_policies import select_policy
from ...oncall.rules.escalation import TargetKind
from ...oncall.tables.escalation_policies import select_expanded_ladder
from ...oncall.transactions.check_targets import RequestedTarget, lock_targets
from ..queries import incidents as incidents_queries
from ..rows import IncidentRow
from ..rules.escalation_pause import handed_over
from ..rules.incident import UPDATES_MOST, IncidentStatus
from ..tables import incident_escalations as ladders
from ..tables import incidents
from .escalate_incident import escalate, page_assignee
from .write_incident import IncidentEntry, release_untold, write_entry

EDIT: Final = Permission(Need.EDITOR)
ASSIGNABLE: Final = (TargetKind.PERSON, TargetKind.POLICY)


async def reassign(
    tx: Tx, principal: Principal, incident: UUID, kind: TargetKind, target: UUID
) -> IncidentRow:
    """Reassigns the incident to a member or an escalation policy of its project.

    A policy starts at its first step. A person is paged, and has time before the policy of the
    incident continues.

    Raises:
        Refused not_found, forbidden, incident_resolved, update_quota. Refused invalid, if the
        project has no such person or policy, or the person has no usable contact method.
    """
    assert kind in ASSIGNABLE, "the caller offers no other kind"
    seen = demand_row(principal, EDIT, await incidents_queries.select_incident(tx, incident))
    # Policies and people are locked before the incident.
    wanted = RequestedTarget("id", kind, str(target))
    (held,) = await lock_targets(tx, seen.org, seen.project, [wanted])
    row = demand_row(principal, EDIT, await incidents.lock_incident(tx, incident))
    if row.status == IncidentStatus.RESOLVED:
        raise Refused("incident_resolved")
    if row.seq >= UPDATES_MOST:
        raise Refused("update_quota")
    await release_untold(tx, row)
    await cancel_later_messages(tx, row.org, row.uid)
    if kind is TargetKind.POLICY:
        row = await _to_policy(tx, principal, row, target, held.key)
    else:
        row = await _to_person(tx, principal, row, held.key)
    did = f"incident:{row.uid} {kind.value}:{target}"
    await audit(tx, principal, row.org, "incident.reassign", did)
    return row


async def _to_policy(
    tx: Tx, principal: Principal, row: IncidentRow, target: UUID, policy: int
) -> IncidentRow:
    found = await select_policy(tx, target)
    assert found is not None, "it is locked"
    row = await incidents.assign_incident(
        tx,
        row,
        kind="policy",
        label=found.name,
        channel=None,
        policy=policy,
        started_at=tx.now,
        step=0,
        last_at=None,
        escalate_at=tx.now,
    )
    row = await _note(tx, principal, row, f"Reassigned to the escalation policy {found.name}.")
    await escalate(tx, row)
    return row


async def _to_person(tx: Tx, principal: Principal, row: IncidentRow, channel: int) -> IncidentRow:
    names = await ladders.select_channel_names(tx, row.org, [channel])
    policy = None
    if row.escalation_policy is not None:
        policy = await select_expanded_ladder(tx, row.org, row.escalation_policy)
    started_at, step, again = row.escalation_started_at, row.escalation_step, None
    if policy is not None:
        started_at, step = handed_over(policy, row.escalation_step, tx.now)
        again = Instant(started_at + policy.steps[step].after_us)
    row = await incidents.assign_incident(
        tx,
        row,
        kind="person",
        label=names[channel],
        channel=channel,
        policy=row.escalation_policy,
        started_at=started_at,
        step=step,
        last_at=tx.now,
        escalate_at=again,
    )
    row = await _note(tx, principal, row, f"Reassigned to {names[channel]}.")
    if not await page_assignee(tx, row, channel, f"Reassigned to you by {principal.label}."):
        raise Refused("invalid", "id", "names a person without a usable contact method")
    return row


async def _note(tx: Tx, principal: Principal, row: IncidentRow, body: str) -> IncidentRow:
    entry = IncidentEntry(status=None, body=body, public=False, author=principal)
    row, _ = await write_entry(tx, row, entry)
    return row
