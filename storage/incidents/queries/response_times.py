"""Times to acknowledge and to resolve the incidents of a service that started in a range."""

from typing import Final

import msgspec

from ...core.instant import DAY
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx

RANGE_MOST_US: Final = 366 * DAY
# A service with more is not computed, because its screen must answer in time. A term is the time of
# a member in consecutive revisions.
REVISIONS_MOST: Final = 1_000
TERMS_MOST: Final = 2_000
INCIDENTS_MOST: Final = 20_000
# Incidents of the service, and of monitors that were its members at the start of the incident. An
# alert of a storm is answered with the alert whose page covered it.
_SELECT: Final = """
with revisions as (
  select r.monitors, r.governs_from,
    coalesce(lead(r.governs_from) over (order by r.revision), 'infinity') as until
  from service_revisions r where r.org = %(org)s and r.service = %(service)s),
ruling as materialized (
  select monitors, greatest(governs_from, at(%(from_at)s)) as from_at,
    least(until, at(%(to_at)s)) as until
  from revisions
  where governs_from < until and governs_from < at(%(to_at)s) and until > at(%(from_at)s)
  limit %(revisions)s + 1),
terms as materialized (
  select r.monitor, unnest(range_agg(tstzrange(r.from_at, r.until))) as term
  from (select unnest(monitors) as monitor, from_at, until from ruling) r
  group by r.monitor limit %(terms)s + 1),
found as materialized (
  (select i.started_at, i.acknowledged_at, i.resolved_at, i.merged_into is not null as is_covered
  from incidents i
  where i.org = %(org)s and i.service = %(service)s
    and i.started_at >= at(%(from_at)s) and i.started_at < at(%(to_at)s)
  limit %(incidents)s + 1)
  union all
  (select i.started_at, i.acknowledged_at, i.resolved_at, i.merged_into is not null
  from terms t cross join lateral (
    select * from incidents i where i.org = %(org)s and i.monitor = t.monitor
      and i.started_at >= lower(t.term) and i.started_at < upper(t.term)
    limit %(incidents)s + 1) i
  limit %(incidents)s + 1)),
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
  percentile_disc(0.9) within group (order by resolved), max(resolved),
  (select count(*) from ruling), (select count(*) from terms),
  (select count(distinct t.monitor) from terms t where not exists (
    select from monitors m where m.org = %(org)s and m.id = t.monitor))
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
    `deleted_monitors` were members in the range: their incidents are not of the service any more.
    `withheld` is the reason if nothing was computed, else empty.
    """

    incidents: int
    covered: int
    open: int
    acknowledge: ResponseSpread | None
    resolve: ResponseSpread | None
    deleted_monitors: int = 0
    withheld: str = ""

    @property
    def unacknowledged(self) -> int:
        """Returns the number of incidents that nobody has answered, open and resolved ones."""
        answered = 0 if self.acknowledge is None else self.acknowledge.count
        return self.incidents - self.covered - answered


async def select_response_times(tx: Tx, key: ServiceKey, within: TimeSpan) -> ResponseTimes:
    """Returns the times of the incidents that started in [from, to)."""
    org, service = key
    row = await tx.row(
        _SELECT,
        org=org,
        service=service,
        from_at=within.from_,
        to_at=within.until,
        revisions=REVISIONS_MOST,
        terms=TERMS_MOST,
        incidents=INCIDENTS_MOST,
    )
    assert row is not None, "an aggregate has a row"
    revisions, terms, deleted = row[13:]
    if revisions > REVISIONS_MOST or terms > TERMS_MOST:
        return ResponseTimes(0, 0, 0, None, None, withheld="too_many_revisions")
    if row[0] > INCIDENTS_MOST:
        return ResponseTimes(0, 0, 0, None, None, deleted, withheld="too_many_incidents")
    return ResponseTimes(
        row[0], row[1], row[2], _spread(*row[3:8]), _spread(*row[8:13]), deleted_monitors=deleted
    )


def _spread(count: int, *times: int) -> ResponseSpread | None:
    return ResponseSpread(count, *times) if count else None
