"""Opens or resolves the incident of an external alert, as the principal of the token."""

from typing import Final
from uuid import UUID

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rules.alertmanager_alert import Alert, AlertAction, decide_action
from ..rules.incident import IncidentSource, IncidentStatus
from ..tables import incidents
from .edit_incidents import target_of_new
from .write_incident import AlreadyOpen, IncidentEntry, Opening, open_incident, write_entry

EDIT: Final = Permission(Need.EDITOR)


async def ingest_alert(tx: Tx, principal: Principal, project: UUID, alert: Alert) -> AlertAction:
    """Applies the alert and returns the action.

    Returns `IGNORED` if a concurrent transaction has opened the incident.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_project(tx, principal, EDIT, project)
    if not await removals.lock_shared_project(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    row = await incidents.lock_open_of_alert(tx, home.org, home.id, alert.key)
    what = decide_action(alert, None if row is None else row.started_at)
    if what is AlertAction.RESOLVES:
        assert row is not None, "only an open incident can be resolved"
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body="", public=None, author=principal
        )
        after, _ = await write_entry(tx, row, entry)
        change = f"incident:{row.uid} {row.status}->{after.status}"
        await audit(tx, principal, home.org, "incident.status", change)
    elif what is AlertAction.OPENS:
        try:
            opened = await open_incident(tx, _opening(home.org, home.id, principal, alert))
        except AlreadyOpen:
            return AlertAction.IGNORED
        await audit(tx, principal, home.org, "incident.create", target_of_new(opened))
    return what


def _opening(org: int, project: int, principal: Principal, alert: Alert) -> Opening:
    return Opening(
        org=org,
        project=project,
        monitor=None,
        title=alert.title,
        status=IncidentStatus.INVESTIGATING,
        impact=alert.impact,
        source=IncidentSource.API,
        body=alert.body,
        started_at=alert.started_at,
        author=principal,
        external_key=alert.key,
    )
