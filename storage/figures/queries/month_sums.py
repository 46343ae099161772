"""Time of monitors in a span, from stored hours, and from results at edges within an hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...core.instant import HOUR, Instant
from ...core.key import MonitorKey, key_arrays
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...results.queries.longest_freshness import select_longest_hold_of
from ...results.rules.repair_range import earliest_repairable
from .availability import NOTHING, _watermarks, add
from .monitor_time import MonitorTime, measure

_HOUR_SUMS: Final = """
select org, monitor, sum(good_us)::bigint, sum(bad_us)::bigint, sum(unknown_us)::bigint,
  sum(excluded_us)::bigint, sum(up)::bigint, sum(total)::bigint
from monitor_hours
  join unnest(%(orgs)s::int[], %(monitors)s::int[], %(ends)s::bigint[]) as k(org, monitor, until_us)
    using (org, monitor)
where hour >= at(%(from_at)s) and hour < at(%(to_at)s) and hour < at(k.until_us)
group by org, monitor
"""
# A former region of a monitor counts until it has rolled up the time of the monitor.
_ROLLED_UP: Final = """
select terms.org, terms.monitor, min(s.rolled_up_through) from (
  select t.org, t.monitor, t.shard, lead(t.from_at, 1, 'infinity') over (
      partition by t.org, t.monitor order by t.from_at) as until_at
    from monitor_terms t
      join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
        on k.org = t.org and k.monitor = t.monitor) terms
  join shards s on s.id = terms.shard
where terms.until_at > s.rolled_up_through
group by terms.org, terms.monitor
"""


@dataclass(frozen=True, slots=True)
class SpanTime:
    """Time of a monitor. `begun` is the start of its first term, `through` the end of its stored
    hours, None before the first. `unmeasured` are rolled-up edges whose results cannot be read.
    """

    measured: MonitorTime
    begun: Instant | None
    through: Instant | None
    unmeasured: Sequence[TimeSpan] = ()


async def select_span_times(
    tx: Tx, types: Mapping[MonitorKey, str], span: TimeSpan, raw_days: int
) -> dict[MonitorKey, SpanTime]:
    """Returns the time of each monitor in the span that its regions have rolled up.

    A part of an hour at an edge is measured from results, and is missing if they may be packed or
    deleted.
    """
    if not types:
        return {}
    marks = await _watermarks(tx, types)
    rows = await tx.rows(_ROLLED_UP, **key_arrays(list(types), "monitors"))
    through = {MonitorKey((org, monitor)): Instant(at) for org, monitor, at in rows}
    first = Instant(span.from_ + (-span.from_) % HOUR)
    last = Instant(span.until - span.until % HOUR)
    rows = await tx.rows(
        _HOUR_SUMS,
        **key_arrays(list(through), "monitors"),
        ends=list(through.values()),
        from_at=first,
        to_at=last,
    )
    found = dict.fromkeys(types, NOTHING)
    for org, monitor, *us, up, total in rows:
        found[MonitorKey((org, monitor))] = MonitorTime(Split(*us), up, total)
    earliest = earliest_repairable(tx.now, raw_days, await select_longest_hold_of(tx, types))
    unmeasured: dict[MonitorKey, list[TimeSpan]] = {key: [] for key in types}
    for from_, until in ((span.from_, first), (last, span.until)):
        if from_ == until:
            continue
        rolled_up = {key: types[key] for key, at in through.items() if until <= at}
        if from_ < earliest:
            for key in rolled_up:
                unmeasured[key].append(TimeSpan(from_, until))
        elif rolled_up:
            for key, measured in (await measure(tx, rolled_up, [from_, until])).items():
                found[key] = add(found[key], measured[0])
    return {
        key: SpanTime(measured, marks.get(key, (None, None))[0], through.get(key), unmeasured[key])
        for key, measured in found.items()
    }
