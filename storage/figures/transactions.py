"""Rollup of hours from results and of days from hours, and their repair after late data.

Rollup begins when the watermark has passed the hour. All writes replace rows, so that an
interrupted pass can be repeated.
"""

from collections.abc import Iterable, Sequence

from ..core.instant import DAY, HOUR, SECOND, Instant
from ..core.key import MonitorKey
from ..engine.pools import Tx
from ..results.tables import sealing as seals
from ..scheduling.rows import Shard
from ..scheduling.rules.run_schedule import LATE_ARRIVAL_US
from . import tables as figures
from .queries.monitor_time import measure
from .tables import RollupBucket

MONITORS_AT_ONCE = 100


async def watermark_of_shard(tx: Tx, shard: Shard) -> Instant:
    """Returns the lowest watermark of a shard's monitors.

    It includes unsealed time of the monitors in other shards before a move, and of the children of
    composites.
    """
    longest = await seals.select_longest_timeout_seconds(tx, shard.id, shard.settled_through)
    own = Instant(shard.settled_through - longest * SECOND - LATE_ARRIVAL_US)
    elsewhere = await seals.select_least_mark_elsewhere(tx, shard.id)
    return own if elsewhere is None else min(own, elsewhere)


async def roll_up_hour(tx: Tx, keys: Sequence[MonitorKey], hour: Instant) -> None:
    """Writes one hour of monitors, and the day that ends with it."""
    types = await figures.lock_types(tx, keys)
    await _put_hours(tx, types, hour, Instant(hour + HOUR))
    end = Instant(hour + HOUR)
    if end % DAY == 0:
        await figures.put_days(tx, keys, Instant(end - DAY))


async def _put_hours(tx: Tx, types: dict[MonitorKey, str], start: Instant, end: Instant) -> None:
    edges = [Instant(at) for at in range(start, end + 1, HOUR)]
    measured = await measure(tx, types, edges)
    await figures.put_hours(
        tx,
        [
            RollupBucket(
                *key,
                edges[n],
                hour.split.good_us,
                hour.split.bad_us,
                hour.split.unknown_us,
                hour.split.excluded_us,
                hour.up,
                hour.total,
            )
            for key, hours in measured.items()
            for n, hour in enumerate(hours)
            if hour.split.range_us or hour.total
        ],
    )


def chunks(keys: Iterable[MonitorKey]) -> list[list[MonitorKey]]:
    """Returns the monitors of a shard in bounded parts, one transaction each."""
    order = sorted(keys)
    return [order[n : n + MONITORS_AT_ONCE] for n in range(0, len(order), MONITORS_AT_ONCE)]
