"""Monitors of a project, selected by attributes, status and text, in the order of the slug."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rows import MonitorRow
from ..tables.monitors import COLUMNS, FROM
from .monitors import select_standings, status_of

# A list of a status is filled from blocks of this many monitors, because the status of a monitor is
# computed from its newest result.
_BLOCK: Final = 500


class MonitorSelection(msgspec.Struct, frozen=True):
    """Values of one attribute are alternatives; the attributes apply together. Empty selects all.

    `q` is a part of the name, target, slug or a tag, in any case. `statuses` are `pending`, `up`
    and `down`, as in the API.
    """

    types: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    q: str = ""
    statuses: tuple[str, ...] = ()


_PAGE: Final = f"""
select {COLUMNS} {FROM}
where m.org = %(org)s and m.project = %(project)s
  and m.slug > %(after)s
  and (%(types)s::text[] = '{{}}' or m.type = any(%(types)s::text[]))
  and (%(regions)s::text[] = '{{}}' or s.region = any(%(regions)s::text[]))
  and (%(tags)s::text[] = '{{}}' or m.tags && %(tags)s::text[])
  and (%(q)s = '' or exists (
    select from unnest(array[m.name, m.target, m.slug] || m.tags) as text
    where position(lower(%(q)s) in lower(text)) > 0))
order by m.slug
limit %(most)s
"""


_CHOSEN: Final = f"""
select {COLUMNS} {FROM}
where m.org = %(org)s and m.project = %(project)s and m.uid = any(%(uids)s::uuid[])
order by m.slug
"""


async def select_monitor_page(
    tx: Tx, org: int, project: int, selection: MonitorSelection, after: str, most: int | None
) -> list[MonitorRow]:
    """Returns the monitors behind the slug `after`, at most `most` of them if it is given."""
    if not selection.statuses:
        return await _select_block(tx, org, project, selection, after, most)
    found: list[MonitorRow] = []
    while most is None or len(found) < most:
        block = await _select_block(tx, org, project, selection, after, _BLOCK)
        found += await _of_status(tx, block, selection.statuses)
        if len(block) < _BLOCK:
            break
        after = block[-1].slug
    return found[:most]


async def select_chosen(tx: Tx, org: int, project: int, uids: Collection[UUID]) -> list[MonitorRow]:
    """Returns the monitors of the project that `uids` name, by slug."""
    return await tx.structs(MonitorRow, _CHOSEN, org=org, project=project, uids=list(uids))


async def _of_status(
    tx: Tx, rows: Sequence[MonitorRow], statuses: Sequence[str]
) -> list[MonitorRow]:
    standings = await select_standings(tx, [row.key for row in rows], counted=False)
    return [
        row for row in rows if status_of(standings.get(row.key), row.type, tx.now).value in statuses
    ]


async def _select_block(
    tx: Tx, org: int, project: int, selection: MonitorSelection, after: str, most: int | None
) -> list[MonitorRow]:
    return await tx.structs(
        MonitorRow,
        _PAGE,
        org=org,
        project=project,
        after=after,
        most=most,
        types=list(selection.types),
        regions=list(selection.regions),
        tags=list(selection.tags),
        q=selection.q,
    )
