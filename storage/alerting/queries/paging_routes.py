"""Current paging routes of services: the escalation policy, or else the on-call schedule."""

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx
from ...oncall.queries.oncall_schedules import select_channels_on_call
from ..rules.paging_delegation import RouteState

_KEYS = "unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)"
# As in paging, an escalation policy takes precedence over a schedule.
_NAMED = f"""
with recursive used as (
  select s.org, s.id, s.escalation_policy as policy from {_KEYS}
    join services s on s.org = k.org and s.id = k.service
  where s.escalation_policy is not null
  union
  select u.org, u.id, t.nested from used u
    join escalation_targets t on t.org = u.org and t.policy = u.policy and t.nested is not null
)
select u.org, u.id, t.channel, t.schedule from used u
  join escalation_targets t on t.org = u.org and t.policy = u.policy and t.nested is null
union all
select s.org, s.id, null, s.oncall_schedule from {_KEYS}
  join services s on s.org = k.org and s.id = k.service
where s.escalation_policy is null and s.oncall_schedule is not null
"""
_ROUTED = f"""
select s.org, s.id from {_KEYS} join services s on s.org = k.org and s.id = k.service
where s.escalation_policy is not null or s.oncall_schedule is not null
"""
_ENABLED = """
select id from notification_channels
where org = %(org)s and id = any(%(channels)s::int[]) and enabled
"""


class _Named(msgspec.Struct, frozen=True):
    org: int
    service: int
    channel: int | None
    schedule: int | None


async def select_reach(
    tx: Tx, services: Collection[ServiceKey], now: Instant
) -> dict[ServiceKey, RouteState]:
    """Returns the route state of each service, from all steps of its escalation policy."""
    those = key_arrays(services, "services")
    routed = {(org, service) for org, service in await tx.rows(_ROUTED, **those)}
    named: dict[int, list[_Named]] = defaultdict(list)
    if routed:
        for row in await tx.structs(_Named, _NAMED, **those):
            named[row.org].append(row)
    found: dict[ServiceKey, RouteState] = dict.fromkeys(services, RouteState.UNNAMED)
    found |= dict.fromkeys(routed, RouteState.NOBODY)
    for org, rows in named.items():
        found |= await _of_organization(tx, org, rows, now)
    return found


async def _of_organization(
    tx: Tx, org: int, rows: Sequence[_Named], now: Instant
) -> dict[ServiceKey, RouteState]:
    schedules = {row.schedule for row in rows if row.schedule is not None}
    holding = await select_channels_on_call(tx, org, schedules, now)
    channels: dict[ServiceKey, set[int]] = defaultdict(set)
    for row in rows:
        channel = row.channel if row.schedule is None else holding.get(row.schedule)
        if channel is not None:
            channels[ServiceKey((org, row.service))].add(channel)
    everybody = sorted(set().union(*channels.values()))
    enabled = {row[0] for row in await tx.rows(_ENABLED, org=org, channels=everybody)}
    return {key: _reach(mine, enabled) for key, mine in channels.items()}


def _reach(channels: set[int], enabled: set[int]) -> RouteState:
    return RouteState.SOMEBODY if channels & enabled else RouteState.DISABLED
