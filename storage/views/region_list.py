"""The regions that probing may be asked of, and in which of them something probes just now."""

from collections.abc import Iterable

from ..pools import Tx
from ..tables import presences

_PROBING = frozenset({"all", "worker", "agent"})


async def select_regions(tx: Tx, configured: Iterable[str]) -> list[tuple[str, bool]]:
    """(name, live) of the configured ones and of those that a live process says it is in."""
    live = {
        presence.region
        for presence in await presences.select_live(tx, tx.now)
        if presence.region and _PROBING.intersection(presence.roles)
    }
    return [(name, name in live) for name in sorted({*configured, *live})]
