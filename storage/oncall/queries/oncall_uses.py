"""References to escalation policies and on-call schedules, which prevent their deletion."""

from ...engine.pools import Tx

_POLICY_IS_USED = """
select exists (select from monitors where org = %(org)s and escalation_policy = %(key)s)
  or exists (select from services where org = %(org)s and escalation_policy = %(key)s)
  or exists (select from escalation_targets where org = %(org)s and nested = %(key)s)
  or exists (select from alert_routes where org = %(org)s and policy = %(key)s)
  or exists (select from projects where org = %(org)s and default_policy = %(key)s)
"""
_SCHEDULE_IS_USED = """
select exists (select from escalation_targets where org = %(org)s and schedule = %(key)s)
  or exists (select from services where org = %(org)s and oncall_schedule = %(key)s)
"""


async def is_policy_used(tx: Tx, org: int, policy: int) -> bool:
    """Returns whether a monitor, service, step, route or project refers to the policy."""
    found: bool = await tx.value(_POLICY_IS_USED, org=org, key=policy)
    return found


async def is_schedule_used(tx: Tx, org: int, schedule: int) -> bool:
    """Returns whether an escalation policy or a service refers to the on-call schedule."""
    found: bool = await tx.value(_SCHEDULE_IS_USED, org=org, key=schedule)
    return found
