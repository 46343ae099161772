"""Changes of a service, newest first, with their gate decisions and following incidents.

The incidents are those of the service and of the services that depended on it when they began. The
order in time does not imply a cause.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan, merged
from ...engine.pools import Tx
from ...services.queries.dependency_history import select_terms_below
from ..rows import ChangeRow, PhaseRow
from ..rules.change import ChangeKind
from ..rules.change_precedence import (
    FOLLOWS_MOST_US,
    ChangeRole,
    DependentsIndex,
    lag_seconds,
    precedes,
)
from ..tables import COLUMNS, change_row
from .change_gate_decisions import ChangeDecision, select_decided
from .changes import Happened, select_phases

# Maximum number of following incidents per change, nearest first.
INCIDENTS_MOST: Final = 100

_PAGE = f"""
select {COLUMNS} from changes c
where c.org = %(org)s and c.service = %(service)s
  and c.latest_at >= at(%(from_at)s) and c.latest_at < at(%(until_at)s)
  and (c.latest_at, c.id) < (at(%(before_at)s), %(before_id)s)
  and c.kind = any(%(kinds)s::text[])
  and (%(source)s::text is null or c.source = %(source)s)
order by c.latest_at desc, c.id desc limit %(most)s
"""
# One index lookup per range and service.
_INCIDENTS = """
select i.uid, i.service, i.started_at
from unnest(%(services)s::int[]) as s(id)
  cross join unnest(%(froms)s::bigint[], %(untils)s::bigint[]) as r(from_at, until_at)
  cross join lateral (
    select n.uid, n.service, n.started_at from incidents n
    where n.org = %(org)s and n.service = s.id
      and n.started_at >= at(r.from_at) and n.started_at < at(r.until_at)
    offset 0) i
order by i.started_at, i.uid
"""


@dataclass(frozen=True, slots=True)
class Followed:
    """Incident that began `lag_seconds` whole seconds after the change."""

    incident: UUID
    started_at: Instant
    role: ChangeRole
    lag_seconds: int


@dataclass(frozen=True, slots=True)
class ChangeGroup(Happened):
    """Change with its context.

    `decision` is the latest that the change names, None without one. `decided` is also None if
    retention deleted it.
    """

    decision: UUID | None
    decided: ChangeDecision | None
    incidents: Sequence[Followed]


class _Incident(msgspec.Struct, frozen=True):
    uid: UUID
    service: int
    started_at: Instant


async def select_timeline(
    tx: Tx,
    service: ServiceKey,
    within: TimeSpan,
    kinds: Collection[ChangeKind],
    source: str | None,
    before: tuple[int, int] | None,
    most: int,
) -> list[ChangeGroup]:
    """Returns changes whose latest phase is in a range, newest first.

    Args:
        source: None for all sources.
        before: (latest_at, id) of the last change of the previous part of the list.
    """
    at, key = min(before or (within.until, 0), (within.until, 0))
    if at < within.from_:
        return []
    rows = await tx.structs(
        change_row,
        _PAGE,
        org=service[0],
        service=service[1],
        from_at=within.from_,
        until_at=within.until,
        before_at=at,
        before_id=key,
        kinds=[kind.value for kind in kinds],
        source=source,
        most=most,
    )
    return await _groups(tx, service, rows)


async def select_groups(
    tx: Tx, service: ServiceKey, rows: Sequence[ChangeRow]
) -> list[ChangeGroup]:
    """Returns changes of one service with their context, in the given order."""
    return await _groups(tx, service, rows)


async def select_group(tx: Tx, service: ServiceKey, change: ChangeRow) -> ChangeGroup:
    """Returns one change with its context."""
    (found,) = await _groups(tx, service, [change])
    return found


async def _groups(tx: Tx, service: ServiceKey, rows: Sequence[ChangeRow]) -> list[ChangeGroup]:
    if not rows:
        return []
    phases = await select_phases(tx, service[0], [row.id for row in rows])
    named = {row.id: _decision(phases[row.id]) for row in rows}
    decided = await select_decided(tx, service, {uid for uid in named.values() if uid is not None})
    incidents = await _incidents(tx, service, rows)
    return [
        ChangeGroup(
            change=row,
            phases=phases[row.id],
            decision=(uid := named[row.id]),
            decided=None if uid is None else decided.get(uid),
            incidents=incidents[row.id],
        )
        for row in rows
    ]


def _decision(phases: Sequence[PhaseRow]) -> UUID | None:
    named = [phase.decision for phase in phases if phase.decision is not None]
    return named[-1] if named else None


async def _incidents(
    tx: Tx, service: ServiceKey, rows: Sequence[ChangeRow]
) -> Mapping[int, list[Followed]]:
    """Returns the following incidents by change id."""
    # One µs longer, because the end of a span is exclusive and the end of the day is inclusive.
    ranges = merged(
        TimeSpan(row.started_at, Instant(row.started_at + FOLLOWS_MOST_US + 1)) for row in rows
    )
    terms = await select_terms_below(tx, service, TimeSpan(ranges[0].from_, ranges[-1].until))
    found = await tx.structs(
        _Incident,
        _INCIDENTS,
        org=service[0],
        services=sorted({service[1], *(term.service for term in terms)}),
        froms=[each.from_ for each in ranges],
        untils=[each.until for each in ranges],
    )
    below = DependentsIndex(service[1], terms)
    return {row.id: _following(row, found, below) for row in rows}


def _following(
    row: ChangeRow, incidents: Sequence[_Incident], below: DependentsIndex
) -> list[Followed]:
    """Returns the incidents that follow a change. `incidents` are in the order of their start."""
    found: list[Followed] = []
    for place in range(bisect_left(incidents, row.started_at, key=_started_at), len(incidents)):
        incident = incidents[place]
        if not precedes(row.started_at, incident.started_at) or len(found) == INCIDENTS_MOST:
            break
        role = below.role(incident.service, incident.started_at)
        if role is not None:
            lag = lag_seconds(row.started_at, incident.started_at)
            found.append(Followed(incident.uid, incident.started_at, role, lag))
    return found


def _started_at(incident: _Incident) -> Instant:
    return incident.started_at
