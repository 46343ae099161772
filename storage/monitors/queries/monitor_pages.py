"""Pages of a project's monitors, selected by attributes and text, in the order of the slug."""

from typing import Final

import msgspec

from ...engine.pools import Tx
from ..rows import MonitorRow
from ..tables.monitors import COLUMNS, FROM


class MonitorSelection(msgspec.Struct, frozen=True):
    """Values of one attribute are alternatives; the attributes apply together. Empty selects all.

    `q` is a part of the name, target, slug or a tag, in any case.
    """

    types: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    q: str = ""


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


async def select_monitor_page(
    tx: Tx, org: int, project: int, selection: MonitorSelection, after: str, most: int | None
) -> list[MonitorRow]:
    """Returns the monitors behind the slug `after`, at most `most` of them if it is given."""
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
