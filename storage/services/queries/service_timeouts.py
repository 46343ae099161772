"""Timeouts of the members of services, which bound the lag of their watermarks."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx
from ..rules.epoch import governs
from .service_revisions import select_revisions

_TIMEOUTS = """
select m.org, m.id, m.timeout_seconds from monitors m
  join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
    on k.org = m.org and k.monitor = m.id
"""


async def select_longest_timeouts(
    tx: Tx, services: Sequence[ServiceKey], now: Instant
) -> dict[ServiceKey, int]:
    """Returns the longest timeout of the governing revision's members in seconds, or 0."""
    if not services:
        return {}
    revisions = await select_revisions(tx, services)
    members: dict[ServiceKey, tuple[int, ...]] = {}
    for key in services:
        _, governing = governs(revisions[key], now)
        members[key] = () if governing is None else governing.sli
    wanted = sorted({(org, monitor) for (org, _), sli in members.items() for monitor in sli})
    rows = await tx.rows(_TIMEOUTS, **key_arrays(wanted, "monitors"))
    seconds = {(org, monitor): longest for org, monitor, longest in rows}
    return {
        ServiceKey((org, service)): max((seconds.get((org, m), 0) for m in sli), default=0)
        for (org, service), sli in members.items()
    }
