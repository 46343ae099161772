"""Longest freshness that a service gives to results."""

from ...engine.pools import Tx

_LONGEST_HOLD = """
select max(active_multiplier), max(active_floor_us) from service_revisions where org = %(org)s
"""


async def select_longest_hold(tx: Tx, org: int) -> tuple[int, int]:
    """Returns the largest multiplier and floor (µs) of any service; zeros without services."""
    row = await tx.row(_LONGEST_HOLD, org=org)
    return (row[0] or 0, row[1] or 0) if row is not None else (0, 0)
