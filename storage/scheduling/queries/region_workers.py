"""Presence of processes in a region that run checks, or tests of checks before they are saved."""

from collections.abc import Collection

from ....probes.check.result import UnknownReason
from ....probes.jobs.agent_protocol import CHECK_TEST, LIVE_SECONDS, Generation
from ...engine.pools import Tx

_PROBED = """
select exists (select from presences where not ended
  and through_at > at(%(now)s) - interval '15 seconds' and roles && '{all,worker}'
  and %(region)s = any(regions))
"""

# Null without a live agent.
_TESTS = f"""
select bool_or('{CHECK_TEST}' = any(workflow_kinds) and carrier >= {max(Generation)}
  and %(needed)s::text[] <@ workflow_kinds)
from agents where region = %(region)s
  and last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
"""


async def has_worker(tx: Tx, region: str) -> bool:
    """Returns whether a server process probes in the region. Agents do not count."""
    found: bool = await tx.value(_PROBED, region=region, now=tx.now)
    return found


async def missing_tester(tx: Tx, region: str, needed: Collection[str]) -> UnknownReason | None:
    """Returns why no process of the region can run a test, None if one can.

    `needed` are its capabilities. Server processes have all, live agents those that they declare.
    """
    if await has_worker(tx, region):
        return None
    found: bool | None = await tx.value(_TESTS, region=region, needed=sorted(needed), now=tx.now)
    if found is None:
        return UnknownReason.NO_WORKER
    return None if found else UnknownReason.CARRIER_TOO_OLD
