"""Incidents with their escalation state. Each update writes a locked row."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import structs
from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.key import Key, MonitorKey, ServiceKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import IncidentRow

_COLUMNS = """
i.org, i.id, i.uid, i.project, p.uid, i.monitor, m.uid, i.service, s.uid, i.external_key,
i.number, i.seq, i.title, i.status, i.impact, i.source, i.started_at, i.resolved_at,
i.acknowledged_at, u.uid, i.acknowledged_label, i.escalation_policy, i.escalation_step,
i.last_escalated_at, i.escalate_at, coalesce(i.escalation_started_at, i.created_at), i.created_at,
i.updated_at, coalesce(nullif(m.runbook_url, ''), s.runbook_url, ''), i.ack_expires_at,
i.ack_expired_at, i.self_condition, i.snoozed_until, i.snoozed_label, i.assigned_kind,
i.assigned_label, i.merged_into, (select l.number from incidents l
  where l.org = i.org and l.id = i.merged_into), i.is_postponed, i.assigned_channel
"""
_FROM = """
from incidents i join projects p on p.org = i.org and p.id = i.project
  left join monitors m on m.org = i.org and m.id = i.monitor
  left join services s on s.org = i.org and s.id = i.service
  left join users u on u.id = i.acknowledged_by
"""
_BY_ID = f"select {_COLUMNS} {_FROM} where i.org = %(org)s and i.id = %(id)s"
# The lock puts the events of an incident in order. A separate statement reads the row, so that a
# transaction that waited for the lock reads the committed values of all tables.
_LOCK = "select org, id from incidents where uid = %(uid)s for update"
_LOCK_OPEN_OF_MONITOR = """
select org, id from incidents
where org = %(org)s and monitor = %(monitor)s and source = 'auto' and status <> 'resolved'
for update
"""
# One index lookup per row. A transaction that locks several incidents of an organization has locked
# the states of their monitors, so that no other transaction locks the same rows in another order.
_LOCK_OF_OUTAGES = """
select k.org, k.monitor, h.id
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(ids)s::int[]) as k(org, monitor, id)
  cross join lateral (
    select i.id from incidents i where i.org = k.org and i.id = k.id for update) h
"""
_LOCK_OPEN_OF_MONITORS = """
select k.org, k.monitor, h.id from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral (
    select i.id from incidents i
    where i.org = k.org and i.monitor = k.monitor and i.source = 'auto' and i.status <> 'resolved'
    for update) h
"""
_BY_IDS = f"""
select {_COLUMNS} {_FROM} where (i.org, i.id) in (
  select * from unnest(%(orgs)s::int[], %(ids)s::int[]))
"""
_LOCK_OPEN_OF_SERVICES = """
select k.org, k.service, h.id from unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
  cross join lateral (
    select i.id from incidents i
    where i.org = k.org and i.service = k.service and i.source = 'auto' and i.status <> 'resolved'
    for update) h
"""
_LOCK_OF_EPISODES = """
select k.org, k.service, h.id
from unnest(%(orgs)s::int[], %(services)s::int[], %(ids)s::int[]) as k(org, service, id)
  cross join lateral (
    select i.id from incidents i where i.org = k.org and i.id = k.id for update) h
"""
_LOCK_OPEN_OF_ALERT = """
select org, id from incidents
where org = %(org)s and project = %(project)s and external_key = %(key)s
  and status <> 'resolved'
for update
"""
_INSERT = """
insert into incidents (org, uid, project, monitor, service, external_key, seq, title, status,
  impact, source, started_at, resolved_at, escalation_policy, escalate_at, created_at, updated_at,
  labels, self_condition)
values (%(org)s, %(uid)s, %(project)s, %(monitor)s, %(service)s, %(external_key)s, 1, %(title)s,
  %(status)s, %(impact)s, %(source)s, at(%(started_at)s), at(%(resolved_at)s),
  %(escalation_policy)s, at(%(escalate_at)s), at(%(now)s), at(%(now)s), %(labels)s::jsonb,
  %(self_condition)s)
