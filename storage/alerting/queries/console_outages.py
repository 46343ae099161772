"""Query for the open outage of a monitor, for its console screen."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

_OPEN = """
select o.announced_at, o.suppressed_by, i.uid, i.acknowledged_at,
  coalesce(i.acknowledged_label, ''), i.status is not distinct from 'resolved',
  array(select m.name from monitors w join monitors m on m.org = w.org and m.id = any(w.depends_on)
    where w.org = o.org and w.id = o.monitor order by m.name)
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


async def select_open_outage(tx: Tx, org: int, monitor: int) -> OpenOutage | None:
    return await tx.one(OpenOutage, _OPEN, org=org, monitor=monitor)
