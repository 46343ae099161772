"""Presence of processes in a region that run checks, or tests of checks before they are saved."""

from ....probes.check.result import UnknownReason
from ....probes.jobs.agent_protocol import CAPABILITY, CHECK_TEST, LIVE_SECONDS, Generation
from ...engine.pools import Tx

_PROBED = """
select exists (select from presences where not ended
  and through_at > at(%(now)s) - interval '15 seconds' and roles && '{all,worker}'
  and %(region)s = any(regions))
"""

# Null without a live agent.
_TESTS = f"""
select bool_or('{CHECK_TEST}' = any(workflow_kinds) and carrier >= {max(Generation)}
  and (%(needed)s::text is null or %(needed)s::text = any(workflow_kinds)))
from agents where region = %(region)s
  and last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
"""


async def has_worker(tx: Tx, region: str) -> bool:
    """Returns whether a server process probes in the region. Agents do not count."""
    found: bool = await tx.value(_PROBED, region=region, now=tx.now)
    return found


async def missing_tester(tx: Tx, region: str, type_: str) -> UnknownReason | None:
    """Returns why no process of the region can test this type, None if one can.

    Server processes test all types, live agents those of which they declare the capability.
    """
    if await has_worker(tx, region):
        return None
    needed = CAPABILITY.get(type_)
    found: bool | None = await tx.value(_TESTS, region=region, needed=needed, now=tx.now)
    if found is None:
        return UnknownReason.NO_WORKER
    return None if found else UnknownReason.CARRIER_TOO_OLD
