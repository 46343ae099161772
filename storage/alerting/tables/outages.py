"""Outages: from a monitor's going down to its coming up, and whether people were told.

Whoever decides about a monitor's outage holds its state: nobody else decides meanwhile, and no
result changes what the decision is made from. Results that change nothing pass.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rules.suppression import Suppression, SuppressionReason

_KEYS = "unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)"

# What is written of an outage refers to its monitor: held before the state, as whoever edits one
# does, so that nobody waits in a circle.
_HOLD_MONITORS = f"""
select m.org, m.id from {_KEYS} join monitors m on m.org = k.org and m.id = k.monitor
order by m.org, m.id
for key share of m
"""
# Keeps the state as it is until what follows from it is written, and lets steady results through.
_LOCK = f"""
select s.org, s.monitor
from {_KEYS} join monitor_states s on s.org = k.org and s.monitor = k.monitor
order by s.org, s.monitor
for no key update of s
"""
_HOLD_FREE_MONITORS = f"{_HOLD_MONITORS} skip locked"
_LOCK_FREE = f"{_LOCK} skip locked"
_ARE_THERE = f"""
select m.org, m.id from {_KEYS} join monitors m on m.org = k.org and m.id = k.monitor
"""
# In a statement of its own: who has waited for the lock reads what its holder left.
_SUBJECTS = f"""
select s.org, s.monitor, m.uid, m.project, p.uid, p.name, m.shard, m.type, m.name, m.enabled,
  m.timeout_seconds, m.renotify_seconds, m.auto_incident, m.escalation_policy, s.status, s.since
from {_KEYS} join monitor_states s on s.org = k.org and s.monitor = k.monitor
  join monitors m on m.org = s.org and m.id = s.monitor
  join projects p on p.org = m.org and p.id = m.project
"""

_POP_STATUS_CHANGES = f"""
with taken as (
  delete from status_changes g using {_KEYS} where g.org = k.org and g.monitor = k.monitor
  returning g.org, g.monitor, g.id, g.at, g.new_status)
select org, monitor, at, new_status from taken order by id
"""

_COLUMNS = """
o.org, o.id, o.uid, o.monitor, o.began_at, o.why, o.announced_at, o.suppressed_by, o.waits_since,
o.waits_until, o.incident, o.notified_at, o.service
"""
# One after the other: when everything has just gone down, no statistics know it yet.
_OPEN = f"""
select o.* from {_KEYS} cross join lateral (
  select {_COLUMNS} from outages o
  where o.org = k.org and o.monitor = k.monitor and o.ended_at is null limit 1) o
"""
_TELLERS = f"""
select o.org, o.monitor, o.service
from {_KEYS} join outages o on o.org = k.org and o.monitor = k.monitor
where o.ended_at is null and o.service is not null
"""
_INSERT = """
insert into outages (org, uid, monitor, began_at, why)
values (%(org)s, %(uid)s, %(monitor)s, at(%(began)s), coalesce((select msg from heartbeats
  where org = %(org)s and monitor = %(monitor)s and ts = at(%(began)s)), ''))
returning id, why
"""
_END = """
update outages set ended_at = at(%(at)s), suppressed_by = null, next_check_at = null
where org = %(org)s and id = %(id)s
"""
_HOLD = """
update outages o set suppressed_by = i.suppressed_by, waits_since = at(i.since),
  waits_until = at(i.until), next_check_at = at(i.next_check_at)
from json_to_recordset(%(items)s::json)
  as i(org int, id int, suppressed_by text, since bigint, until bigint, next_check_at bigint)
where o.org = i.org and o.id = i.id
"""
# Whoever tells takes it first: of two who would, one does.
_ANNOUNCE = """
update outages set announced_at = at(%(now)s), notified_at = at(%(now)s), incident = %(incident)s,
  service = null, failed_open = %(failed_open)s, suppressed_by = null, waits_since = null,
  waits_until = null, next_check_at = at(%(next_check_at)s)
where org = %(org)s and id = %(id)s and ended_at is null
  and (announced_at is null or service is not null and service = %(instead_of)s)
