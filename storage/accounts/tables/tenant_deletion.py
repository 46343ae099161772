"""Deletion of organizations and projects, with its locks.

Transactions that add to one lock it FOR KEY SHARE, and a deletion locks it FOR UPDATE when it
begins. Therefore additions and the deletion exclude each other. A large deletion takes many
transactions; `deleting_since` refuses additions between them.
"""

from uuid import UUID

from ...core.instant import DAY, Instant
from ...core.key import MonitorKey
from ...engine.pools import LockRank, Tx
from ..rows import DeletionCounts, ManagedObject

_HOLD_ORGANIZATION = """
select id from organizations where uid = %(uid)s and deleting_since is null for key share
"""
_LOCK_ORGANIZATION = """
select id from organizations where uid = %(uid)s and deleting_since is null for update
"""
_HOLD_PROJECT = """
select id from projects where org = %(org)s and id = %(project)s and deleting_since is null
for key share
"""
# Waits for other holders of this lock and for a deletion, and not for additions.
_HOLD_PROJECT_ALONE = _HOLD_PROJECT.replace("for key share", "for no key update")
_LOCK_PROJECT = """
select id from projects where org = %(org)s and id = %(project)s and deleting_since is null
for update
"""
_PROJECTS_OF = "select id from projects where org = %(org)s order by id"
_LOCK_PROJECTS_OF = f"{_PROJECTS_OF} for update"
_BEGIN_PROJECTS = """
update projects set deleting_since = coalesce(deleting_since, at(%(now)s))
where org = %(org)s and id = any(%(projects)s::int[])
"""
_BEGIN_ORGANIZATION = """
update organizations set deleting_since = at(%(now)s) where id = %(org)s
"""
# A project whose own deletion runs stays hidden.
_END_PROJECTS = """
update projects p set deleting_since = null
where p.org = %(org)s and (%(project)s::int is null or p.id = %(project)s)
  and not exists (select from operations o
    where o.org = p.org and o.project = p.id and o.state = 'running')
"""
_END_ORGANIZATION = "update organizations set deleting_since = null where id = %(org)s"
_NEXT_PROJECT = "select id from projects where org = %(org)s order by id limit 1"
_OF = "org = %(org)s and project = any(%(projects)s::int[])"
# The mark of an object that is gone counts no more.
_STANDS = """
(b.kind = 'project_settings' or exists (select from maintenance_series x
  where x.org = b.org and x.uid = b.uid and x.ended_at is null)
  or exists (select from status_pages x where x.org = b.org and x.uid = b.uid)
  or exists (select from webhooks x where x.org = b.org and x.uid = b.uid))
"""
# An orphan belongs to no bundle any more.
_MANAGED = f"""
select kind, name, managed_by, uid, count(*) over () from (
  select 'service' as kind, name, managed_by, orphaned_at, uid from services where {_OF}
  union all
  select 'monitor', name, managed_by, orphaned_at, uid from monitors where {_OF}
  union all
  select 'channel', name, managed_by, orphaned_at, uid from notification_channels where {_OF}
  union all
  select 'schedule', name, managed_by, orphaned_at, uid from oncall_schedules where {_OF}
  union all
  select 'escalation policy', name, managed_by, orphaned_at, uid from escalation_policies
  where {_OF}
  union all
  select 'alert routes', '', managed_by, orphaned_at, uid from alert_route_lists where {_OF}
  union all
  select replace(kind, '_', ' '), coalesce(bundle_uid, ''), managed_by, orphaned_at, uid
  from bundle_objects b where {_OF} and {_STANDS}) o
where managed_by <> '' and orphaned_at is null
order by kind, name, uid limit %(most)s
"""
# Results of whole days are read from the daily figures, those of the two days that are cut from the
# hourly figures, and only those after the last hour that is rolled up one by one.
_COUNTS = f"""
with own as materialized (
  select m.org, m.id, greatest(s.rolled_up_through, at(%(kept_from)s)) as rolled,
    greatest(date_trunc('day', s.rolled_up_through, 'UTC'), at(%(first_day)s)) as last_day
  from monitors m join shards s on s.id = m.shard
  where m.org = %(org)s and m.project = any(%(projects)s::int[]))
select cardinality(%(projects)s::int[]),
  (select count(*) from own),
  (select count(*) from services where {_OF}),
  (select count(*) from incidents where {_OF}),
  (select count(*) from status_pages where org = %(org)s
    and (%(whole)s or project = any(%(projects)s::int[]))),
  (select coalesce(sum(d.total), 0) from own o
    join monitor_days d on d.org = o.org and d.monitor = o.id
      and d.day >= at(%(first_day)s) and d.day < o.last_day)::bigint
  + (select coalesce(sum(h.total), 0) from own o
    join monitor_hours h on h.org = o.org and h.monitor = o.id
      and h.hour >= at(%(kept_from)s) and h.hour < least(o.rolled, at(%(first_day)s)))::bigint
  + (select coalesce(sum(h.total), 0) from own o
    join monitor_hours h on h.org = o.org and h.monitor = o.id
      and h.hour >= o.last_day and h.hour < o.rolled)::bigint
  + (select count(*) from own o
    cross join lateral heartbeats_in(o.org, o.id, o.rolled, 'infinity'))
"""
_NEXT_SERVICE = f"select uid from services where {_OF} order by id limit 1"
# Composites first: then no composite counts children that are gone.
_NEXT_MONITOR = f"""
select uid from monitors where {_OF} order by type <> 'composite', id limit 1
"""
# Each has updates, pages and outages that refer to it.
_DELETE_INCIDENTS = """
delete from incidents where (org, id) in (select org, id from incidents
  where org = %(org)s and project = %(project)s limit %(most)s)
"""
_IS_DELIVERY_PENDING = """
select exists (select from outbox o where o.org = %(org)s and o.project = %(project)s
  and o.status = 'pending' and o.attempts = 0 and o.created_at > at(%(since)s))
"""
# The packer locks archived monitors in the same order.
_DELETE_ARCHIVE = """
with old as materialized (
  select d.org, d.id from deleted_monitors d where d.org = %(org)s and d.project = %(project)s
  order by d.org, d.id limit %(most)s for update)
delete from deleted_monitors d using old where d.org = old.org and d.id = old.id
returning d.org, d.id
"""
_LOCK_PAGES = """
select id from status_pages
where org = %(org)s and (%(project)s::int is null or project = %(project)s) order by id for update
"""
# The settlement of deliveries locks destinations by id; a cascade would lock them in another order.
_LOCK_DESTINATIONS = """
select d.id from destinations d
  left join subscribers s on s.org = d.org and s.id = d.subscriber
  left join webhooks w on w.org = d.org and w.id = d.webhook
  left join notification_channels c on c.org = d.org and c.id = d.channel
  left join status_pages g on g.org = d.org and g.id in (d.page, s.page)
where d.org = %(org)s
  and (%(project)s::int is null or coalesce(w.project, c.project, g.project) = %(project)s)
order by d.id for update of d
"""
_DELETE_MEMBERSHIPS = "delete from memberships where org = %(org)s"
_DELETE_TOKENS = "delete from api_tokens where org = %(org)s"
_DELETE_PAGES = "delete from status_pages where org = %(org)s"


