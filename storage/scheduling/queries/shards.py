"""Reads of shards."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...core.time_span import TimeSpan, cut_at_starts
from ...engine.pools import Tx
from ..rows import Shard

_COLUMNS = "id, org, region, reserved_through, sealed_through, settled_through, rolled_up_through"
_SHARDS = f"select {_COLUMNS} from shards where region = any(%(regions)s) or %(all)s order by id"
_SHARDS_BY_ID = f"select {_COLUMNS} from shards where id = any(%(ids)s::int[]) order by id"

_MAINTENANCES = """
select m.id, x.starts_at, least(x.ends_at, coalesce(x.cancel_effective_at, x.ends_at))
from maintenances x join known_monitors m on m.org = x.org and m.project = x.project
  and (x.monitor is null or x.monitor = m.id)
where (m.shard = %(shard)s or m.id = any(%(monitors)s)) and x.archived_at is null
  and x.ends_at > at(%(after)s) and x.id <> %(apart_from)s
"""


async def select_shards(tx: Tx, regions: Sequence[str] | None = None) -> list[Shard]:
    return await tx.structs(Shard, _SHARDS, regions=list(regions or ()), all=regions is None)


async def select_shards_by_id(tx: Tx, ids: Sequence[int]) -> list[Shard]:
    """Returns the shards that exist among the ids given."""
    return await tx.structs(Shard, _SHARDS_BY_ID, ids=list(ids))


async def select_maintenances(
    tx: Tx,
    after: Instant,
    *,
    shard: int = 0,
    monitors: Sequence[int] = (),
    apart_from: int = 0,
) -> dict[int, list[TimeSpan]]:
    """Returns the maintenance of each monitor that ends after an instant, as disjoint spans.

    A span begins where a maintenance begins, also within another one, since each start ends the
    freshness of earlier results. A maintenance of a project applies to each of its monitors. The
    maintenance `apart_from` is omitted.
    """
    rows = await tx.rows(
        _MAINTENANCES, shard=shard, monitors=list(monitors), after=after, apart_from=apart_from
    )
    found: dict[int, list[TimeSpan]] = {}
    for monitor, starts, ends in rows:
        found.setdefault(monitor, []).append(TimeSpan(starts, ends))
    return {monitor: cut_at_starts(spans) for monitor, spans in found.items()}