"""
_SET_INCIDENT = """
update outages set incident = %(incident)s where org = %(org)s and id = %(id)s
"""
# A service's page stands for what its members told nobody of.
_TAKE_OVER = """
update outages set announced_at = at(%(now)s), notified_at = at(%(now)s), incident = %(incident)s,
  service = %(service)s, suppressed_by = null, waits_since = null, waits_until = null,
  next_check_at = at(%(next_check_at)s)
where org = %(org)s and monitor = any(%(monitors)s::int[]) and announced_at is null
  and ended_at is null
"""
# It has been told that the service is well: what is still down is told by nobody any more.
_GIVE_BACK = """
update outages set announced_at = null, notified_at = null, incident = null, service = null,
  suppressed_by = 'delegated', waits_since = at(%(now)s), waits_until = null,
  next_check_at = at(%(now)s)
where org = %(org)s and service = %(service)s and ended_at is null
"""
_REMIND = """
update outages set notified_at = at(%(told)s), next_check_at = at(%(next_check_at)s)
where org = %(org)s and id = %(id)s
"""
# Whoever waits for a cause to go looks again as soon as something there has come up. What is just
# being decided about is left out: nobody who hastens waits, for its state is not held.
_HASTEN = """
update outages set next_check_at = at(%(now)s)
where (org, id) in (
  select org, id from outages
  where org = any(%(orgs)s) and ended_at is null and suppressed_by = 'dependency'
    and next_check_at > at(%(now)s)
  for no key update skip locked)
