"""Reads of oncall uses."""

from ...engine.pools import Tx

_IS_NAMED = """
select exists (select from monitors where org = %(org)s and escalation_policy = %(id)s)
"""

_NAMES_SCHEDULE = """
select exists (select from escalation_targets where org = %(org)s and schedule = %(key)s)
"""


async def is_named_by_monitor(tx: Tx, org: int, policy: int) -> bool:
    found: bool = await tx.value(_IS_NAMED, org=org, id=policy)
    return found


async def names_schedule(tx: Tx, org: int, schedule: int) -> bool:
    found: bool = await tx.value(_NAMES_SCHEDULE, org=org, key=schedule)
    return found


_NAMES_POLICY = """
select exists (select from services where org = %(org)s and escalation_policy = %(key)s)
"""


async def names_policy(tx: Tx, org: int, policy: int) -> bool:
    """Whether any service is paged by the ladder."""
    found: bool = await tx.value(_NAMES_POLICY, org=org, key=policy)
    return found
