"""Parts of regional monitors: the members and the composite have the id of the composite."""

from collections.abc import Sequence
from typing import Final

from ..core.key import MonitorKey
from ..engine.pools import Tx

_JOIN: Final = """
update monitors set regional_of = %(composite)s where org = %(org)s and id = any(%(ids)s::int[])
"""
_PART: Final = """
update monitors set regional_of = null where org = %(org)s and regional_of = %(composite)s
"""
_PARTS: Final = """
select id from monitors where org = %(org)s and regional_of = %(composite)s order by id
"""
_REGIONS: Final = """
select m.regional_of, array_agg(s.region order by s.region)
from monitors m join shards s on s.id = m.shard
where m.org = %(org)s and m.regional_of = any(%(composites)s::int[]) and m.id <> m.regional_of
group by m.regional_of
"""


async def join_parts(tx: Tx, composite: MonitorKey, parts: Sequence[int]) -> None:
    """Makes monitors the parts of a regional monitor. They are new or locked."""
    await tx.execute(_JOIN, org=composite[0], composite=composite[1], ids=sorted(parts))


async def part(tx: Tx, composite: MonitorKey) -> None:
    """Makes the parts ordinary monitors."""
    await tx.execute(_PART, org=composite[0], composite=composite[1])


async def select_parts(tx: Tx, composite: MonitorKey) -> list[int]:
    """Returns the ids of the members and of the composite."""
    rows = await tx.rows(_PARTS, org=composite[0], composite=composite[1])
    return [part for (part,) in rows]


async def select_regions_of(tx: Tx, org: int, composites: Sequence[int]) -> dict[int, list[str]]:
    """Returns the regions of regional monitors, by the id of the composite."""
    return dict(await tx.rows(_REGIONS, org=org, composites=sorted(composites)))