on conflict do nothing
returning id
"""
_NAME_COMPONENTS = """
insert into incident_components (org, incident, component)
select %(org)s, %(id)s, c from unnest(%(components)s::uuid[]) c on conflict do nothing
"""
_MOVE = """
update incidents set seq = %(seq)s, status = %(status)s, resolved_at = at(%(resolved_at)s),
  escalate_at = at(%(escalate_at)s), updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_ACKNOWLEDGE = """
update incidents set acknowledged_at = at(%(now)s),
  acknowledged_by = (select id from users where uid = %(person)s::uuid),
  acknowledged_label = %(label)s, ack_expires_at = at(%(expires_at)s),
  snoozed_until = null, snoozed_label = '', escalate_at = at(%(expires_at)s),
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_ACKNOWLEDGE_AGAIN = """
update incidents set ack_expired_at = null, ack_expires_at = at(%(expires_at)s),
  snoozed_until = null, snoozed_label = '',
  escalate_at = at(%(expires_at)s), updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
# An acknowledgement ends with the snooze that followed it.
_END_PAUSE = """
update incidents set ack_expires_at = null, snoozed_until = null, snoozed_label = '',
  ack_expired_at = case when acknowledged_at is not null
    then coalesce(ack_expired_at, at(%(now)s)) end,
  escalation_started_at = at(%(started_at)s), escalation_step = %(step)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_SNOOZE = """
update incidents set snoozed_until = at(%(until)s), snoozed_label = %(label)s,
  escalate_at = case when escalation_policy is not null or assigned_channel is not null
    then at(%(until)s) end,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_ASSIGN = """
update incidents set assigned_kind = %(kind)s, assigned_label = %(label)s,
  assigned_channel = %(channel)s, merged_into = null, is_postponed = false,
  escalation_policy = %(policy)s, escalation_started_at = at(%(started_at)s),
  escalation_step = %(step)s, last_escalated_at = at(%(last_at)s),
  escalate_at = at(%(escalate_at)s), snoozed_until = null, snoozed_label = '',
  ack_expires_at = null, ack_expired_at = case when acknowledged_at is not null
    then coalesce(ack_expired_at, at(%(now)s)) end,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_ACK_TIMEOUT = """
select ack_timeout_seconds from escalation_policies where org = %(org)s and id = %(id)s
"""
_CLIMB = """
update incidents set escalation_step = %(step)s, last_escalated_at = at(%(last_escalated_at)s),
  merged_into = case when at(%(last_escalated_at)s) is null then merged_into end,
  is_postponed = false, escalate_at = at(%(escalate_at)s), updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_BEGIN_CLIMBING = """
update incidents set escalation_policy = %(policy)s, escalation_started_at = at(%(now)s),
  escalate_at = at(%(now)s), updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_SET_IMPACT = """
update incidents set impact = %(impact)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
# Moves all later steps by the same duration as the next step.
_DELAY_CLIMBING = """
update incidents set escalation_started_at = coalesce(escalation_started_at, created_at)
    + %(delayed_us)s * interval '1 microsecond',
  escalate_at = at(%(until)s), is_postponed = true, mute_looks_at = at(%(until)s),
  mute_delay = %(delayed_us)s * interval '1 microsecond'
where org = %(org)s and id = %(id)s
"""
# The shared lock keeps the monitor and its escalation policy until the incident is inserted.
_HOLD_ANCHOR = """
select id, escalation_policy from monitors
where uid = %(uid)s and org = %(org)s and project = %(project)s for share
"""


async def lock_incident(tx: Tx, uid: UUID) -> IncidentRow | None:
    tx.lock_rank(LockRank.INCIDENT, "an incident")
    return await _read_locked(tx, await tx.row(_LOCK, uid=uid))


async def lock_open_of_monitor(tx: Tx, org: int, monitor: int) -> IncidentRow | None:
    """Locks the monitor's unresolved incident with the source `auto`."""
    tx.lock_rank(LockRank.INCIDENT, "a monitor's open incident")
    return await _read_locked(tx, await tx.row(_LOCK_OPEN_OF_MONITOR, org=org, monitor=monitor))


async def lock_of_outages(
    tx: Tx, named: Mapping[MonitorKey, int], unnamed: Sequence[MonitorKey]
) -> dict[MonitorKey, IncidentRow]:
    """Locks the incidents of outages, by monitor.

    Args:
        named: monitors with the id of a known incident.
        unnamed: monitors whose unresolved incident with the source `auto` is locked.
    """
    tx.lock_rank(LockRank.INCIDENT, "the incidents of outages")
    found = []
    if named:
        found += await tx.rows(
            _LOCK_OF_OUTAGES, **key_arrays(named, "monitors"), ids=list(named.values())
        )
    if unnamed:
        found += await tx.rows(_LOCK_OPEN_OF_MONITORS, **key_arrays(unnamed, "monitors"))
    return {MonitorKey(key): row for key, row in (await _read_several(tx, found)).items()}


