"""Repair of sealed figures after a late result."""

from ...core.instant import DAY, HOUR, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...figures import tables as figures
from ...figures.rows import DueRepair
from ...figures.transactions import _put_hours
from ...monitors.tables import compositions
from ..tables import service_revisions as declarations
from ..tables import services
from .seal_services import restate_services


async def restate(tx: Tx, item: DueRepair) -> None:
    """Recomputes all levels of the figures of a range in this transaction.

    Includes the composites and services that the monitor was part of in the hours of the range.

    The locks exclude a roll-up in progress: its written hours are recomputed, and later ones use
    all present results. Other repairs within the same hours are deleted, because this one covers
    them; after a long interruption they are many.
    """
    key = MonitorKey((item.org, item.monitor))
    start = Instant(item.from_at - item.from_at % HOUR)
    whole = Instant(item.to_at + (-item.to_at) % HOUR)
    above = await compositions.select_above(tx, item.org, [item.monitor], TimeSpan(start, whole))
    part = [monitor for _, monitor in (key, *above)]
    told = await services.lock_services(tx, await declarations.select_declaring(tx, item.org, part))
    types = await figures.lock_types(tx, sorted([key, *above]))
    await figures.delete_covered_repairs(tx, key, start, whole)
    by_figured: dict[Instant, dict[MonitorKey, str]] = {}
    for one, figured in (await figures.select_figured_of(tx, list(types), start)).items():
        by_figured.setdefault(figured, {})[one] = types[one]
    for figured, group in by_figured.items():
        end = min(whole, figured)
        if start < end:
            await _restate(tx, group, start, end, figured)
    await restate_services(tx, told, TimeSpan(start, whole))
    await figures.delete_repair(tx, item.org, item.id)


async def _restate(
    tx: Tx, types: dict[MonitorKey, str], start: Instant, end: Instant, figured: Instant
) -> None:
    await _put_hours(tx, types, start, end)
    day = Instant(start - start % DAY)
    while Instant(day + DAY) <= figured and day < end:
        await figures.put_days(tx, list(types), day)
        day = Instant(day + DAY)
