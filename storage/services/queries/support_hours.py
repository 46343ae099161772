"""Reads of support hours."""

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.support_hours import opens_at

_OF_SERVICE = """
select support_zone, support_hours from services where org = %(org)s and id = %(service)s
"""


async def support_opens_at(tx: Tx, org: int, service: int | None) -> Instant | None:
    """Returns when the support hours of a service begin, None if nothing waits for them now."""
    if service is None:
        return None
    row = await tx.row(_OF_SERVICE, org=org, service=service)
    return None if row is None else opens_at(row[0], row[1], tx.now)