"""


class LockedMonitor(msgspec.Struct, frozen=True):
    """A monitor whose state is held, and what of it decides what people are told."""

    org: int
    monitor: int
    uid: UUID
    project: int
    project_uid: UUID
    project_name: str
    shard: int
    type: str
    name: str
    enabled: bool
    timeout_seconds: int
    renotify_seconds: int
    auto_incident: bool
    escalation_policy: int | None
    status: str
    since: Instant

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))


class OutageRow(msgspec.Struct, frozen=True):
    """One that is open. `incident` is the key of the one it opened; with `service` that service
    has told of it, and of the incident that it opened."""

    org: int
    id: int
    uid: UUID
    monitor: int
    began_at: Instant
    why: str
    announced_at: Instant | None
    suppressed_by: str | None
    waits_since: Instant | None
    waits_until: Instant | None
    incident: int | None
    notified_at: Instant | None
    service: int | None = None

    @property
    def mark_notified_alone(self) -> bool:
        """Whether the monitor itself told of it, without an incident."""
        return self.service is None and self.incident is None

    @property
    def hold(self) -> Suppression | None:
        if self.suppressed_by is None:
            return None
        return Suppression(
            SuppressionReason(self.suppressed_by), self.waits_since, self.waits_until
        )


class SuppressionWrite(msgspec.Struct, frozen=True):
    org: int
    id: int
    suppressed_by: str
    since: Instant | None
    until: Instant | None
    next_check_at: Instant


async def lock_subjects(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, LockedMonitor]:
    """Waits for whoever holds one. Monitors that are gone are missing from the answer."""
    return await _lock(tx, keys, _HOLD_MONITORS, _LOCK)


async def lock_free_subjects(
    tx: Tx, keys: Sequence[MonitorKey]
) -> tuple[dict[MonitorKey, LockedMonitor], list[MonitorKey]]:
    """Those that nobody else holds, and those that are gone."""
    found = await _lock(tx, keys, _HOLD_FREE_MONITORS, _LOCK_FREE)
    missing = [key for key in keys if key not in found]
    if not missing:
        return found, []
    there = {
        (row[0], row[1]) for row in await tx.rows(_ARE_THERE, **key_arrays(missing, "monitors"))
    }
    return found, [key for key in missing if key not in there]


async def _lock(
    tx: Tx, keys: Sequence[MonitorKey], hold: str, lock: str
) -> dict[MonitorKey, LockedMonitor]:
    tx.lock_rank(LockRank.MONITOR, "the monitors that outages are of")
    held = [(row[0], row[1]) for row in await tx.rows(hold, **key_arrays(keys, "monitors"))]
    tx.lock_rank(LockRank.STATE, "the states that outages follow from")
    locked = [(row[0], row[1]) for row in await tx.rows(lock, **key_arrays(held, "monitors"))]
    return {
        row.key: row
        for row in await tx.structs(LockedMonitor, _SUBJECTS, **key_arrays(locked, "monitors"))
    }


async def pop_status_changes(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, list[tuple[Instant, str]]]:
    """The changes of status that nobody looked at, (instant, new_status) in their order; they are
    gone with the commit."""
    found: dict[MonitorKey, list[tuple[Instant, str]]] = {}
    rows = await tx.rows(_POP_STATUS_CHANGES, **key_arrays(keys, "monitors"))
    for org, monitor, at, new_status in rows:
        found.setdefault(MonitorKey((org, monitor)), []).append((at, new_status))
    return found


async def select_open_outages(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, OutageRow]:
    rows = await tx.structs(OutageRow, _OPEN, **key_arrays(keys, "monitors"))
    return {MonitorKey((row.org, row.monitor)): row for row in rows}


async def select_notifiers(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, ServiceKey]:
    """Of those whose open outage a service told of, that service."""
    rows = await tx.rows(_TELLERS, **key_arrays(keys, "monitors"))
    return {
        MonitorKey((org, monitor)): ServiceKey((org, service)) for org, monitor, service in rows
    }


async def begin_outage(tx: Tx, key: MonitorKey, at: Instant) -> OutageRow:
    """With the message of the result that began it."""
    uid = uuid7()
    made = await tx.row(_INSERT, org=key[0], uid=uid, monitor=key[1], began=at)
    assert made is not None, "it was inserted"
    id_, why = made
    return OutageRow(key[0], id_, uid, key[1], at, why, None, None, None, None, None, None)


async def end_outage(tx: Tx, row: OutageRow, at: Instant) -> None:
    await tx.execute(_END, org=row.org, id=row.id, at=at)


async def suppress_outages(tx: Tx, holds: Sequence[SuppressionWrite]) -> None:
    if holds:
        await tx.execute(_HOLD, items=msgspec.json.encode(holds).decode())


async def announce_outage(
    tx: Tx,
    row: OutageRow,
    incident: int | None,
    next_check_at: Instant | None,
    failed_open: str | None = None,
) -> bool:
    """People are told in this transaction. False where a service has told them meanwhile."""
    count = await tx.execute(
        _ANNOUNCE,
        org=row.org,
        id=row.id,
        incident=incident,
        next_check_at=next_check_at,
        failed_open=failed_open,
        instead_of=row.service,
        now=tx.now,
    )
    return count == 1


async def set_incident(tx: Tx, row: OutageRow, incident: int) -> None:
    await tx.execute(_SET_INCIDENT, org=row.org, id=row.id, incident=incident)


async def adopt_outages(
    tx: Tx, service: ServiceKey, monitors: Collection[int], incident: int, next_check_at: Instant
) -> int:
    """The service tells of those that nobody was told of; how many. It is looked at again whether
    anybody heard."""
    return await tx.execute(
        _TAKE_OVER,
        org=service[0],
        service=service[1],
        monitors=sorted(monitors),
        incident=incident,
        next_check_at=next_check_at,
        now=tx.now,
    )


async def release_outages(tx: Tx, service: ServiceKey) -> int:
    return await tx.execute(_GIVE_BACK, org=service[0], service=service[1], now=tx.now)


async def reschedule_outage(
    tx: Tx, row: OutageRow, told: Instant | None, next_check_at: Instant | None
) -> None:
    await tx.execute(_REMIND, org=row.org, id=row.id, told=told, next_check_at=next_check_at)


async def reschedule_outages_now(tx: Tx, orgs: Iterable[int]) -> None:
    await tx.execute(_HASTEN, orgs=sorted(set(orgs)), now=tx.now)
