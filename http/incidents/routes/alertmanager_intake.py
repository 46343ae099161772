"""Alertmanager webhook: firing alerts open incidents, resolved alerts end them.

Alerts are identified by fingerprint. Each alert has its own transaction. After a failure, the retry
of the sender skips the alerts that are already stored. Alerts without an effect cost one shared
query.
"""

import logging
from collections import Counter
from typing import Final

from ....storage.core.instant import Instant
from ....storage.incidents.queries.incidents import select_open_of_alerts
from ....storage.incidents.rules.alertmanager_alert import (
    Alert,
    AlertAction,
    decide_action,
    key_fault,
    read_alert,
)
from ....storage.incidents.transactions.ingest_alert import EDIT, ingest_alert
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_if_given
from ..schemas import AlertmanagerAlert, AlertmanagerPayload, AlertmanagerResult

log = logging.getLogger("leadline.alertmanager_intake")


async def receive_alertmanager(ask: Request) -> AlertmanagerResult:
    """Processes the alerts in their order, so that repeated alerts are processed repeatedly."""
    payload: AlertmanagerPayload = ask.body
    alerts = [
        _alert(f"alerts[{place}]", alert, ask.context.clock())
        for place, alert in enumerate(payload.alerts)
    ]
    keys = list({alert.key for alert in alerts})
    async with ask.context.pool.transaction("read_alert_incidents", read_only=True) as tx:
        since = await select_open_of_alerts(tx, org_of(ask), project_of(ask), keys)
    counts: Counter[AlertAction] = Counter()
    for alert in alerts:
        what = decide_action(alert, since.get(alert.key))
        if what is not AlertAction.IGNORED:
            what = await _take(ask, alert, is_one_of_many=len(alerts) > 1)
            _follow(since, alert, what)
        counts[what] += 1
    if payload.truncated_alerts:
        log.warning(
            "Alertmanager truncated a group of alerts",
            extra={"project": str(ask.ids["projectID"]), "left_out": payload.truncated_alerts},
        )
    return AlertmanagerResult(
        opened=counts[AlertAction.OPENS],
        resolved=counts[AlertAction.RESOLVES],
        ignored=counts[AlertAction.IGNORED],
        truncated=payload.truncated_alerts or 0,
    )


async def _take(ask: Request, alert: Alert, *, is_one_of_many: bool) -> AlertAction:
    async with ask.context.pool.transaction("ingest_alert") as tx:
        project = ask.ids["projectID"]
        what = await ingest_alert(tx, ask.who, project, alert, is_one_of_many=is_one_of_many)
    if what is not AlertAction.IGNORED:
        ask.context.on_told()
    return what


def _follow(since: dict[str, Instant], alert: Alert, what: AlertAction) -> None:
    """Updates the open alerts for later alerts with the same fingerprint."""
    if what is AlertAction.RESOLVES or (what is AlertAction.IGNORED and not alert.firing):
        since.pop(alert.key, None)
    else:
        since[alert.key] = alert.started_at


def _alert(place: str, given: AlertmanagerAlert, now: Instant) -> Alert:
    fault = key_fault(given.fingerprint)
    if fault is not None:
        raise Problem(f"{place}.fingerprint: {fault}")
    return read_alert(
        given.fingerprint,
        given.status == "firing",
        given.labels or {},
        given.annotations or {},
        instant_if_given(f"{place}.startsAt", given.starts_at or None),
        instant_if_given(f"{place}.endsAt", given.ends_at or None),
        now,
    )


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/projects/{projectID}/alerts/alertmanager",
        action=EDIT,
        scope=("project", "projectID"),
        handler=receive_alertmanager,
        summary="Receive Alertmanager alerts: firing opens incidents, resolved closes them.",
        tag="alerts",
        body=AlertmanagerPayload,
        answer=AlertmanagerResult,
    ),
)
