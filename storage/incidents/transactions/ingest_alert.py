"""Opens or resolves the incident of an external alert, as the principal of the token.

The first matching route of the project gives the incident its service or escalation policy.
"""

from dataclasses import replace
from typing import Final
from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit
from ...accounts.transactions.authorize_tenant_write import demand_held_project
from ...engine.pools import Tx
from ...mutes.rules.label_matcher import BadMatcher, parse_matchers
from ..queries.alert_routes import select_routes_of
from ..rows import AlertRouteRow
from ..rules.alert_route import first_match
from ..rules.alert_storm import GATHER_US
from ..rules.alertmanager_alert import Alert, AlertAction, decide_action
from ..rules.incident import IncidentSource, IncidentStatus
from ..tables import incidents
from .edit_incidents import target_of_new
from .write_incident import AlreadyOpen, IncidentEntry, Opening, open_incident, write_entry

EDIT: Final = Permission(Need.EDITOR)


async def ingest_alert(
    tx: Tx, principal: Principal, project: UUID, alert: Alert, *, is_one_of_many: bool = False
) -> AlertAction:
    """Applies the alert and returns the action.

    The page of `is_one_of_many` waits for GATHER_US, so that it has the number of the others.

    Returns `IGNORED` if a concurrent transaction has opened the incident.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_held_project(tx, principal, EDIT, project)
    route = await _route(tx, home, alert) if alert.firing else None
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
            opening = _opening(home, principal, alert, route)
            if is_one_of_many and opening.service is not None:
                opening = replace(opening, page_after_us=GATHER_US)
            opened = await open_incident(tx, opening)
        except AlreadyOpen:
            return AlertAction.IGNORED
        await audit(tx, principal, home.org, "incident.create", target_of_new(opened))
    return what


async def _route(tx: Tx, home: ProjectRow, alert: Alert) -> AlertRouteRow | None:
    """Returns the route that decides about an alert, None for an unrouted one."""
    rows = await select_routes_of(tx, home.org, home.id)
    try:
        found = first_match([parse_matchers(row.matchers) for row in rows], alert.labels)
    except BadMatcher:
        # Stored by another version. The alert is unrouted, which its incident shows.
        return None
    return None if found is None else rows[found]


def _opening(
    home: ProjectRow, principal: Principal, alert: Alert, route: AlertRouteRow | None
) -> Opening:
    return Opening(
        org=home.org,
        project=home.id,
        monitor=None,
        service=None if route is None else route.service,
        escalation_policy=None if route is None else route.pages_by,
        labels=alert.labels,
        title=alert.title,
        status=IncidentStatus.INVESTIGATING,
        impact=alert.impact,
        source=IncidentSource.API,
        body=alert.body,
        started_at=alert.started_at,
        author=principal,
        external_key=alert.key,
    )
