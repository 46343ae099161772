"""Incidents for the summary of a hand-off."""

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

INCIDENTS_SHOWN = 10
_OPEN = """
select title, impact, started_at, acknowledged_label, null from incidents
where org = %(org)s and project = %(project)s and status <> 'resolved'
order by started_at desc limit %(most)s
"""
_RESOLVED = """
select title, impact, started_at, acknowledged_label, resolved_at from incidents
where org = %(org)s and project = %(project)s and resolved_at >= at(%(since)s)
order by resolved_at desc limit %(most)s
"""
_COUNTS = """
select count(*) filter (where status <> 'resolved'),
  count(*) filter (where resolved_at >= at(%(since)s))
from incidents
where org = %(org)s and project = %(project)s
  and (status <> 'resolved' or resolved_at >= at(%(since)s))
"""


class HandOffIncident(msgspec.Struct, frozen=True):
    title: str
    impact: str
    started_at: Instant
    acknowledged_label: str
    resolved_at: Instant | None


class HandOffFacts(msgspec.Struct, frozen=True):
    """Open incidents, and those resolved since the last hand-off; the numbers count all of them."""

    open: list[HandOffIncident]
    resolved: list[HandOffIncident]
    open_count: int
    resolved_count: int


async def select_hand_off_facts(tx: Tx, org: int, project: int, since: Instant) -> HandOffFacts:
    where = {"org": org, "project": project}
    counts = await tx.row(_COUNTS, **where, since=since)
    assert counts is not None, "a count answers with one row"
    return HandOffFacts(
        await tx.structs(HandOffIncident, _OPEN, **where, most=INCIDENTS_SHOWN),
        await tx.structs(HandOffIncident, _RESOLVED, **where, since=since, most=INCIDENTS_SHOWN),
        *counts,
    )
