"""Reads of incident escalations."""

import msgspec

from ...engine.pools import Tx

_CAUSE = """
select o.why, o.failed_condition, m.type
from outages o join monitors m on m.org = o.org and m.id = o.monitor
where o.org = %(org)s and o.incident = %(incident)s order by o.id limit 1
"""


class IncidentCause(msgspec.Struct, frozen=True):
    """Message of the failure that opened an incident, empty if no outage opened it.

    `failed` is its failed condition with the measured value, None without one. `kind` is the type
    of the monitor.
    """

    why: str = ""
    failed: str | None = None
    kind: str = ""


async def select_cause(tx: Tx, org: int, incident: int) -> IncidentCause:
    found = await tx.one(IncidentCause, _CAUSE, org=org, incident=incident)
    return IncidentCause() if found is None else found
