"""Outages of monitors, from going down to recovery, with their notification state.

A transaction that decides about an outage claims the monitor by an advisory lock, which excludes
other decisions, and locks its state FOR KEY SHARE, which excludes changes of the state. Steady
writes lock it FOR NO KEY UPDATE and pass. `storage/results/tables/results.py` lists all lockers.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rules.suppression import Suppression, SuppressionReason

# First key of the advisory locks. The second key is the monitor. A processor takes one for each
# monitor of its transaction, at most 500.
DECISION_LOCK_CLASS: Final = 1_279_610_187

_KEYS = "unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)"

# Lock order: monitors before states, as in edits of monitors. The shared lock keeps the monitor
# that outage rows refer to.
_HOLD_MONITORS = f"""
select m.org, m.id from {_KEYS} join monitors m on m.org = k.org and m.id = k.monitor
order by m.org, m.id
for key share of m
"""
_HOLD_FREE_MONITORS = f"{_HOLD_MONITORS} skip locked"
_CLAIM_FREE = f"""
select k.org, k.monitor from {_KEYS}
where pg_try_advisory_xact_lock({DECISION_LOCK_CLASS}, k.monitor)
"""
_CLAIM = f"""
select k.org, k.monitor, pg_advisory_xact_lock({DECISION_LOCK_CLASS}, k.monitor)
from (select org, monitor from {_KEYS} order by monitor offset 0) k
"""
# A process of an earlier version claims nothing, and locks the states FOR NO KEY UPDATE. While one
# can be present, this process does the same too, so that it excludes its decisions.
_EARLIER_IS_PRESENT = """
select exists (select from presences where not ended
  and through_at > at(%(now)s) - interval '10 minutes' and not knows @> '{shared_rows@1}')
"""
_LOCK = f"""
select s.org, s.monitor
from {_KEYS} join monitor_states s on s.org = k.org and s.monitor = k.monitor
order by s.org, s.monitor
for {{mode}} of s
"""
_ARE_THERE = f"""
select m.org, m.id from {_KEYS} join monitors m on m.org = k.org and m.id = k.monitor
"""
# A separate statement, so that a transaction that waited for the lock reads the committed rows.
_SUBJECTS = f"""
select s.org, s.monitor, m.uid, m.project, p.uid, p.name, m.shard, m.type, m.name, m.enabled,
  m.timeout_seconds, m.renotify_seconds, m.auto_incident, m.escalation_policy, s.status, s.since,
  m.runbook_url, m.flap_threshold
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
o.waits_until, o.incident, o.notified_at, o.service, o.failed_condition
"""
# A lateral join: after mass failures the statistics do not know the new outages yet.
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
insert into outages (org, uid, monitor, began_at, why, failed_condition)
select %(org)s, %(uid)s, %(monitor)s, at(%(began)s), coalesce(h.msg, ''),
  c.text || coalesce(' (' || h.measured || ')', '')
from (select) one
  left join heartbeats_in(%(org)s::int, %(monitor)s::int, at(%(began)s),
    at(%(began)s) + interval '1 microsecond') h on true
  left join monitor_conditions c
    on c.org = %(org)s and c.monitor = %(monitor)s and c.id = h.failed_condition
returning id, why, failed_condition
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
# Conditional, so that of two transactions only one announces the outage.
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
# Adopts the unannounced outages of the members into the service's page.
_TAKE_OVER = """
update outages set announced_at = at(%(now)s), notified_at = at(%(now)s), incident = %(incident)s,
  service = %(service)s, suppressed_by = null, waits_since = null, waits_until = null,
  next_check_at = at(%(next_check_at)s)
where org = %(org)s and monitor = any(%(monitors)s::int[]) and announced_at is null
  and ended_at is null
"""
# After the service's recovery notification, outages that last are open and unannounced again.
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
# Makes dependency-suppressed outages due after a recovery. Locked rows are skipped, because the
# caller has not locked their states.
_HASTEN = """
update outages set next_check_at = at(%(now)s)
where (org, id) in (
  select org, id from outages
  where org = any(%(orgs)s) and ended_at is null and suppressed_by = 'dependency'
    and next_check_at > at(%(now)s)
  for no key update skip locked)
