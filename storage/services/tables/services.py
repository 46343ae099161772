"""Services and how far their time is sealed."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import ServiceRow

COLUMNS = """
s.org, s.id, s.uid, s.project, p.uid, s.slug, s.name, s.description, s.escalation_policy, e.uid,
s.oncall_schedule, o.uid, s.managed_by, s.materialization_start, s.sealed_through, s.backfill_from,
s.created_at, s.updated_at, s.bundle_uid, s.bundle_path, s.orphaned_at, s.runbook_url,
s.support_zone, s.support_hours, s.hours_managed, s.gate_managed
"""
FROM = """
from services s join projects p on p.org = s.org and p.id = s.project
  left join escalation_policies e on e.org = s.org and e.id = s.escalation_policy
  left join oncall_schedules o on o.org = s.org and o.id = s.oncall_schedule
"""
_BY_UID = f"select {COLUMNS} {FROM} where s.uid = %(uid)s"
_IDS = """
select uid, id from services where org = %(org)s and project = %(project)s
  and uid = any(%(uids)s::uuid[])
"""
_SLUGS = "select slug from services where org = %(org)s and project = %(project)s"
_INSERT = """
insert into services (org, uid, project, slug, name, description, escalation_policy,
  oncall_schedule, runbook_url, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(slug)s, %(name)s, %(description)s, %(escalation_policy)s,
  %(oncall_schedule)s, %(runbook_url)s, at(%(now)s), at(%(now)s))
on conflict (org, project, slug) do nothing
returning id
"""
_SET_POLICY = """
update services set escalation_policy = %(policy)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(service)s
"""
_SET_RUNBOOK = """
update services set runbook_url = %(url)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(service)s
"""
_SET_SUPPORT_HOURS = """
update services set support_zone = %(zone)s, support_hours = %(windows)s::text[],
  updated_at = at(%(now)s)
where org = %(org)s and id = %(service)s
"""
_UPDATE = """
update services set name = %(name)s, description = %(description)s, runbook_url = %(runbook_url)s,
  escalation_policy = %(escalation_policy)s, oncall_schedule = %(oncall_schedule)s,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(service)s
"""
_TOUCH = """
update services set updated_at = at(%(now)s) where org = %(org)s and id = %(service)s
"""
_BEGIN = """
update services set materialization_start = at(%(start)s), sealed_through = at(%(start)s),
  backfill_from = at(%(backfill_from)s)
where org = %(org)s and id = %(service)s
"""
_DELETE = "delete from services where org = %(org)s and id = %(service)s"
_BY_KEYS = f"""
select {COLUMNS} {FROM}
where (s.org, s.id) in (select * from unnest(%(orgs)s::int[], %(services)s::int[]))
order by s.org, s.id
"""
# Declarations, sealing and repairs of a service exclude each other. A separate statement reads the
# row, so that a transaction that waited for the lock reads the committed values.
_LOCK = "select id from services where uid = %(uid)s for no key update"
# Prevents deletion only, for writes to rows that refer to the service.
_KEEP = "select id from services where uid = %(uid)s for key share"
_LOCK_KEYS = """
select s.org, s.id from services s
  join unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
    on k.org = s.org and k.service = s.id
order by s.org, s.id for no key update of s
"""
_MOVE_SEAL = """
update services s set sealed_through = at(i.to_at)
from json_to_recordset(%(items)s::json) as i(org int, service int, to_at bigint)
where s.org = i.org and s.id = i.service
"""
_MATERIALIZED_FROM = """
update services set materialization_start = at(%(start)s),
  backfill_from = case when backfill_from < at(%(start)s) then backfill_from end
