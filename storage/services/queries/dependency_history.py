"""Past dependencies between services, direct and indirect."""

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.service_dependency import DependencyTerm

_UPSTREAMS = """
with recursive above(service) as (
  select t.upstream from service_dependency_terms t
  where t.org = %(org)s and t.service = %(service)s
    and t.from_at <= at(%(at)s) and t.until_at > at(%(at)s)
  union
  select t.upstream from above a
    join service_dependency_terms t on t.org = %(org)s and t.service = a.service
      and t.from_at <= at(%(at)s) and t.until_at > at(%(at)s))
select service from above
"""
# All services that depended on it at any instant of the range; the caller evaluates the terms.
_BELOW = """
with recursive below(service) as (
  select %(service)s::int
  union
  select t.service from below b
    join service_dependency_terms t on t.org = %(org)s and t.upstream = b.service
      and t.from_at < at(%(until_at)s) and t.until_at > at(%(from_at)s))
select t.service, t.upstream, t.from_at, t.until_at
from below b join service_dependency_terms t on t.org = %(org)s and t.upstream = b.service
  and t.from_at < at(%(until_at)s) and t.until_at > at(%(from_at)s)
"""


async def select_upstreams_at(tx: Tx, service: ServiceKey, instant: Instant) -> set[int]:
    """Returns all upstreams of a service at an instant, without the service itself."""
    rows = await tx.rows(_UPSTREAMS, org=service[0], service=service[1], at=instant)
    return {upstream for (upstream,) in rows}


async def select_terms_below(tx: Tx, service: ServiceKey, within: TimeSpan) -> list[DependencyTerm]:
    """Returns the terms of all dependents of a service that overlap a range."""
    rows = await tx.rows(
        _BELOW,
        org=service[0],
        service=service[1],
        from_at=within.from_,
        until_at=within.until,
    )
    return [
        DependencyTerm(one, upstream, TimeSpan(from_, until))
        for one, upstream, from_, until in rows
    ]
