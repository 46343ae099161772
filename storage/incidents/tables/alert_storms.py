"""Alerts of a storm, which the page of the leading alert covers."""

from typing import Any, Final
from uuid import UUID

from ...core.instant import LATEST, Instant
from ...engine.pools import Tx
from ...notifications.rules.personal_rules import is_low
from ..rows import IncidentRow

# Alerts whose mutes one pass reads to find a leader. Further alerts page themselves.
LEADERS_MOST: Final = 5
# Alerts that one statement covers.
COVERED_MOST: Final = 500
# Alerts of the same service and policy that may cover this one, the oldest first. The chosen one is
# checked again under its lock. A page covers pages, and a ticket without a destination tickets.
_LEADERS = """
select l.uid from incidents i
  join incidents l on l.org = i.org and l.service = i.service and l.external_key is not null
    and l.status <> 'resolved' and l.escalation_policy = i.escalation_policy and l.id < i.id
    and l.merged_into is null and l.assigned_kind = '' and l.snoozed_until is null
    and (l.acknowledged_at is null or l.ack_expired_at is not null)
    and coalesce(l.last_escalated_at > at(%(after)s), true)
    and (coalesce(i.escalation_started_at, i.created_at) <= l.last_escalated_at
      or (l.escalate_at is not null and not l.is_postponed))
    and (l.impact in ('major', 'critical')) = (i.impact in ('major', 'critical'))
where i.uid = %(uid)s and i.external_key is not null and i.last_escalated_at is null
  and i.assigned_kind = '' and i.merged_into is null and i.acknowledged_at is null
  and i.snoozed_until is null
order by l.id limit %(most)s
"""
# A released alert keeps the delay that has passed: its first step is due at the given instant, or
# later if its own delay ends later. Its escalation starts after the pages of the other leaders,
# because these did not tell of it.
_RELEASE = """
update incidents i set merged_into = null, escalate_at = f.started_at + f.delay,
  escalation_started_at = f.started_at, updated_at = at(%(now)s)
from (
  select c.org, c.id, coalesce(c.escalation_started_at, c.created_at) as began_at, d.delay,
    greatest(coalesce(c.escalation_started_at, c.created_at), at(%(due_at)s) - d.delay, (
      select max(l.last_escalated_at) + interval '1 microsecond' from incidents l
      where l.org = c.org and l.service = c.service and l.external_key is not null
        and l.status <> 'resolved' and l.escalation_policy = c.escalation_policy
        and l.merged_into is null and l.last_escalated_at > at(%(after)s))) as started_at
  from incidents c left join escalation_policies p
      on p.org = c.org and p.id = c.escalation_policy
    cross join lateral (
      select coalesce(p.after_seconds[1], 0) * interval '1 second' as delay) d
  where c.org = %(org)s and c.merged_into = %(leader)s) f
where i.org = %(org)s and i.merged_into = %(leader)s and i.status <> 'resolved'
  and f.org = i.org and f.id = i.id
"""
_RELEASE_UNTOLD = f"""{_RELEASE}
  and coalesce(f.began_at > at(%(paged_at)s), true)
"""
# Alerts whose first page is awaited and that the leader covers. A wait that ends now, such as for
# the support hours, ends for all of them. The values of the leader are given, so that the planner
# chooses the index of storms also without statistics of a new storm.
_AWAITING = """
c.org = %(org)s and c.service = %(service)s and c.external_key is not null
  and c.status <> 'resolved' and c.escalation_policy = %(policy)s and c.id > %(leader)s
  and c.merged_into is null and c.assigned_kind = '' and c.last_escalated_at is null
  and c.snoozed_until is null and c.acknowledged_at is null
  and (not c.is_postponed or c.escalate_at <= at(%(now)s))
  and (c.impact in ('major', 'critical')) = %(is_page)s and c.escalate_at is not null
"""
# Two parts, each with an index. With an `or` all open incidents of the organization are read.
_COUNT = f"""
select (select count(*) from incidents c
    where c.org = %(org)s and c.merged_into = %(leader)s and c.status <> 'resolved')
  + (select count(*) from incidents c where {_AWAITING})
"""
# One statement for the alerts of a storm, which otherwise delay the pages of others. An alert that
# another transaction has locked is covered on its own.
_COVER = f"""
with covered as materialized (
  select c.org, c.id from incidents c where {_AWAITING}
    and c.escalate_at <= at(%(due_by)s)
    and coalesce(c.escalation_started_at, c.created_at) <= at(%(started_by)s)
  order by c.id limit %(most)s for update skip locked)
update incidents i set merged_into = %(leader)s, escalate_at = null, updated_at = at(%(now)s)
from covered c where i.org = c.org and i.id = c.id
"""


async def select_leaders(tx: Tx, incident: UUID, after: int) -> list[UUID]:
    """Returns the alerts that may cover an alert without a page, the oldest first.

    Args:
        after: instant after which a leader that has paged must have done so.
    """
    rows = await tx.rows(_LEADERS, uid=incident, after=after, most=LEADERS_MOST)
    return [uid for (uid,) in rows]


async def cover(
    tx: Tx, leader: IncidentRow, *, due_by: Instant = LATEST, started_by: Instant = LATEST
) -> int:
    """Ends the escalation of the alerts that a locked leader covers. Returns their number.

    Args:
        due_by: latest instant at which the first page of such an alert is due.
        started_by: latest start of its escalation.
    """
    if leader.external_key is None:
        return 0
    return await tx.execute(
        _COVER,
        **_values(leader),
        due_by=due_by,
        started_by=started_by,
        most=COVERED_MOST,
        now=tx.now,
    )


def _values(leader: IncidentRow) -> dict[str, Any]:
    return {
        "org": leader.org,
        "leader": leader.id,
        "service": leader.service,
        "policy": leader.escalation_policy,
        "is_page": not is_low(leader.impact),
    }


async def release_covered(tx: Tx, org: int, leader: int, due_at: Instant, after: Instant) -> int:
    """Makes the open alerts due that a resolved leader covered.

    Args:
        due_at: earliest instant of their first step.
        after: instant after which a leader that has paged may cover them.
    """
    return await tx.execute(
        _RELEASE, org=org, leader=leader, due_at=due_at, after=after, now=tx.now
    )


async def release_untold(
    tx: Tx, org: int, leader: int, paged_at: Instant | None, due_at: Instant, after: Instant
) -> int:
    """Makes the open alerts due that a locked leader covers and whose page has not told of them.

    Args:
        paged_at: the last page of the leader, None before the first.
        due_at: earliest instant of their first step.
        after: instant after which a leader that has paged may cover them.
    """
    return await tx.execute(
        _RELEASE_UNTOLD,
        org=org,
        leader=leader,
        paged_at=paged_at,
        due_at=due_at,
        after=after,
        now=tx.now,
    )


async def count_covered(tx: Tx, leader: IncidentRow) -> int:
    """Returns the number of alerts that a page of a locked alert tells of."""
    if leader.external_key is None:
        return 0
    count: int = await tx.value(_COUNT, **_values(leader), now=tx.now)
    return count
