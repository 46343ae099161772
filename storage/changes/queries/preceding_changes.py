"""Changes that preceded an incident: of its service, and of its upstreams at that instant.

The order in time does not imply a cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...services.queries.dependency_history import select_upstreams_at
from ...services.tables.services import select_services
from ..rows import ChangeRow, PhaseRow
from ..rules.change_precedence import FOLLOWS_MOST_US, ChangeRole, lag_seconds
from ..tables import COLUMNS, change_row
from .changes import select_phases

# The newest changes; the timeline of each service contains older ones.
CHANGES_MOST: Final = 200

_PRECEDING = f"""
select x.* from unnest(%(services)s::int[]) as s(id)
  cross join lateral (
    select {COLUMNS} from changes c
    where c.org = %(org)s and c.service = s.id
      and c.started_at >= at(%(from_at)s) and c.started_at <= at(%(to_at)s)
    order by c.started_at desc, c.id desc limit %(most)s) x
order by x.started_at desc, x.id desc limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class Preceding:
    """Change that began `lag_seconds` whole seconds before the incident."""

    service: UUID
    service_name: str
    change: ChangeRow
    phases: Sequence[PhaseRow]
    role: ChangeRole
    lag_seconds: int


async def select_preceding(tx: Tx, incident: IncidentRow) -> list[Preceding]:
    """Returns the preceding changes, newest first; empty if the incident has no service."""
    if incident.service is None:
        return []
    own, at = ServiceKey((incident.org, incident.service)), incident.started_at
    services = {incident.service, *await select_upstreams_at(tx, own, at)}
    rows = await tx.structs(
        change_row,
        _PRECEDING,
        org=incident.org,
        services=sorted(services),
        from_at=Instant(at - FOLLOWS_MOST_US),
        to_at=at,
        most=CHANGES_MOST,
    )
    phases = await select_phases(tx, incident.org, [row.id for row in rows])
    changed = {ServiceKey((incident.org, row.service)) for row in rows}
    known = await select_services(tx, sorted(changed))
    return [
        Preceding(
            service=known[ServiceKey((row.org, row.service))].uid,
            service_name=known[ServiceKey((row.org, row.service))].name,
            change=row,
            phases=phases.get(row.id, ()),
            role=ChangeRole.OWN_SERVICE if row.service == incident.service else ChangeRole.UPSTREAM,
            lag_seconds=lag_seconds(row.started_at, at),
        )
        for row in rows
        # A service can be deleted between these statements.
        if ServiceKey((row.org, row.service)) in known
    ]
