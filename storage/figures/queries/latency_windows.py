"""Latency of a monitor's successful results over windows with the same end."""

from collections.abc import Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

_WINDOWS = """
select w.place, count(*)::int, avg(h.latency_ms)::float8,
  percentile_cont(0.95) within group (order by h.latency_ms)
from unnest(%(sinces)s::bigint[]) with ordinality as w(since, place)
  cross join lateral heartbeats_in(%(org)s::int, %(monitor)s::int, at(w.since), at(%(until)s)) h
where h.up
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
    rows = await tx.rows(_WINDOWS, org=key[0], monitor=key[1], sinces=list(sinces), until=until)
    found = {place: LatencyWindow(*rest) for place, *rest in rows}
    return [found.get(n + 1) for n in range(len(sinces))]
