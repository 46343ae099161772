"""Time of monitors in a span, from stored hours, and from results at edges within an hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...core.instant import HOUR, Instant
from ...core.key import MonitorKey, key_arrays
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...results.queries.longest_freshness import select_longest_hold_of
from ...results.rules.repair_range import earliest_repairable
from .availability import NOTHING, _figured, _watermarks, add
from .monitor_time import MonitorTime, measure

_HOUR_SUMS: Final = """
select org, monitor, sum(good_us)::bigint, sum(bad_us)::bigint, sum(unknown_us)::bigint,
  sum(excluded_us)::bigint, sum(up)::bigint, sum(total)::bigint
from monitor_hours
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and hour >= at(%(from_at)s) and hour < at(%(to_at)s)
group by org, monitor
"""


@dataclass(frozen=True, slots=True)
class SpanTime:
    """Time of a monitor. `begun` is the start of its first term, `through` the end of its stored
    hours, None before the first.
    """

    measured: MonitorTime
    begun: Instant | None
    through: Instant | None


async def select_span_times(
    tx: Tx, types: Mapping[MonitorKey, str], span: TimeSpan, raw_days: int
) -> dict[MonitorKey, SpanTime]:
    """Returns the time of each monitor in the span that is rolled up.

    A part of an hour at an edge is measured from results, and is missing if they may be deleted.
    """
    if not types:
        return {}
    marks = await _watermarks(tx, types)
    through = min((await _figured(tx, types)).values(), default=None)
    first = Instant(span.from_ + (-span.from_) % HOUR)
    last = Instant(span.until - span.until % HOUR)
    rows = await tx.rows(
        _HOUR_SUMS,
        **key_arrays(list(types), "monitors"),
        from_at=first,
        to_at=min(last, through or last),
    )
    hours = {
        MonitorKey((org, monitor)): MonitorTime(Split(*us), up, total)
        for org, monitor, *us, up, total in rows
    }
    earliest = earliest_repairable(tx.now, raw_days, await select_longest_hold_of(tx, types))
    found = {key: [hours[key]] if key in hours else [] for key in types}
    for from_, until in ((span.from_, first), (last, span.until)):
        if from_ < until and through is not None and earliest <= from_ and until <= through:
            for key, measured in (await measure(tx, types, [from_, until])).items():
                found[key] += measured
    return {
        key: SpanTime(_sum(parts), marks.get(key, (None, None))[0], through)
        for key, parts in found.items()
    }


def _sum(parts: list[MonitorTime]) -> MonitorTime:
    total = NOTHING
    for part in parts:
        total = add(total, part)
    return total
