"""Reads of incident escalations."""

from ...engine.pools import Tx

_CAUSE = """
select why, failed_condition from outages
where org = %(org)s and incident = %(incident)s order by id limit 1
"""


async def select_cause(tx: Tx, org: int, incident: int) -> tuple[str, str | None]:
    """Returns the failure that opened the incident, empty if no outage opened it.

    The second part is its failed condition with the measured value, None without one.
    """
    found = await tx.row(_CAUSE, org=org, incident=incident)
    return ("", None) if found is None else (found[0], found[1])
