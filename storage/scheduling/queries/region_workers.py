"""Presence of processes in a region that run checks, or tests of checks before they are saved."""

from ....probes.jobs.agent_protocol import CAPABILITY, CHECK_TEST, LIVE_SECONDS, Generation
from ...engine.pools import Tx

_PROBED = """
select exists (select from presences where not ended
  and through_at > at(%(now)s) - interval '15 seconds' and roles && '{all,worker}'
  and %(region)s = any(regions))
"""

_TESTS = f"""
select exists (select from agents where region = %(region)s
  and last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
  and '{CHECK_TEST}' = any(workflow_kinds) and carrier >= {max(Generation)}
  and (%(needed)s::text is null or %(needed)s::text = any(workflow_kinds)))
"""


async def has_worker(tx: Tx, region: str) -> bool:
    """Returns whether a server process probes in the region. Agents do not count."""
    found: bool = await tx.value(_PROBED, region=region, now=tx.now)
    return found


async def has_tester(tx: Tx, region: str, type_: str) -> bool:
    """Returns whether a server process, or a live agent that tests this type, is in the region."""
    if await has_worker(tx, region):
        return True
    needed = CAPABILITY.get(type_)
    found: bool = await tx.value(_TESTS, region=region, needed=needed, now=tx.now)
    return found
