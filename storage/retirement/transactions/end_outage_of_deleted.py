"""End of the outage of a deleted monitor, so that no page for it continues."""

from ...alerting.tables import outages
from ...alerting.transactions import tell_certificate, tell_slow
from ...alerting.transactions.notify_outage import notify_end
from ...engine.pools import Tx
from ...incidents.rules.incident import IncidentStatus
from ...incidents.tables import incidents
from ...incidents.transactions.write_incident import IncidentEntry, write_entry
from ...monitors.rows import MonitorRow
from ...objectives.tables import burn_rules
from ...objectives.transactions.notify_burn import notify_unwatched, of_monitor

DELETED_BODY = "The monitor was deleted."


async def end_with_monitor(tx: Tx, row: MonitorRow) -> None:
    """Resolves the incident, or notifies the notified channels if there was no incident.

    It also ends the warnings.

    The caller deletes the monitor afterwards.
    """
    key = row.key
    subject = (await outages.lock_subjects(tx, [key])).get(key)
    outage = (await outages.select_open_outages(tx, [key])).get(key)
    burning = await burn_rules.lock_notified_rules(tx, row.org, monitor=row.id)
    incident = await incidents.lock_open_of_monitor(tx, *key)
    if incident is not None:
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body=DELETED_BODY, public=None, author=None
        )
        await write_entry(tx, incident, entry)
    elif subject and outage and outage.announced_at is not None and outage.mark_notified_alone:
        await notify_end(tx, subject, outage, f"{subject.name[:150]} was deleted")
    if subject is not None:
        await tell_slow.end_of_deleted(tx, subject)
        await tell_certificate.end_of_deleted(tx, subject)
    await notify_unwatched(tx, of_monitor(row), burning)
