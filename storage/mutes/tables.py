"""Mutes of projects. Every writer locks the project, which bounds their number."""

from typing import Any
from uuid import UUID

from ..core.instant import Instant
from ..engine.pools import LockRank, Tx
from .rows import MuteRow
from .rules.mute import KEPT_US

COLUMNS = """
x.org, x.id, x.uid, x.project, p.uid, x.monitor, m.uid, x.service, s.uid,
coalesce(m.name, s.name, ''), x.matchers, x.reason, x.starts_at, x.ends_at, x.author_label,
x.created_at
"""
FROM = """
from mutes x join projects p on p.org = x.org and p.id = x.project
  left join monitors m on m.org = x.org and m.id = x.monitor
  left join services s on s.org = x.org and s.id = x.service
"""
_BY_UID = f"select {COLUMNS} {FROM} where x.uid = %(uid)s"
_COUNT = """
select count(*) from mutes
where org = %(org)s and project = %(project)s and ends_at > at(%(now)s)
"""
_HOLD_MONITOR = """
select id from monitors
where uid = %(uid)s and org = %(org)s and project = %(project)s for key share
"""
# The alerts that a muted leader covers, and of which no page has told, are released then.
_LEADERS = """
l.org = %(org)s and l.project = %(project)s and l.status <> 'resolved'
  and l.escalate_at > at(%(now)s) and l.snoozed_until is null
  and (l.acknowledged_at is null or l.ack_expired_at is not null)
  and exists (select from incidents c where c.org = l.org and c.merged_into = l.id)
"""
# The order is that of all transactions that lock several leaders.
_LOOK_AGAIN = f"""
with found as materialized (
  select l.org, l.id from incidents l where {_LEADERS} order by l.id for update {{}})
update incidents l set escalate_at = at(%(now)s) from found f
where l.org = f.org and l.id = f.id
"""
_LOOK_AGAIN_NOW = _LOOK_AGAIN.format("")
_LOOK_AGAIN_AT_FREE = _LOOK_AGAIN.format("skip locked")
_IS_LEFT = f"select exists (select from incidents l where {_LEADERS})"
# What waits for the end of a mute becomes due. A row that a loop has locked is looked at again
# after LOOK_US. A service whose condition is not confirmed yet keeps the interval of evaluations.
_RELEASE_SERVICES = """
with found as materialized (
  select a.org, a.service from service_alerting a
    join services s on s.org = a.org and s.id = a.service
  where s.org = %(org)s and s.project = %(project)s and a.live_reason in ('silenced', 'held')
    and a.live_streak >= a.confirm_evaluations and a.due_at > at(%(now)s)
  order by a.service for no key update of a skip locked)
update service_alerting a set due_at = at(%(now)s) from found f
where a.org = f.org and a.service = f.service
"""
_RELEASE_OUTAGES = """
with found as materialized (
  select o.org, o.id from outages o join monitors m on m.org = o.org and m.id = o.monitor
  where m.org = %(org)s and m.project = %(project)s and o.ended_at is null
    and o.suppressed_by = 'silenced' and o.next_check_at > at(%(now)s)
  order by o.id for no key update of o skip locked)
update outages o set next_check_at = at(%(now)s) from found f
where o.org = f.org and o.id = f.id
"""
# The step is then due now, and later ones keep their distance from it.
_RELEASE_INCIDENTS = """
with found as materialized (
  select i.org, i.id from incidents i
  where i.org = %(org)s and i.project = %(project)s and i.status <> 'resolved'
    and i.escalate_at > at(%(now)s) and i.mute_looks_at = i.escalate_at
  order by i.id for update skip locked)
update incidents i set escalate_at = at(%(now)s), mute_looks_at = null,
  escalation_started_at = i.escalation_started_at
    - least(i.escalate_at - at(%(now)s), i.mute_delay)
from found f where i.org = f.org and i.id = f.id
"""
_INSERT = """
insert into mutes (org, uid, project, monitor, service, matchers, reason, starts_at, ends_at,
  author_label, created_at, awaits_start)
values (%(org)s, %(uid)s, %(project)s, %(monitor)s, %(service)s, %(matchers)s, %(reason)s,
  at(%(starts_at)s), at(%(ends_at)s), %(label)s, at(%(now)s), at(%(starts_at)s) > at(%(now)s))
"""
_STARTING = """
select distinct org, project from mutes where awaits_start and starts_at <= at(%(now)s)
order by org, project limit %(most)s
"""
# A mute that an edit has locked starts in a later pass.
_START = """
with begun as materialized (
  select org, id from mutes
  where org = %(org)s and project = %(project)s and awaits_start and starts_at <= at(%(now)s)
  order by id for update skip locked)
update mutes x set awaits_start = false from begun b where x.org = b.org and x.id = b.id
"""
_UPDATE = """
update mutes set reason = %(reason)s, ends_at = at(%(ends_at)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from mutes where org = %(org)s and id = %(id)s"
_PRUNE = """
delete from mutes
where org = %(org)s and project = %(project)s and ends_at < at(%(before)s)
"""


async def select_mute(tx: Tx, uid: UUID) -> MuteRow | None:
    return await tx.one(MuteRow, _BY_UID, uid=uid)


async def count_mutes(tx: Tx, org: int, project: int) -> int:
    """Returns the number of mutes that have not ended."""
    count: int = await tx.value(_COUNT, org=org, project=project, now=tx.now)
    return count


async def lock_shared_monitor(tx: Tx, org: int, project: int, uid: UUID) -> int | None:
    """Locks a monitor of the project against deletion. Returns its key."""
    tx.lock_rank(LockRank.MONITOR, "a monitor that is muted")
    key: int | None = await tx.value(_HOLD_MONITOR, org=org, project=project, uid=uid)
    return key


async def insert_mute(tx: Tx, values: dict[str, Any]) -> None:
    await tx.execute(_INSERT, **values, now=tx.now)


async def select_starting(tx: Tx, most: int) -> list[tuple[int, int]]:
    """Returns (organization, project) of mutes whose start has come and is not handled."""
    return [(org, project) for org, project in await tx.rows(_STARTING, now=tx.now, most=most)]


async def start_mutes(tx: Tx, org: int, project: int) -> int:
    """Marks the mutes of a project whose start has come. Returns their number."""
    return await tx.execute(_START, org=org, project=project, now=tx.now)


async def update_mute(tx: Tx, row: MuteRow, reason: str, ends_at: Instant) -> None:
    await tx.execute(_UPDATE, org=row.org, id=row.id, reason=reason, ends_at=ends_at)


async def delete_mute(tx: Tx, row: MuteRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


async def prune_mutes(tx: Tx, org: int, project: int) -> None:
    """Deletes mutes that ended long ago."""
    await tx.execute(_PRUNE, org=org, project=project, before=tx.now - KEPT_US)


async def release_held(tx: Tx, org: int, project: int) -> None:
    """Makes due what a mute of the project can hold back. What another mute covers waits again."""
    given = {"org": org, "project": project, "now": tx.now}
    tx.lock_rank(LockRank.SERVICE, "services that a mute holds back")
    await tx.execute(_RELEASE_SERVICES, **given)
    tx.lock_rank(LockRank.STATE, "outages that a mute holds back")
    await tx.execute(_RELEASE_OUTAGES, **given)
    tx.lock_rank(LockRank.INCIDENT, "incidents that a mute holds back")
    await tx.execute(_RELEASE_INCIDENTS, **given)


async def look_at_storms_again(tx: Tx, org: int, project: int) -> None:
    """Makes the leaders of storms due, since a mute that starts can cover one."""
    tx.lock_rank(LockRank.INCIDENT, "leaders of storms")
    await tx.execute(_LOOK_AGAIN_NOW, org=org, project=project, now=tx.now)


async def look_at_free_storms_again(tx: Tx, org: int, project: int) -> bool:
    """Does so without a wait. Returns whether another transaction has locked no such leader."""
    values = {"org": org, "project": project, "now": tx.now}
    await tx.execute(_LOOK_AGAIN_AT_FREE, **values)
    is_left: bool = await tx.value(_IS_LEFT, **values)
    return not is_left
