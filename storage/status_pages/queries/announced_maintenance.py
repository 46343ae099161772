"""Maintenance with a public title, the pages that notify of it, and the steps noted so far."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import DAY, Instant
from ...engine.pools import Tx
from .status_page_maintenance import AHEAD_US

# Age of an end after which no notice is sent.
TOLD_LATE_US: Final = DAY
# The next ones of an organization wait until earlier ones are over.
OF_ORGANIZATION_MOST: Final = 200

_ANNOUNCED: Final = """
select org, id, uid, monitor, project, public_title, starts_at, over_at, is_archived from (
  select x.org, x.id, x.uid, x.monitor, x.project, x.public_title, x.starts_at,
    least(x.ends_at, x.cancel_effective_at) as over_at,
    -- The deletion of its monitor ends a maintenance.
    x.archived_at is not null or x.monitor is not null and m.id is null
      and least(x.ends_at, x.cancel_effective_at) > at(%(now)s) as is_archived,
    row_number() over (partition by x.org order by x.starts_at, x.id) as place
  from maintenances x left join monitors m on m.org = x.org and m.id = x.monitor
  where x.public_title is not null and (%(org)s::int is null or x.org = %(org)s)
    and x.starts_at < at(%(until)s)
    and coalesce(x.archived_at, least(x.ends_at, x.cancel_effective_at)) > at(%(since)s)
    -- Subscribers read only the end of a step if the monitor was deleted.
    and (x.monitor is null or m.id is not null or exists (select from maintenance_notices n
      where n.org = x.org and n.maintenance = x.id))
) as found where place <= %(most)s order by org, place
"""
_PAGES: Final = """
select g.uid from status_pages g
where g.org = any(%(orgs)s::int[]) and g.visibility <> 'internal' and exists (
  select from subscribers s where s.org = g.org and s.page = g.id
    and s.confirmed_at is not null and s.suspended_at is null)
order by g.org, g.id
"""
_TOLD: Final = """
select maintenance, step, components, done from maintenance_notices
where org = %(org)s and page = %(page)s and maintenance = any(%(ids)s::int[])
order by created_at
"""


class Announced(msgspec.Struct, frozen=True):
    """Maintenance with a public title. `over_at` is its planned or actual end.

    `is_archived` is also true if its monitor was deleted before that end.
    """

    org: int
    id: int
    uid: UUID
    monitor: int | None
    project: int
    title: str
    starts_at: Instant
    over_at: Instant
    is_archived: bool


class ToldStep(msgspec.Struct, frozen=True):
    maintenance: int
    step: str
    components: list[UUID]
    done: bool


async def select_announced(tx: Tx, org: int | None = None) -> list[Announced]:
    """Returns maintenance with a public title that begins soon, or ended recently.

    That of all organizations, or of one.
    """
    until, since = tx.now + AHEAD_US, tx.now - TOLD_LATE_US
    most = OF_ORGANIZATION_MOST
    return await tx.structs(
        Announced, _ANNOUNCED, org=org, until=until, since=since, now=tx.now, most=most
    )


async def select_telling_pages(tx: Tx, orgs: Collection[int]) -> list[UUID]:
    """Returns the public pages of the organizations that have active subscribers."""
    return [uid for (uid,) in await tx.rows(_PAGES, orgs=sorted(orgs))]


async def select_told(tx: Tx, org: int, page: int, ids: Collection[int]) -> list[ToldStep]:
    """Returns the steps that are noted for the page, in their order."""
    return await tx.structs(ToldStep, _TOLD, org=org, page=page, ids=sorted(ids))
