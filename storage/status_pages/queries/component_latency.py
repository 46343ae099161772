"""Latency of the monitors of a status page, in steps."""

from collections.abc import Collection
from typing import Final

from ...core.instant import Instant
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.component_latency import STEP_US, LatencyPoint, measures_latency

_POINTS: Final = """
select k.monitor, date_bin(%(step_us)s * interval '1 microsecond', ts, at(%(from_at)s)),
  percentile_disc(0.5) within group (order by latency_ms),
  percentile_disc(0.95) within group (order by latency_ms)
from unnest(%(monitors)s::int[]) as k(monitor)
  cross join lateral heartbeats_in(%(org)s::int, k.monitor, at(%(from_at)s), at(%(to_at)s))
where up
group by 1, 2 order by 1, 2
"""
_TYPE: Final = "select type from monitors where org = %(org)s and id = %(id)s"


async def select_latency_points(
    tx: Tx, org: int, monitors: Collection[int], span: TimeSpan
) -> dict[int, list[LatencyPoint]]:
    """Returns the steps with successful results, in order, for each of the monitors."""
    found: dict[int, list[LatencyPoint]] = {monitor: [] for monitor in monitors}
    if not found:
        return found
    rows = await tx.rows(
        _POINTS,
        org=org,
        monitors=sorted(found),
        from_at=span.from_,
        to_at=span.until,
        step_us=STEP_US,
    )
    for monitor, at, p50_ms, p95_ms in rows:
        found[monitor].append(LatencyPoint(Instant(at), p50_ms, p95_ms))
    return found


async def select_measures_latency(tx: Tx, org: int, monitor: int | None) -> bool:
    """Returns whether the monitor of a binding measures latency, false without a monitor."""
    rows = await tx.rows(_TYPE, org=org, id=monitor)
    return bool(rows) and measures_latency(rows[0][0])