async def lock_of_episodes(
    tx: Tx, named: Mapping[ServiceKey, int], unnamed: Sequence[ServiceKey]
) -> dict[ServiceKey, IncidentRow]:
    """Locks the incidents of episodes, by service.

    Args:
        named: services with the id of a known incident.
        unnamed: services whose unresolved incident with the source `auto` is locked.
    """
    tx.lock_rank(LockRank.INCIDENT, "the incidents of episodes")
    found = []
    if named:
        ids = list(named.values())
        found += await tx.rows(_LOCK_OF_EPISODES, **key_arrays(named, "services"), ids=ids)
    if unnamed:
        found += await tx.rows(_LOCK_OPEN_OF_SERVICES, **key_arrays(unnamed, "services"))
    return {ServiceKey(key): row for key, row in (await _read_several(tx, found)).items()}


async def lock_open_of_alert(tx: Tx, org: int, project: int, key: str) -> IncidentRow | None:
    """Locks the open incident of a fingerprint."""
    tx.lock_rank(LockRank.INCIDENT, "an alert's open incident")
    found = await tx.row(_LOCK_OPEN_OF_ALERT, org=org, project=project, key=key)
    return await _read_locked(tx, found)


async def _read_several(tx: Tx, found: Sequence[tuple[int, ...]]) -> dict[Key, IncidentRow]:
    """Returns the incidents for rows of (organization, monitor or service, incident id)."""
    if not found:
        return {}
    ids = {"orgs": [org for org, _, _ in found], "ids": [key for _, _, key in found]}
    rows = {(row.org, row.id): row for row in await tx.structs(IncidentRow, _BY_IDS, **ids)}
    return {(org, other): rows[org, key] for org, other, key in found}


async def _read_locked(tx: Tx, found: Key | None) -> IncidentRow | None:
    return None if found is None else await tx.one(IncidentRow, _BY_ID, org=found[0], id=found[1])


async def lock_shared_anchor(
    tx: Tx, org: int, project: int, monitor: UUID
) -> tuple[int, int | None] | None:
    """Locks the incident's monitor, shared. Returns its id and its escalation policy's."""
    tx.lock_rank(LockRank.MONITOR, "the monitor of an incident")
    found = await tx.row(_HOLD_ANCHOR, org=org, project=project, uid=monitor)
    return None if found is None else (found[0], found[1])


async def insert_incident(tx: Tx, values: dict[str, Any]) -> IncidentRow | None:
    """Inserts an incident. Returns None if a unique open incident exists already.

    Unique are the open incident of an alert, and the open one with the source `auto` of a monitor
    or service. The insert has no lock rank, because a transaction can open several incidents.
    """
    key = await tx.value(_INSERT, **values, uid=uuid7(), now=tx.now)
    return None if key is None else await tx.one(IncidentRow, _BY_ID, org=values["org"], id=key)


async def insert_components(tx: Tx, row: IncidentRow, components: Sequence[UUID]) -> None:
    """Inserts the components that the incident names."""
    await tx.execute(_NAME_COMPONENTS, org=row.org, id=row.id, components=list(components))


async def advance_incident(tx: Tx, row: IncidentRow) -> None:
    """Writes `seq`, `status`, `resolved_at` and `escalate_at`."""
    count = await tx.execute(
        _MOVE,
        org=row.org,
        id=row.id,
        seq=row.seq,
        status=row.status,
        resolved_at=row.resolved_at,
        escalate_at=row.escalate_at,
        now=tx.now,
    )
    assert count == 1, "the locked incident is missing"


async def acknowledge_incident(tx: Tx, row: IncidentRow, person: UUID | None, label: str) -> None:
    """Acknowledges the incident and stops its escalation, until the acknowledgement expires.

    After an expiry, the first acknowledgement stays.
    """
    given: dict[str, Any] = {"org": row.org, "id": row.id, "expires_at": await _expiry(tx, row)}
    if row.acknowledged_at is None:
        count = await tx.execute(_ACKNOWLEDGE, **given, person=person, label=label, now=tx.now)
    else:
        count = await tx.execute(_ACKNOWLEDGE_AGAIN, **given, now=tx.now)
    assert count == 1, "the locked incident is missing"


