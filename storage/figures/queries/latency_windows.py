"""Latency of a monitor's successful results over windows with the same end."""

from collections.abc import Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

_WINDOWS = """
-- Each result is read once, because packed ones are decoded.
with h as materialized (
  select ts, latency_ms
  from heartbeats_in(%(org)s::int, %(monitor)s::int, at(%(first)s), at(%(until)s)) where up)
select w.place, count(*)::int, avg(h.latency_ms)::float8,
  percentile_cont(0.95) within group (order by h.latency_ms)
from unnest(%(sinces)s::bigint[]) with ordinality as w(since, place)
  join h on h.ts >= at(w.since)
group by w.place
"""


class LatencyWindow(msgspec.Struct, frozen=True):
    count: int
    avg_ms: float
    p95_ms: float


async def select_latency_windows(
    tx: Tx, key: MonitorKey, sinces: Sequence[Instant], until: Instant
) -> list[LatencyWindow | None]:
    """Returns one item per window, in order. None if the window has no successful result."""
    rows = await tx.rows(
        _WINDOWS,
        org=key[0],
        monitor=key[1],
        sinces=list(sinces),
        first=min(sinces, default=until),
        until=until,
    )
    found = {place: LatencyWindow(*rest) for place, *rest in rows}
    return [found.get(n + 1) for n in range(len(sinces))]
