"""The queue of repair requests: hours whose figures must be computed again after late data."""

from collections.abc import Sequence

import msgspec

from ...engine.pools import Tx
from ..rows import RepairRequest

_INSERT_REPAIRS = """
insert into repairs (org, shard, monitor, from_at, to_at, reason, created_at, due_at)
select i.org, i.shard, i.monitor, at(i.from_at), at(i.to_at), i.reason, at(%(now)s), at(%(now)s)
from json_to_recordset(%(items)s::json)
  as i(org int, shard int, monitor int, from_at bigint, to_at bigint, reason text)
"""


async def insert_repairs(tx: Tx, ranges: Sequence[RepairRequest]) -> None:
    if ranges:
        items = msgspec.json.encode(ranges).decode()
        await tx.execute(_INSERT_REPAIRS, items=items, now=tx.now)
