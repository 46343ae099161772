"""Regions that can be configured, and whether each is live.

A region is live if a present process of the server probes in it, or if an agent of it was in
contact within LIVE_SECONDS.
"""

from collections.abc import Iterable, Mapping

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ...engine.pools import Tx
from ..tables import presences

_PROBING = frozenset({"all", "worker"})

_HEARD = f"""
select distinct region from agents
where last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
"""
_SLUG = "select slug from organizations where id = %(org)s"


async def select_regions(tx: Tx, configured: Iterable[str]) -> list[tuple[str, bool]]:
    """Returns (name, live) of the configured regions and of all live regions, by name."""
    live = {
        region
        for presence in await presences.select_live(tx, tx.now)
        if _PROBING.intersection(presence.roles)
        for region in presence.regions
    }
    live.update(name for (name,) in await tx.rows(_HEARD, now=tx.now))
    return [(name, name in live) for name in sorted({*configured, *live})]


async def select_usable_regions(
    tx: Tx, org: int, configured: frozenset[str], reserved: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Returns the regions that monitors of the organization can use.

    `reserved` limits a region to the organizations with the slugs given.
    """
    if not reserved:
        return configured
    slug = await tx.value(_SLUG, org=org)
    return frozenset(name for name in configured if slug in reserved.get(name, {slug}))