"""


class LockedMonitor(msgspec.Struct, frozen=True):
    """Monitor with a locked state, and the settings that decide its notifications."""

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
    runbook_url: str = ""
    flap_threshold: int = 0

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))


class OutageRow(msgspec.Struct, frozen=True):
    """Open outage. `incident` is the incident that it opened.

    With `service`, that service announced the outage, and `incident` is the service's incident.
    """

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
    # The condition and the value of the first failure, see `FailedCondition.text`.
    failed_condition: str | None = None

    @property
    def conditions(self) -> tuple[str, ...]:
        return () if self.failed_condition is None else (self.failed_condition,)

    @property
    def mark_notified_alone(self) -> bool:
        """Returns whether the monitor announced it itself, without an incident."""
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
    """Locks the monitors and their states, with waiting. Deleted monitors are missing."""
    return await _lock(tx, keys, _HOLD_MONITORS, _CLAIM, _LOCK)


async def lock_free_subjects(
    tx: Tx, keys: Sequence[MonitorKey]
) -> tuple[dict[MonitorKey, LockedMonitor], list[MonitorKey]]:
    """Locks the monitors that no other transaction has locked. Returns these and the deleted."""
    found = await _lock(tx, keys, _HOLD_FREE_MONITORS, _CLAIM_FREE, f"{_LOCK} skip locked")
    missing = [key for key in keys if key not in found]
    if not missing:
        return found, []
    there = {
        (row[0], row[1]) for row in await tx.rows(_ARE_THERE, **key_arrays(missing, "monitors"))
    }
    return found, [key for key in missing if key not in there]


async def _lock(
    tx: Tx, keys: Sequence[MonitorKey], hold: str, claim: str, lock: str
) -> dict[MonitorKey, LockedMonitor]:
    tx.lock_rank(LockRank.MONITOR, "the monitors of outages")
    held = [(row[0], row[1]) for row in await tx.rows(hold, **key_arrays(keys, "monitors"))]
    tx.lock_rank(LockRank.STATE, "the states of monitors with outages")
    claimed = [(row[0], row[1]) for row in await tx.rows(claim, **key_arrays(held, "monitors"))]
    earlier = await tx.value(_EARLIER_IS_PRESENT, now=tx.now)
    lock = lock.format(mode="no key update" if earlier else "key share")
    locked = [(row[0], row[1]) for row in await tx.rows(lock, **key_arrays(claimed, "monitors"))]
    return {
        row.key: row
        for row in await tx.structs(LockedMonitor, _SUBJECTS, **key_arrays(locked, "monitors"))
    }


async def pop_status_changes(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, list[tuple[Instant, str]]]:
    """Deletes and returns the unprocessed status changes as (instant, new_status), in order."""
    found: dict[MonitorKey, list[tuple[Instant, str]]] = {}
    rows = await tx.rows(_POP_STATUS_CHANGES, **key_arrays(keys, "monitors"))
    for org, monitor, at, new_status in rows:
        found.setdefault(MonitorKey((org, monitor)), []).append((at, new_status))
    return found


async def select_open_outages(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, OutageRow]:
    rows = await tx.structs(OutageRow, _OPEN, **key_arrays(keys, "monitors"))
    return {MonitorKey((row.org, row.monitor)): row for row in rows}


async def select_notifiers(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, ServiceKey]:
    """Returns the service that announced the open outage, for monitors with such a service."""
    rows = await tx.rows(_TELLERS, **key_arrays(keys, "monitors"))
    return {
        MonitorKey((org, monitor)): ServiceKey((org, service)) for org, monitor, service in rows
    }


async def begin_outage(tx: Tx, key: MonitorKey, at: Instant) -> OutageRow:
    """Inserts an outage with the message and the failed condition of the result at `at`."""
    uid = uuid7()
    made = await tx.row(_INSERT, org=key[0], uid=uid, monitor=key[1], began=at)
    assert made is not None, "insert returned no row"
    id_, why, failed = made
    return OutageRow(
        key[0], id_, uid, key[1], at, why, None, None, None, None, None, None, None, failed
    )


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
    """Marks the outage as announced. Returns False if a service has announced it first."""
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
    """Marks unannounced outages as announced by the service. Returns their number.

    They are due again at `next_check_at`, to check the delivery of the page.
    """
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
