"""Status pages that can show an incident."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import IncidentSource

# Preselection for `rules.status_page.may_show`, which makes the decision.
_SHOWING: Final = """
select g.uid from status_pages g
where g.org = %(org)s and (exists (
    select from status_components c where c.org = g.org and c.page = g.id
      and (c.monitor = %(monitor)s::int or c.service = %(service)s::int
        or c.uid = any(%(components)s::uuid[])))
  or (%(is_loose)s and g.project = %(project)s))
order by lower(g.title), g.id limit %(most)s
"""
_COMPONENTS: Final = """
select component from incident_components where org = %(org)s and incident = %(incident)s
"""


class IncidentSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What an incident is about. `is_auto`: Leadline opened it."""

    org: int
    project: int
    monitor: int | None = None
    service: int | None = None
    components: Sequence[UUID] = ()
    is_auto: bool = False


async def subject_of(tx: Tx, incident: IncidentRow) -> IncidentSubject:
    rows = await tx.rows(_COMPONENTS, org=incident.org, incident=incident.id)
    return IncidentSubject(
        org=incident.org,
        project=incident.project,
        monitor=incident.monitor,
        service=incident.service,
        components=[uid for (uid,) in rows],
        is_auto=incident.source == IncidentSource.AUTO,
    )


async def select_pages_showing(tx: Tx, about: IncidentSubject, most: int) -> list[UUID]:
    """Returns the ids of the pages, by title."""
    is_loose = about.monitor is None and about.service is None and not about.components
    rows = await tx.rows(
        _SHOWING,
        org=about.org,
        project=about.project,
        monitor=about.monitor,
        service=about.service,
        components=list(about.components),
        is_loose=is_loose and not about.is_auto,
        most=most,
    )
    return [uid for (uid,) in rows]
