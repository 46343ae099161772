"""Reads of regional monitors: the regions of each, and the whole of each member."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ..core.key import MonitorKey
from ..engine.pools import Tx
from ..monitors.queries.monitors import select_uids
from ..monitors.rows import MonitorRow
from ..monitors.tables.monitors import select_monitors_by_key
from . import tables


class RegionalPart(msgspec.Struct, frozen=True):
    """Part of a regional monitor.

    The regional monitor itself has `regions` and `down_regions`, a member has `whole`.
    """

    regions: list[str] = []
    down_regions: int = 0
    whole: UUID | None = None

    @property
    def is_whole(self) -> bool:
        return bool(self.regions)


async def select_regional_parts(tx: Tx, rows: Sequence[MonitorRow]) -> dict[int, RegionalPart]:
    """Returns the parts by the id of the monitor. All rows are of one organization."""
    parts = [row for row in rows if row.regional_of is not None]
    if not parts:
        return {}
    org = parts[0].org
    wholes = [row for row in parts if row.regional_of == row.id]
    members = [row for row in parts if row.regional_of != row.id]
    wanted = sorted({row.regional_of for row in members if row.regional_of is not None})
    uids = await select_uids(tx, org, wanted) if wanted else {}
    regions = await tables.select_regions_of(tx, org, [row.id for row in wholes])
    found = {row.id: RegionalPart(whole=uids.get(row.regional_of or 0)) for row in members}
    for row in wholes:
        down = msgspec.json.decode(row.config)["quorum"]
        found[row.id] = RegionalPart(regions.get(row.id, []), int(down))
    return found


async def select_members(tx: Tx, composite: MonitorRow) -> list[MonitorRow]:
    """Returns the members of a regional monitor by their regions, empty for other monitors."""
    if composite.regional_of != composite.id:
        return []
    parts = await tables.select_parts(tx, composite.key)
    keys = [MonitorKey((composite.org, part)) for part in parts if part != composite.id]
    rows = await select_monitors_by_key(tx, keys)
    return sorted(rows.values(), key=lambda row: row.region)
