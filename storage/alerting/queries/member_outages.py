"""Query for the members of services with their open outages and notifiers."""

from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rules.paging_delegation import DELIVERED_WITHIN_US
from ..rules.suppression import SuppressionReason

# `stands`: the monitor's own page was delivered or can still be delivered. It does not count if
# all deliveries failed, or if it is pending for longer than a service's page may be.
_MEMBERS = """
select k.org, k.service, m.id, m.name, r.region, s.since, o.id, coalesce(o.why, ''),
  o.suppressed_by, o.announced_at is not null, o.service,
  o.announced_at is not null and o.service is null and (i.escalate_at is not null
    or i.acknowledged_at is not null or coalesce(i.status = 'resolved', false)
    or exists (select from notification_threads c
      where c.org = o.org and c.thread = coalesce(i.uid, o.uid))
    and (p.many = 0 or p.alive)), o.failed_condition
from unnest(%(orgs)s::int[], %(services)s::int[], %(monitors)s::int[]) as k(org, service, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
  join shards r on r.id = m.shard
  left join monitor_states s on s.org = m.org and s.monitor = m.id
  left join lateral (select * from outages u
    where u.org = m.org and u.monitor = m.id and u.ended_at is null limit 1) o on true
  left join incidents i on i.org = o.org and i.id = o.incident
  left join lateral (
    select count(*) as many, bool_or(x.status = 'delivered')
      or bool_or(x.status = 'pending') and min(x.created_at) > at(%(since)s) as alive
    from outbox x join destinations d on d.org = x.org and d.id = x.destination
    where o.announced_at is not null and o.service is null
      and x.org = o.org and x.thread = coalesce(i.uid, o.uid) and d.channel is not null
  ) p on true
order by k.org, k.service, m.id
"""
_OWN_CAUSES = frozenset(
    {
        SuppressionReason.WAITING,
        SuppressionReason.RECHECKING,
        SuppressionReason.DEPENDENCY,
        SuppressionReason.MAINTENANCE,
        SuppressionReason.PAUSED,
        # A mute of the monitor. The outage is rechecked soon after its end.
        SuppressionReason.SILENCED,
    }
)


class MemberOutage(msgspec.Struct, frozen=True):
    """Member of a service with its open `outage`.

    `service` announced the outage, None if the monitor did. `stands`: the monitor's own page
    reached a channel or still can.
    """

    org: int
    owner: int
    monitor: int
    name: str
    region: str
    since: Instant | None
    outage: int | None
    why: str
    suppressed_by: str | None
    is_announced: bool
    service: int | None
    stands: bool
    failed_condition: str | None = None

    def is_silent(self, now: Instant, look_us: int) -> bool:
        """Returns whether the outage is muted, or has a cause that is announced separately.

        An outage that is not processed yet counts as such for `look_us`.
        """
        if self.is_announced:
            return False
        if self.suppressed_by is None:
            return self.since is not None and now - self.since < look_us
        return self.suppressed_by in _OWN_CAUSES


async def select_member_outages(
    tx: Tx, members: Mapping[ServiceKey, Collection[int]], now: Instant
) -> dict[ServiceKey, list[MemberOutage]]:
    """Returns the members of each service among the given monitors."""
    flat = [(org, key, monitor) for (org, key), found in members.items() for monitor in found]
    rows = await tx.structs(
        MemberOutage,
        _MEMBERS,
        orgs=[org for org, _, _ in flat],
        services=[key for _, key, _ in flat],
        monitors=[monitor for _, _, monitor in flat],
        since=Instant(now - DELIVERED_WITHIN_US),
    )
    found: dict[ServiceKey, list[MemberOutage]] = defaultdict(list)
    for row in rows:
        found[ServiceKey((row.org, row.owner))].append(row)
    return dict(found)
