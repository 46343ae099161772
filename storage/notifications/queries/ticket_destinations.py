"""Ticket destinations: channels that receive tickets in place of people."""

from ...engine.pools import Tx
from ..rules.personal_rules import Urgency, urgency_of

_DESTINATIONS = """
select id from notification_channels
where org = %(org)s and project = %(project)s and takes_tickets and enabled and person is null
order by id
"""


async def select_ticket_destinations(tx: Tx, org: int, project: int, severity: str) -> list[int]:
    """Returns the channels for a ticket. Empty for a page, and without an enabled destination.

    Args:
        severity: impact of the incident or notification.
    """
    if urgency_of(severity) is Urgency.PAGE:
        return []
    return [key for (key,) in await tx.rows(_DESTINATIONS, org=org, project=project)]
