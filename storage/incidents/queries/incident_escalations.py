"""Reads of incident escalations."""

from ...engine.pools import Tx

_WHY = """
select why from outages where org = %(org)s and incident = %(incident)s order by id limit 1
"""


async def select_why(tx: Tx, org: int, incident: int) -> str:
    """Returns the failure that opened the incident, empty if no outage opened it."""
    return await tx.value(_WHY, org=org, incident=incident) or ""
