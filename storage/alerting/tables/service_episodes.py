"""Alert episodes of services and their notification state.

Invariant: a service has at most one open episode.
"""

from collections.abc import Collection
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx

_OPEN = """
select e.org, e.id, e.uid, e.service, e.began_at, e.state, e.incident, e.announced_at,
  e.notified_at, e.page_delivered_at
from unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
  join service_episodes e on e.org = k.org and e.service = k.service and e.ended_at is null
"""
# Open episodes of services whose evaluation lease has expired.
_FORGOTTEN = """
select e.org, e.service from service_episodes e
  join service_alerting a on a.org = e.org and a.service = e.service
where e.ended_at is null and coalesce(a.live_lease_until <= clock_timestamp(), true)
  and not exists (select from services s join projects p on p.org = s.org and p.id = s.project
    where s.org = e.org and s.id = e.service and p.deleting_since is not null)
order by e.org, e.service limit %(most)s
"""
_INSERT = """
insert into service_episodes (org, uid, service, began_at, state)
values (%(org)s, %(uid)s, %(service)s, at(%(began)s), %(state)s)
returning id
"""
_SET_INCIDENT = """
update service_episodes set incident = %(incident)s where org = %(org)s and id = %(id)s
"""
_ANNOUNCE = """
update service_episodes set announced_at = at(%(now)s), notified_at = at(%(now)s)
where org = %(org)s and id = %(id)s and announced_at is null
"""
_REMIND = (
    "update service_episodes set notified_at = at(%(now)s) where org = %(org)s and id = %(id)s"
)
_HEARD = """
update service_episodes set page_delivered_at = at(%(now)s)
where org = %(org)s and id = %(id)s and page_delivered_at is null
"""
_END = """
update service_episodes set ended_at = at(%(at)s) where org = %(org)s and id = %(id)s
"""


class EpisodeRow(msgspec.Struct, frozen=True):
    """Open episode of a service."""

    org: int
    id: int
    uid: UUID
    service: int
    began_at: Instant
    state: str
    incident: int | None
    announced_at: Instant | None
    notified_at: Instant | None
    page_delivered_at: Instant | None

    @property
    def key(self) -> ServiceKey:
        return ServiceKey((self.org, self.service))


async def select_open_episodes(
    tx: Tx, services: Collection[ServiceKey]
) -> dict[ServiceKey, EpisodeRow]:
    rows = await tx.structs(EpisodeRow, _OPEN, **key_arrays(services, "services"))
    return {row.key: row for row in rows}


async def select_forgotten(tx: Tx, most: int) -> list[ServiceKey]:
    """Returns services with an open episode and an expired lease."""
    return [ServiceKey((org, service)) for org, service in await tx.rows(_FORGOTTEN, most=most)]


async def begin_episode(tx: Tx, service: ServiceKey, began: Instant, state: str) -> EpisodeRow:
    """Inserts an episode. The caller locks the alerting row and has found no open episode."""
    uid = uuid7()
    key = await tx.value(
        _INSERT, org=service[0], uid=uid, service=service[1], began=began, state=state
    )
    return EpisodeRow(service[0], key, uid, service[1], began, state, None, None, None, None)


async def set_incident(tx: Tx, row: EpisodeRow, incident: int) -> None:
    await tx.execute(_SET_INCIDENT, org=row.org, id=row.id, incident=incident)


async def announce_episode(tx: Tx, row: EpisodeRow) -> None:
    """Marks the episode as announced by the service itself."""
    count = await tx.execute(_ANNOUNCE, org=row.org, id=row.id, now=tx.now)
    assert count == 1, "episode is already announced"


async def remind_of_episode(tx: Tx, row: EpisodeRow) -> None:
    await tx.execute(_REMIND, org=row.org, id=row.id, now=tx.now)


async def mark_page_delivered(tx: Tx, row: EpisodeRow) -> None:
    """Records the first delivered page, because retention deletes the delivered outbox rows."""
    await tx.execute(_HEARD, org=row.org, id=row.id, now=tx.now)


async def end_episode(tx: Tx, row: EpisodeRow, at: Instant) -> None:
    await tx.execute(_END, org=row.org, id=row.id, at=at)
