"""Open incidents of a project by the monitor or the service that they are about."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx

MOST: Final = 1_000

_OPEN: Final = """
select i.uid, i.monitor, i.service, i.acknowledged_at is not null, i.title
from incidents i
where i.org = %(org)s and i.project = %(project)s and i.status <> 'resolved'
  and (i.monitor is not null or i.service is not null)
order by i.started_at desc, i.id desc limit %(most)s
"""


class OpenIncident(msgspec.Struct, frozen=True):
    uid: UUID
    monitor: int | None
    service: int | None
    is_acknowledged: bool
    title: str


async def select_open_by_object(tx: Tx, org: int, project: int) -> list[OpenIncident]:
    """Returns the newest open incidents, at most MOST."""
    return await tx.structs(OpenIncident, _OPEN, org=org, project=project, most=MOST)
