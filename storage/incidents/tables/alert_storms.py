"""Alerts of a storm, which the page of the leading alert covers."""

from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx

# The oldest alert of the same service and policy that may cover this one. It is checked again
# under its lock.
_LEADER = """
select l.uid from incidents i
  join incidents l on l.org = i.org and l.service = i.service and l.external_key is not null
    and l.status <> 'resolved' and l.escalation_policy = i.escalation_policy and l.id < i.id
    and l.merged_into is null and l.assigned_kind = '' and l.snoozed_until is null
    and (l.acknowledged_at is null or l.ack_expired_at is not null)
    and (l.last_escalated_at > at(%(after)s)
      or (l.last_escalated_at is null and l.escalate_at is not null
        and l.escalation_started_at is null))
    and (l.impact in ('major', 'critical')) = (i.impact in ('major', 'critical'))
where i.uid = %(uid)s and i.external_key is not null and i.last_escalated_at is null
  and i.assigned_kind = '' and i.merged_into is null
order by l.id limit 1
"""
_COVER = """
update incidents set merged_into = %(leader)s, escalate_at = null, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_RELEASE = """
update incidents set merged_into = null, escalate_at = at(%(due_at)s), updated_at = at(%(now)s)
where org = %(org)s and merged_into = %(leader)s and status <> 'resolved'
"""
# Covered alerts, and those whose first page is awaited and that this one will cover.
_COUNT = """
select count(*) from incidents c join incidents l on l.org = c.org and l.id = %(leader)s
where c.org = %(org)s and c.status <> 'resolved' and c.id <> l.id and (c.merged_into = l.id
  or (l.external_key is not null and c.service = l.service and c.external_key is not null
    and c.escalation_policy = l.escalation_policy and c.id > l.id and c.merged_into is null
    and c.assigned_kind = '' and c.last_escalated_at is null and c.snoozed_until is null
    and c.escalation_started_at is null
    and (l.impact in ('major', 'critical')) = (c.impact in ('major', 'critical'))
    and c.escalate_at is not null))
"""


async def select_leader(tx: Tx, incident: UUID, after: int) -> UUID | None:
    """Returns the alert that may cover an alert without a page, None without one.

    Args:
        after: instant after which the leader must have paged.
    """
    uid: UUID | None = await tx.value(_LEADER, uid=incident, after=after)
    return uid


async def cover(tx: Tx, org: int, incident: int, leader: int) -> None:
    """Ends the escalation of a locked alert, which a locked leader covers."""
    count = await tx.execute(_COVER, org=org, id=incident, leader=leader, now=tx.now)
    assert count == 1, "the locked incident is missing"


async def release_covered(tx: Tx, org: int, leader: int, due_at: Instant) -> int:
    """Makes the open alerts that a resolved leader covered due at an instant."""
    return await tx.execute(_RELEASE, org=org, leader=leader, due_at=due_at, now=tx.now)


async def count_covered(tx: Tx, org: int, leader: int) -> int:
    count: int = await tx.value(_COUNT, org=org, leader=leader)
    return count
