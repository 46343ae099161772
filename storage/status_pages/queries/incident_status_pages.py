"""Status pages that can show an incident."""

from typing import Final
from uuid import UUID

from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import IncidentSource

# Preselection for `rules.status_page.may_show`, which makes the decision.
_SHOWING: Final = """
select g.uid from status_pages g
where g.org = %(org)s and (exists (
    select from status_components c where c.org = g.org and c.page = g.id
      and (c.monitor = %(monitor)s::int or c.service = %(service)s::int))
  or (%(is_loose)s and g.project = %(project)s))
order by lower(g.title), g.id limit %(most)s
"""


async def select_pages_showing(tx: Tx, incident: IncidentRow, most: int) -> list[UUID]:
    """Returns the ids of the pages, by title."""
    is_loose = incident.monitor is None and incident.service is None
    rows = await tx.rows(
        _SHOWING,
        org=incident.org,
        project=incident.project,
        monitor=incident.monitor,
        service=incident.service,
        is_loose=is_loose and incident.source != IncidentSource.AUTO,
        most=most,
    )
    return [uid for (uid,) in rows]
