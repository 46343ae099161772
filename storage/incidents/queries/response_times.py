"""Times to acknowledge and to resolve the incidents of a service that started in a range."""

from typing import Final

import msgspec

from ...core.instant import DAY
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx

RANGE_MOST_US: Final = 366 * DAY
# Incidents of the service, and of monitors that were its members at the start of the incident. An
# alert of a storm is answered with the alert whose page covered it.
_SELECT: Final = """
with terms as (
  select unnest(r.monitors) as monitor, r.governs_from,
    coalesce(lead(r.governs_from) over (order by r.revision), 'infinity') as until
  from service_revisions r where r.org = %(org)s and r.service = %(service)s),
found as (
  select i.started_at, i.acknowledged_at, i.resolved_at, i.merged_into is not null as is_covered
  from incidents i
  where i.org = %(org)s and i.service = %(service)s
    and i.started_at >= at(%(from_at)s) and i.started_at < at(%(to_at)s)
  union all
  select i.started_at, i.acknowledged_at, i.resolved_at, i.merged_into is not null
  from (select distinct monitor, governs_from, until from terms) t
    join incidents i on i.org = %(org)s and i.monitor = t.monitor
      and i.started_at >= t.governs_from and i.started_at < t.until
  where i.started_at >= at(%(from_at)s) and i.started_at < at(%(to_at)s)),
times as (
  select is_covered and acknowledged_at is null as is_answered_with_another,
    resolved_at is null as is_open,
    case when acknowledged_at is not null then
      (greatest(extract(epoch from acknowledged_at - started_at), 0) * 1000000)::bigint
    end as answered,
    case when resolved_at is not null then
      (greatest(extract(epoch from resolved_at - started_at), 0) * 1000000)::bigint
    end as resolved
  from found)
select count(*), count(*) filter (where is_answered_with_another),
  count(*) filter (where is_open),
  count(answered), round(avg(answered))::bigint,
  percentile_disc(0.5) within group (order by answered),
  percentile_disc(0.9) within group (order by answered), max(answered),
  count(resolved), round(avg(resolved))::bigint,
  percentile_disc(0.5) within group (order by resolved),
  percentile_disc(0.9) within group (order by resolved), max(resolved)
from times
"""


class ResponseSpread(msgspec.Struct, frozen=True):
    """Times of `count` incidents, in µs. A percentile is a time of one of them."""

    count: int
    mean_us: int
    median_us: int
    p90_us: int
    longest_us: int


class ResponseTimes(msgspec.Struct, frozen=True):
    """Numbers of incidents, and their times. A spread is None without an incident that has one.

    `covered` are not acknowledged themselves: the page of another alert of the storm named them.
    """

    incidents: int
    covered: int
    open: int
    acknowledge: ResponseSpread | None
    resolve: ResponseSpread | None

    @property
    def unacknowledged(self) -> int:
        """Returns the number of incidents that nobody has answered, open and resolved ones."""
        answered = 0 if self.acknowledge is None else self.acknowledge.count
        return self.incidents - self.covered - answered


async def select_response_times(tx: Tx, key: ServiceKey, within: TimeSpan) -> ResponseTimes:
    """Returns the times of the incidents that started in [from, to)."""
    org, service = key
    row = await tx.row(_SELECT, org=org, service=service, from_at=within.from_, to_at=within.until)
    assert row is not None, "an aggregate has a row"
    return ResponseTimes(row[0], row[1], row[2], _spread(*row[3:8]), _spread(*row[8:13]))


def _spread(count: int, *times: int) -> ResponseSpread | None:
    return ResponseSpread(count, *times) if count else None
