"""Snoozes an incident: its escalation stops for some minutes and then continues."""

from typing import Final
from uuid import UUID

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_row
from ...core.instant import MINUTE, Instant
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ...notifications.transactions.enqueue_notifications import cancel_later_messages
from ..rows import IncidentRow
from ..rules.escalation_pause import snooze_fault
from ..rules.incident import UPDATES_MOST, IncidentStatus, lasted
from ..tables import incidents
from .write_incident import IncidentEntry, release_untold, write_entry

EDIT: Final = Permission(Need.EDITOR)


async def snooze(tx: Tx, principal: Principal, incident: UUID, minutes: int) -> IncidentRow:
    """Stops the escalation for `minutes` from now. A later snooze replaces an earlier one.

    Raises:
        Refused not_found, forbidden, invalid, incident_resolved, update_quota.
    """
    row = demand_row(principal, EDIT, await incidents.lock_incident(tx, incident))
    expect("minutes", snooze_fault(minutes))
    if row.status == IncidentStatus.RESOLVED:
        raise Refused("incident_resolved")
    if row.seq >= UPDATES_MOST:
        raise Refused("update_quota")
    us = minutes * MINUTE
    row = await incidents.snooze_incident(tx, row, Instant(tx.now + us), principal.label)
    body = f"Snoozed for {lasted(us)}. The escalation stops until then."
    entry = IncidentEntry(status=None, body=body, public=False, author=principal)
    row, _ = await write_entry(tx, row, entry)
    await release_untold(tx, row)
    await cancel_later_messages(tx, row.org, row.uid)
    await audit(tx, principal, row.org, "incident.snooze", f"incident:{row.uid} minutes={minutes}")
    return row