async def end_pause(tx: Tx, row: IncidentRow, started_at: Instant, step: int) -> IncidentRow:
    """Ends the acknowledgement and the snooze of a locked incident, whose escalation continues."""
    given = {"org": row.org, "id": row.id, "started_at": started_at, "step": step}
    count = await tx.execute(_END_PAUSE, **given, now=tx.now)
    assert count == 1, "the locked incident is missing"
    expired_at = row.ack_expired_at or tx.now
    return structs.replace(
        row,
        ack_expired_at=None if row.acknowledged_at is None else expired_at,
        ack_expires_at=None,
        snoozed_until=None,
        snoozed_label="",
        escalation_started_at=started_at,
        escalation_step=step,
        updated_at=tx.now,
    )


async def snooze_incident(tx: Tx, row: IncidentRow, until: Instant, label: str) -> IncidentRow:
    """Stops the escalation of a locked incident until an instant. Returns the new row."""
    given = {"org": row.org, "id": row.id, "until": until, "label": label}
    count = await tx.execute(_SNOOZE, **given, now=tx.now)
    assert count == 1, "the locked incident is missing"
    return await _reread(tx, row)


async def assign_incident(
    tx: Tx,
    row: IncidentRow,
    *,
    kind: str,
    label: str,
    channel: int | None,
    policy: int | None,
    started_at: Instant,
    step: int,
    last_at: Instant | None,
    escalate_at: Instant | None,
) -> IncidentRow:
    """Writes the assignment of a locked incident and ends its pauses. Returns the new row.

    `channel` is that of an assigned person in the project.
    """
    count = await tx.execute(
        _ASSIGN,
        org=row.org,
        id=row.id,
        kind=kind,
        label=label,
        channel=channel,
        policy=policy,
        started_at=started_at,
        step=step,
        last_at=last_at,
        escalate_at=escalate_at,
        now=tx.now,
    )
    assert count == 1, "the locked incident is missing"
    return await _reread(tx, row)


async def _reread(tx: Tx, row: IncidentRow) -> IncidentRow:
    found = await tx.one(IncidentRow, _BY_ID, org=row.org, id=row.id)
    assert found is not None, "the locked incident is missing"
    return found


async def _expiry(tx: Tx, row: IncidentRow) -> Instant | None:
    """Returns when an acknowledgement of now expires, None for never."""
    if row.escalation_policy is None:
        return None
    seconds = await tx.value(_ACK_TIMEOUT, org=row.org, id=row.escalation_policy)
    return Instant(tx.now + seconds * SECOND) if seconds else None


async def climb(
    tx: Tx,
    row: IncidentRow,
    *,
    step: int,
    last_escalated_at: Instant | None,
    escalate_at: Instant | None,
) -> None:
    """Writes the escalation state of a locked incident."""
    count = await tx.execute(
        _CLIMB,
        org=row.org,
        id=row.id,
        step=step,
        last_escalated_at=last_escalated_at,
        escalate_at=escalate_at,
        now=tx.now,
    )
    assert count == 1, "the locked incident is missing"


async def postpone_escalation_step(
    tx: Tx, row: IncidentRow, until: Instant, delayed_us: int
) -> None:
    """Postpones the next step of a locked incident to `until`, and all later ones by `delayed_us`.

    `delayed_us` is the time from the instant at which the step was due, in µs.
    """
    count = await tx.execute(
        _DELAY_CLIMBING, org=row.org, id=row.id, until=until, delayed_us=delayed_us
    )
    assert count == 1, "the locked incident is missing"


async def start_escalation(tx: Tx, row: IncidentRow, policy: int) -> IncidentRow:
    """Starts an escalation of a locked incident that has none, at the present instant."""
    count = await tx.execute(_BEGIN_CLIMBING, org=row.org, id=row.id, policy=policy, now=tx.now)
    assert count == 1, "the locked incident is missing"
    found = await tx.one(IncidentRow, _BY_ID, org=row.org, id=row.id)
    assert found is not None, "the locked incident is missing"
    return found


async def set_impact(tx: Tx, row: IncidentRow, impact: str) -> IncidentRow:
    """Changes the impact of a locked incident."""
    count = await tx.execute(_SET_IMPACT, org=row.org, id=row.id, impact=impact, now=tx.now)
    assert count == 1, "the locked incident is missing"
    found = await tx.one(IncidentRow, _BY_ID, org=row.org, id=row.id)
    assert found is not None, "the locked incident is missing"
    return found