async def lock_shared_organization(tx: Tx, uid: UUID) -> bool:
    """Locks an organization against deletion. Returns False if it does not exist."""
    tx.lock_rank(LockRank.ORGANIZATION, "an organization that is added to")
    return await tx.value(_HOLD_ORGANIZATION, uid=uid) is not None


async def lock_organization(tx: Tx, uid: UUID) -> bool:
    """Locks an organization against additions. Returns False if it does not exist."""
    tx.lock_rank(LockRank.ORGANIZATION, "an organization that goes")
    return await tx.value(_LOCK_ORGANIZATION, uid=uid) is not None


async def lock_shared_project(tx: Tx, org: int, project: int) -> bool:
    """Locks a project against deletion. Returns False if it does not exist."""
    tx.lock_rank(LockRank.PROJECT, "a project that is added to")
    return await tx.value(_HOLD_PROJECT, org=org, project=project) is not None


async def lock_project_quota(tx: Tx, org: int, project: int) -> bool:
    """Locks a project against deletion and against other transactions with this lock.

    A count after it is exact, so that concurrent additions cannot exceed a limit together. Returns
    False if the project does not exist.
    """
    tx.lock_rank(LockRank.PROJECT, "a project whose contents are counted")
    return await tx.value(_HOLD_PROJECT_ALONE, org=org, project=project) is not None


async def lock_project(tx: Tx, org: int, project: int) -> bool:
    tx.lock_rank(LockRank.PROJECT, "a project that goes")
    return await tx.value(_LOCK_PROJECT, org=org, project=project) is not None


