"""The changes of a service, the newest first, each with what the gate had said of it and with the
incidents that followed it: of the service, and of what depended on it when they began.

An incident that follows a change is only said to follow it.
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

# Beside one change, the nearest first; more than these tell nothing more about it.
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
# Range by range and service by service, each by its index.
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
    """An incident that began so many whole seconds after the change."""

    incident: UUID
    started_at: Instant
    role: ChangeRole
    lag_seconds: int


@dataclass(frozen=True, slots=True)
class ChangeGroup(Happened):
    """`decision` is the newest that the change names, `decided` is None where that is kept no more,
    or none is named."""

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
    """Those whose latest phase came to pass in a range, of some kinds and of one source or of all.
    `before` is (latest_at, id) of the last that was told."""
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


async def select_group(tx: Tx, service: ServiceKey, change: ChangeRow) -> ChangeGroup:
    """One change with all that stands beside it."""
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
    """By change."""
    # One instant longer, as the end of a span is not of it and the last instant of a day is.
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
    """Of incidents in the order of their beginnings."""
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
