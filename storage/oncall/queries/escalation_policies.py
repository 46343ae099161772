"""Reads of escalation policies."""

from collections.abc import Collection
from uuid import UUID

from ...engine.pools import Tx
from ..rows import EscalationPolicyRow, EscalationTargetRow
from ..tables.escalation_policies import _BY_UID, _COLUMNS, _FROM

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM} where e.org = %(org)s and e.project = %(project)s order by e.id
"""

_TARGETS = """
select t.policy, t.step, t.channel, t.schedule, coalesce(c.uid, s.uid, n.uid),
  coalesce(c.name, s.name, n.name), c.person is not null
from escalation_targets t
  left join notification_channels c on c.org = t.org and c.id = t.channel
  left join oncall_schedules s on s.org = t.org and s.id = t.schedule
  left join escalation_policies n on n.org = t.org and n.id = t.nested
where t.org = %(org)s and t.policy = any(%(policies)s::int[])
order by t.policy, t.step, t.place
"""

_DEFAULT = """
select e.uid from projects p join escalation_policies e on e.org = p.org and e.id = p.default_policy
where p.org = %(org)s and p.id = %(project)s
"""
_UIDS = "select id, uid from escalation_policies where org = %(org)s and id = any(%(ids)s::int[])"


async def select_policy(tx: Tx, uid: UUID) -> EscalationPolicyRow | None:
    return await tx.one(EscalationPolicyRow, _BY_UID, uid=uid)


async def select_policies_of(tx: Tx, org: int, project: int) -> list[EscalationPolicyRow]:
    return await tx.structs(EscalationPolicyRow, _OF_PROJECT, org=org, project=project)


async def select_targets(tx: Tx, org: int, policies: Collection[int]) -> list[EscalationTargetRow]:
    """Returns the targets of the policies, ordered by policy, step and place."""
    return await tx.structs(EscalationTargetRow, _TARGETS, org=org, policies=sorted(policies))


async def select_policy_uids(tx: Tx, org: int, keys: Collection[int]) -> dict[int, UUID]:
    return dict(await tx.rows(_UIDS, org=org, ids=sorted(keys)))


async def select_default_policy_uid(tx: Tx, org: int, project: int) -> UUID | None:
    """Returns the chosen default policy of a project, None without one."""
    uid: UUID | None = await tx.value(_DEFAULT, org=org, project=project)
    return uid
