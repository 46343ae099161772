"""Queries of the service screen: members, and incidents and maintenance of a range."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

HAPPENED_MOST: Final = 60

_MEMBERS = """
select m.id, m.uid, m.name, m.type, s.region, m.interval_seconds, m.grace_seconds,
  m.timeout_seconds, m.schedule, m.timezone
from monitors m join shards s on s.id = m.shard
where m.org = %(org)s and m.id = any(%(ids)s::int[])
order by lower(m.name), m.id
"""
_INCIDENTS = """
select i.uid, i.title, i.status, i.impact, i.started_at, i.resolved_at, m.name, i.number
from incidents i left join monitors m on m.org = i.org and m.id = i.monitor
where i.org = %(org)s and i.project = %(project)s
  and (i.service = %(service)s or i.monitor = any(%(monitors)s::int[]))
  and i.started_at < at(%(until)s) and (i.resolved_at is null or i.resolved_at > at(%(from_at)s))
order by i.started_at desc, i.id desc limit %(most)s
"""
_MAINTENANCE = """
select m.name, x.starts_at, least(x.ends_at, x.cancel_effective_at), x.reason
from maintenances x left join monitors m on m.org = x.org and m.id = x.monitor
where x.org = %(org)s and x.project = %(project)s and x.archived_at is null
  and (x.monitor is null or x.monitor = any(%(monitors)s::int[]))
  and x.starts_at < at(%(until)s) and least(x.ends_at, x.cancel_effective_at) > at(%(from_at)s)
order by x.starts_at desc, x.id desc limit %(most)s
"""


class MemberRow(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    name: str
    type: str
    region: str
    interval_seconds: int
    grace_seconds: int
    timeout_seconds: int
    schedule: str = ""
    timezone: str = ""


class IncidentOf(msgspec.Struct, frozen=True):
    """Incident of a service or its member. `monitor` is None for one of the service itself."""

    uid: UUID
    title: str
    status: str
    impact: str
    started_at: Instant
    resolved_at: Instant | None
    monitor: str | None
    number: int


class MaintenanceOf(msgspec.Struct, frozen=True):
    """Maintenance of a member. `monitor` is None for one of the whole project."""

    monitor: str | None
    starts_at: Instant
    over_at: Instant
    reason: str


async def select_member_rows(tx: Tx, org: int, ids: Sequence[int]) -> list[MemberRow]:
    """Returns the existing monitors among `ids`, by name."""
    return await tx.structs(MemberRow, _MEMBERS, org=org, ids=list(ids))


async def select_incidents_of(
    tx: Tx,
    org: int,
    project: int,
    service: int,
    monitors: Sequence[int],
    from_at: Instant,
    until: Instant,
) -> list[IncidentOf]:
    """Returns the newest `HAPPENED_MOST` incidents of service and members in the range."""
    return await tx.structs(
        IncidentOf,
        _INCIDENTS,
        org=org,
        project=project,
        service=service,
        monitors=list(monitors),
        from_at=from_at,
        until=until,
        most=HAPPENED_MOST,
    )


async def select_maintenance_of(
    tx: Tx, org: int, project: int, monitors: Sequence[int], from_at: Instant, until: Instant
) -> list[MaintenanceOf]:
    return await tx.structs(
        MaintenanceOf,
        _MAINTENANCE,
        org=org,
        project=project,
        monitors=list(monitors),
        from_at=from_at,
        until=until,
        most=HAPPENED_MOST,
    )
