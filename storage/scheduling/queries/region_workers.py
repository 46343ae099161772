"""Presence of probing server processes in a region. Agents do not count."""

from ...engine.pools import Tx

_PROBED = """
select exists (select from presences where not ended
  and through_at > at(%(now)s) - interval '15 seconds' and roles && '{all,worker}'
  and %(region)s = any(regions))
"""


async def has_worker(tx: Tx, region: str) -> bool:
    found: bool = await tx.value(_PROBED, region=region, now=tx.now)
    return found
