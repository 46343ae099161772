"""Query for what refers to a monitor, for the confirmation of its deletion."""

from typing import Final

import msgspec

from ...core.key import MonitorKey
from ...engine.pools import Tx

USES_MOST: Final = 20

_USES = """
select
  array(select d.name from monitors d where d.org = %(org)s and %(monitor)s = any(d.depends_on)
    order by d.name limit %(most)s),
  array(select v.name from services v
      cross join lateral (select r.monitors from service_revisions r
        where r.org = v.org and r.service = v.id order by r.revision desc limit 1) r
    where v.org = %(org)s and v.project = (select m.project from monitors m
      where m.org = %(org)s and m.id = %(monitor)s) and %(monitor)s = any(r.monitors)
    order by v.name limit %(most)s),
  array(select distinct g.title from status_components c
      join status_pages g on g.org = c.org and g.id = c.page
    where c.org = %(org)s and c.monitor = %(monitor)s order by g.title limit %(most)s),
  (select count(*)::int from monitor_channels l
    where l.org = %(org)s and l.monitor = %(monitor)s),
  (select count(*)::int from incidents i where i.org = %(org)s and i.monitor = %(monitor)s)
"""


class MonitorUses(msgspec.Struct, frozen=True):
    """Names of dependent monitors, of services and of status pages, at most USES_MOST each.

    A deletion is refused while a monitor or service uses the monitor. `incidents` are kept.
    """

    dependents: list[str]
    services: list[str]
    pages: list[str]
    channels: int
    incidents: int


async def select_uses(tx: Tx, key: MonitorKey) -> MonitorUses:
    found = await tx.one(MonitorUses, _USES, org=key[0], monitor=key[1], most=USES_MOST)
    assert found is not None, "the query has one row"
    return found
