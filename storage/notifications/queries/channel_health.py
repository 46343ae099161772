"""Health of channels: results of the latest deliveries."""

from typing import Final

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

# Number of the organization's latest messages that are evaluated, for all channels together.
LOOKED_AT: Final = 5_000

_HEALTH = """
select c.id, c.name, c.type, c.enabled, coalesce(d.failures, 0), l.delivered_at
from notification_channels c
  left join destinations d on d.org = c.org and d.channel = c.id
  left join (
    select o.destination, max(o.updated_at) as delivered_at
    from (select destination, status, updated_at from outbox
          where org = %(org)s order by id desc limit %(most)s) o
    where o.status = 'delivered' group by o.destination
  ) l on l.destination = d.id
where c.org = %(org)s and c.project = %(project)s and c.contact_method is null
"""
_BY_NAME = "order by lower(c.name), c.id"
_REACH = f"""
{_HEALTH} and (
  exists (select from oncall_participants p where p.org = c.org and p.channel = c.id)
  or exists (select from escalation_targets t where t.org = c.org and t.channel = c.id)
  or exists (select from oncall_overrides v
    where v.org = c.org and v.channel = c.id and v.ends_at > at(%(now)s)))
{_BY_NAME}
"""
_OF_PROJECT = f"{_HEALTH} and c.person is null {_BY_NAME}"


class ChannelHealth(msgspec.Struct, frozen=True):
    """Health of a channel.

    `failures` counts consecutive failures since the last delivery. `delivered_at` is None if the
    evaluated messages contain no delivery.
    """

    channel: int
    name: str
    type: str
    enabled: bool
    failures: int
    delivered_at: Instant | None


async def select_reach(tx: Tx, org: int, project: int) -> list[ChannelHealth]:
    """Returns the project's channels in schedules, overrides or escalation policies, by name."""
    return await tx.structs(
        ChannelHealth, _REACH, org=org, project=project, most=LOOKED_AT, now=tx.now
    )


async def select_health(tx: Tx, org: int, project: int) -> list[ChannelHealth]:
    """Returns the health of all channels of a project, by name."""
    return await tx.structs(ChannelHealth, _OF_PROJECT, org=org, project=project, most=LOOKED_AT)
