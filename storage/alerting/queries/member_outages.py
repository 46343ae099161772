"""The members that services are made of, with the outages they are in and who told of each."""

from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rules.paging_delegation import DELIVERED_WITHIN_US
from ..rules.suppression import SuppressionReason

# A page stands as long as somebody heard of it, or may yet: not where all of it was given up, nor
# where it has been on its way for longer than the page of a service may be.
_MEMBERS = """
select k.org, k.service, m.id, m.name, r.region, s.since, o.id, coalesce(o.why, ''),
  o.suppressed_by, o.announced_at is not null, o.service,
  o.announced_at is not null and o.service is null and (i.escalate_at is not null
    or i.acknowledged_at is not null or coalesce(i.status = 'resolved', false)
    or exists (select from notification_threads c
      where c.org = o.org and c.thread = coalesce(i.uid, o.uid))
    and (p.many = 0 or p.alive))
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
    }
)


class MemberOutage(msgspec.Struct, frozen=True):
    """A member, and with `outage` the one it is in. `service` is who told of it where that was no
    monitor; `stands`: the monitor's own page does, for somebody."""

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

    def is_silent(self, now: Instant, look_us: int) -> bool:
        """Whether it is down for a cause that is told of elsewhere; one that nobody has looked at
        yet may be, for a moment."""
        if self.is_announced:
            return False
        if self.suppressed_by is None:
            return self.since is not None and now - self.since < look_us
        return self.suppressed_by in _OWN_CAUSES


async def select_member_outages(
    tx: Tx, members: Mapping[ServiceKey, Collection[int]], now: Instant
) -> dict[ServiceKey, list[MemberOutage]]:
    """By service, of the monitors given for each."""
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