async def select_projects_of(tx: Tx, org: int) -> list[int]:
    return [project for (project,) in await tx.rows(_PROJECTS_OF, org=org)]


async def lock_projects_of(tx: Tx, org: int) -> list[int]:
    """Locks all projects of a locked organization against additions."""
    tx.lock_rank(LockRank.PROJECT, "the projects of an organization that goes")
    return [project for (project,) in await tx.rows(_LOCK_PROJECTS_OF, org=org)]


async def begin_deletion(tx: Tx, org: int, projects: list[int], *, whole: bool) -> None:
    """Refuses additions from now on. `whole`: to the organization too. All are locked."""
    await tx.execute(_BEGIN_PROJECTS, org=org, projects=projects, now=tx.now)
    if whole:
        await tx.execute(_BEGIN_ORGANIZATION, org=org, now=tx.now)


async def end_deletion(tx: Tx, org: int, project: int | None) -> None:
    """Allows additions again to a project, or to an organization with its projects.

    Its operation has ended, and what is left of its contents is visible again.
    """
    await tx.execute(_END_PROJECTS, org=org, project=project)
    if project is None:
        await tx.execute(_END_ORGANIZATION, org=org)


async def select_next_project(tx: Tx, org: int) -> int | None:
    project: int | None = await tx.value(_NEXT_PROJECT, org=org)
    return project


async def select_managed(
    tx: Tx, org: int, projects: list[int], most: int = 1
) -> list[ManagedObject]:
    """Returns objects that a bundle or a file provider manages, by kind and name."""
    return await tx.structs(ManagedObject, _MANAGED, org=org, projects=projects, most=most)


async def count_contents(
    tx: Tx, org: int, projects: list[int], *, whole: bool, kept_from: Instant
) -> DeletionCounts:
    """Counts what a deletion deletes.

    Results that are rolled up are those that the figures counted, since a large project stores
    millions. `kept_from` is a whole hour.
    """
    row = await tx.row(
        _COUNTS,
        org=org,
        projects=projects,
        whole=whole,
        kept_from=kept_from,
        first_day=Instant(kept_from + (-kept_from) % DAY),
    )
    assert row is not None, "an aggregate has a row"
    return DeletionCounts(*row)


async def select_next_service(tx: Tx, org: int, project: int) -> UUID | None:
    uid: UUID | None = await tx.value(_NEXT_SERVICE, org=org, projects=[project])
    return uid


async def select_next_monitor(tx: Tx, org: int, project: int) -> UUID | None:
    uid: UUID | None = await tx.value(_NEXT_MONITOR, org=org, projects=[project])
    return uid


async def delete_incidents(tx: Tx, org: int, project: int, most: int) -> int:
    """Deletes some incidents. Returns how many."""
    return await tx.execute(_DELETE_INCIDENTS, org=org, project=project, most=most)


async def is_delivery_pending(tx: Tx, org: int, project: int, since: Instant) -> bool:
    """Returns whether an event that was enqueued after `since` had no attempt yet."""
    found: bool = await tx.value(_IS_DELIVERY_PENDING, org=org, project=project, since=since)
    return found


async def delete_archive(tx: Tx, org: int, project: int, most: int) -> list[MonitorKey]:
    """Deletes what is kept of deleted monitors for figures of their composites and services.

    Returns up to `most` monitors. Their pieces are deleted in the same transaction.
    """
    rows = await tx.rows(_DELETE_ARCHIVE, org=org, project=project, most=most)
    return [MonitorKey((org, monitor)) for org, monitor in rows]


async def lock_destinations(tx: Tx, org: int, project: int | None) -> None:
    """Locks the pages of a project or organization, then all destinations, before a deletion."""
    tx.lock_rank(LockRank.PAGE, "pages that are deleted with their tenant")
    await tx.rows(_LOCK_PAGES, org=org, project=project)
    tx.lock_rank(LockRank.OUTBOX, "destinations that are deleted with their tenant")
    await tx.rows(_LOCK_DESTINATIONS, org=org, project=project)


async def delete_what_stays_within(tx: Tx, org: int) -> None:
    """Deletes the remaining rows of an organization without projects."""
    await lock_destinations(tx, org, None)
    await tx.execute(_DELETE_MEMBERSHIPS, org=org)
    await tx.execute(_DELETE_TOKENS, org=org)
    await tx.execute(_DELETE_PAGES, org=org)