where org = %(org)s and id = %(service)s
"""


async def select_service(tx: Tx, uid: UUID) -> ServiceRow | None:
    return await tx.one(ServiceRow, _BY_UID, uid=uid)


async def select_services(tx: Tx, keys: Sequence[ServiceKey]) -> dict[ServiceKey, ServiceRow]:
    rows = await tx.structs(ServiceRow, _BY_KEYS, **key_arrays(keys, "services"))
    return {row.key: row for row in rows}


async def lock_service(tx: Tx, uid: UUID) -> ServiceRow | None:
    tx.lock_rank(LockRank.SERVICE, "a service to change")
    await tx.rows(_LOCK, uid=uid)
    return await select_service(tx, uid)


async def update_service(
    tx: Tx,
    key: ServiceKey,
    *,
    name: str,
    description: str,
    runbook_url: str,
    escalation_policy: int | None,
    oncall_schedule: int | None,
) -> None:
    """Updates a locked service. The caller has locked the paging route, shared."""
    await tx.execute(
        _UPDATE,
        org=key[0],
        service=key[1],
        name=name,
        description=description,
        runbook_url=runbook_url,
        escalation_policy=escalation_policy,
        oncall_schedule=oncall_schedule,
        now=tx.now,
    )


async def set_support_hours(tx: Tx, key: ServiceKey, zone: str, windows: Sequence[str]) -> None:
    await tx.execute(
        _SET_SUPPORT_HOURS,
        org=key[0],
        service=key[1],
        zone=zone,
        windows=list(windows),
        now=tx.now,
    )


async def set_runbook(tx: Tx, key: ServiceKey, url: str) -> None:
    """Sets the runbook of a locked service."""
    await tx.execute(_SET_RUNBOOK, org=key[0], service=key[1], url=url, now=tx.now)


async def lock_shared_service(tx: Tx, uid: UUID) -> ServiceRow | None:
    """Locks the service against deletion; sealing and edits can proceed."""
    tx.lock_rank(LockRank.SERVICE, "a service to keep")
    await tx.rows(_KEEP, uid=uid)
    return await select_service(tx, uid)


async def lock_services(
    tx: Tx, keys: Sequence[ServiceKey], *, skip_locked: bool = False
) -> dict[ServiceKey, ServiceRow]:
    """Locks existing services; with `skip_locked`, only those without another lock."""
    tx.lock_rank(LockRank.SERVICE, "services to seal")
    query = f"{_LOCK_KEYS} skip locked" if skip_locked else _LOCK_KEYS
    rows = await tx.rows(query, **key_arrays(keys, "services"))
    return await select_services(tx, [ServiceKey((org, service)) for org, service in rows])


async def advance_seals(tx: Tx, to: dict[ServiceKey, Instant]) -> None:
    """Advances the seals of locked services. All time before them is written."""
    items = [{"org": k[0], "service": k[1], "to_at": at} for k, at in to.items()]
    if items:
        await tx.execute(_MOVE_SEAL, items=msgspec.json.encode(items).decode())


async def set_materialization_start(tx: Tx, key: ServiceKey, start: Instant) -> None:
    """Sets the start of a locked service's time. All time after it is written."""
    await tx.execute(_MATERIALIZED_FROM, org=key[0], service=key[1], start=start)


async def select_service_ids(
    tx: Tx, org: int, project: int, uids: Sequence[UUID]
) -> dict[UUID, int]:
    """Returns the ids of those services that belong to the project."""
    return dict(await tx.rows(_IDS, org=org, project=project, uids=list(uids)))


async def select_service_slugs(tx: Tx, org: int, project: int) -> set[str]:
    return {slug for (slug,) in await tx.rows(_SLUGS, org=org, project=project)}


async def insert_service(tx: Tx, values: dict[str, Any]) -> int | None:
    """Inserts a service. Returns its id, None if the slug is in use."""
    key: int | None = await tx.value(_INSERT, **values, now=tx.now)
    return key


async def set_escalation_policy(tx: Tx, key: ServiceKey, policy: int | None) -> None:
    """Sets the escalation policy of a locked service."""
    await tx.execute(_SET_POLICY, org=key[0], service=key[1], policy=policy, now=tx.now)


async def touch_service(tx: Tx, key: ServiceKey) -> None:
    """Sets `updated_at` of a locked service after an edit of a related row."""
    await tx.execute(_TOUCH, org=key[0], service=key[1], now=tx.now)


async def begin_time(
    tx: Tx, key: ServiceKey, start: Instant, backfill_from: Instant | None
) -> None:
    """Starts the time of a locked service that has no sealed time."""
    await tx.execute(_BEGIN, org=key[0], service=key[1], start=start, backfill_from=backfill_from)


async def delete_service(tx: Tx, key: ServiceKey) -> None:
    """Deletes a service with its declarations, objectives, dependencies and episodes."""
    await tx.execute(_DELETE, org=key[0], service=key[1])


_INSERT_SERVICE_ALERTINGS = """
insert into service_alerting (org, service, due_at, edited_at)
values (%(org)s, %(service)s, at(%(now)s), at(%(now)s))
"""


async def insert_alerting(tx: Tx, key: ServiceKey) -> None:
    """Inserts the default alerting row of a new service; its first evaluation is due now."""
    await tx.execute(_INSERT_SERVICE_ALERTINGS, org=key[0], service=key[1], now=tx.now)
