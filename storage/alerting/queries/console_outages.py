"""Queries for the outages of a monitor, for its console screen."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

_OPEN = """
select o.announced_at, o.suppressed_by, i.uid, i.acknowledged_at,
  coalesce(i.acknowledged_label, ''), i.status is not distinct from 'resolved',
  array(select m.name from monitors w join monitors m on m.org = w.org and m.id = any(w.depends_on)
    where w.org = o.org and w.id = o.monitor order by m.name),
  i.number
from outages o left join incidents i on i.org = o.org and i.id = o.incident
where o.org = %(org)s and o.monitor = %(monitor)s and o.ended_at is null
"""


class OpenOutage(msgspec.Struct, frozen=True):
    """Open outage of a monitor. `depends_on` contains the names of direct upstreams."""

    announced_at: Instant | None
    suppressed_by: str | None
    incident: UUID | None
    acknowledged_at: Instant | None
    acknowledged_label: str
    is_resolved: bool
    depends_on: list[str]
    # Number of the incident.
    number: int | None = None


async def select_open_outage(tx: Tx, org: int, monitor: int) -> OpenOutage | None:
    return await tx.one(OpenOutage, _OPEN, org=org, monitor=monitor)


# The newest outage. Its incident is its own, or the newest one of the given services that was open
# during it.
_LAST = """
select o.uid, o.began_at, o.ended_at, o.why, o.announced_at, o.suppressed_by, o.failed_condition,
  coalesce(own.uid, other.uid)
from outages o left join incidents own on own.org = o.org and own.id = o.incident
  left join lateral (select i.uid from incidents i
    where i.org = o.org and i.service in (
        select v.id from services v where v.org = o.org and v.uid = any(%(services)s::uuid[]))
      and i.started_at <= coalesce(o.ended_at, at(%(now)s))
      and coalesce(i.resolved_at, at(%(now)s)) >= o.began_at
    order by i.id desc limit 1) other on own.id is null
where o.org = %(org)s and o.monitor = %(monitor)s
order by o.began_at desc, o.id desc limit 1
"""


class LastOutage(msgspec.Struct, frozen=True):
    """Newest outage of a monitor, open or ended. `why` is the message of its first failure."""

    uid: UUID
    began_at: Instant
    ended_at: Instant | None
    why: str
    announced_at: Instant | None
    suppressed_by: str | None
    failed_condition: str | None
    incident: UUID | None


async def select_last_outage(
    tx: Tx, org: int, monitor: int, services: Sequence[UUID]
) -> LastOutage | None:
    """Returns the newest outage, with its incident or one of the services that page for it."""
    return await tx.one(
        LastOutage, _LAST, org=org, monitor=monitor, services=list(services), now=tx.now
    )


# Open outages of a project that a mute holds back.
_MUTED = """
select o.org, o.monitor from outages o join monitors m on m.org = o.org and m.id = o.monitor
where o.org = %(org)s and m.project = %(project)s and o.ended_at is null
  and o.suppressed_by = 'silenced'
"""


async def select_muted_monitors(tx: Tx, org: int, project: int) -> list[MonitorKey]:
    """Returns the monitors of a project whose outage waits for the end of a mute."""
    return [MonitorKey((of, key)) for of, key in await tx.rows(_MUTED, org=org, project=project)]
