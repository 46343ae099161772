"""Reads of channel uses."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx

_NAMES_CHANNEL = """
select exists (select from escalation_targets where org = %(org)s and channel = %(key)s)
"""


async def names_channel(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether a step of an escalation policy pages the channel."""
    found: bool = await tx.value(_NAMES_CHANNEL, org=org, key=channel)
    return found


_HAS_PARTICIPANT = """
select exists (select from oncall_participants where org = %(org)s and channel = %(channel)s)
"""


async def takes_part(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether the channel is a participant of an on-call schedule."""
    found: bool = await tx.value(_HAS_PARTICIPANT, org=org, channel=channel)
    return found


_HAS_COMING = """
select exists (select from oncall_overrides
  where org = %(org)s and channel = %(channel)s and ends_at > at(%(now)s))
"""


async def is_coming_for(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether a current or future override puts the channel on call."""
    found: bool = await tx.value(_HAS_COMING, org=org, channel=channel, now=tx.now)
    return found


# On-call schedules that put a channel on call, the policies of each step, and those whose steps
# reach the channel through a schedule.
_USES = """
with on_call as (
  select p.channel, p.schedule from oncall_participants p where p.org = %(org)s
  union
  select v.channel, v.schedule from oncall_overrides v
  where v.org = %(org)s and v.ends_at > at(%(now)s)
), named as (
  select distinct t.channel, t.policy from escalation_targets t
  where t.org = %(org)s and t.channel is not null
), reached as (
  select channel, policy from named
  union
  select o.channel, t.policy from on_call o
    join escalation_targets t on t.org = %(org)s and t.schedule = o.schedule
), uses as (
  select a.channel, 'monitor' as kind, m.uid, m.name from monitor_channels a
    join monitors m on m.org = a.org and m.id = a.monitor
  where a.org = %(org)s
  union all
  select n.channel, 'policy', p.uid, p.name from named n
    join escalation_policies p on p.org = %(org)s and p.id = n.policy
  union all
  select o.channel, 'schedule', s.uid, s.name from on_call o
    join oncall_schedules s on s.org = %(org)s and s.id = o.schedule
  union all
  select r.channel, 'service', s.uid, s.name from reached r
    join services s on s.org = %(org)s and s.escalation_policy = r.policy
  union all
  select o.channel, 'service', s.uid, s.name from on_call o
    join services s on s.org = %(org)s and s.oncall_schedule = o.schedule
    and s.escalation_policy is null
)
"""
_COUNTS = f"""
{_USES}
select u.channel, u.kind, count(*) from uses u
  join notification_channels c on c.org = %(org)s and c.id = u.channel
where c.project = %(project)s group by u.channel, u.kind
"""
_NAMES = f"""
{_USES}, numbered as (
  select u.*, row_number() over (partition by u.kind order by lower(u.name), u.uid) as place,
    count(*) over (partition by u.kind) as many
  from uses u where u.channel = %(channel)s
)
select kind, uid, name, many from numbered where place <= %(most)s order by kind, place
"""


class ChannelUseCount(msgspec.Struct, frozen=True):
    """How many objects of a kind use a channel: monitor, policy, schedule or service."""

    channel: int
    kind: str
    many: int


class ChannelUse(msgspec.Struct, frozen=True):
    """An object that uses a channel, and how many of its kind do.

    A service uses the channels that its pages reach, also through a schedule of its policy.
    """

    kind: str
    uid: UUID
    name: str
    many: int


async def count_uses(tx: Tx, org: int, project: int) -> list[ChannelUseCount]:
    """Returns the uses of all channels of a project. A channel without uses is absent."""
    return await tx.structs(ChannelUseCount, _COUNTS, org=org, project=project, now=tx.now)


async def select_uses(tx: Tx, org: int, channel: int, most: int) -> list[ChannelUse]:
    """Returns the objects that use a channel by kind and name, at most `most` of each kind."""
    return await tx.structs(ChannelUse, _NAMES, org=org, channel=channel, most=most, now=tx.now)
