"""Payloads of incident events: the JSON body for webhooks and the recovery notification."""

from collections.abc import Sequence
from typing import Any, Final

from ...core.instant import Instant, to_text
from ...notifications.rules.notification import Notification
from ..rows import IncidentRow, UpdateRow
from ..rules.incident import IncidentStatus, is_undoable, lasted, one_line, undo_until

OPENED: Final = "incident.opened"
UPDATED: Final = "incident.updated"
RESOLVED: Final = "incident.resolved"


def event_of(update: UpdateRow) -> str:
    """Returns the event of an update. An incident that starts resolved is only opened."""
    if update.seq == 1:
        return OPENED
    return RESOLVED if update.status == IncidentStatus.RESOLVED else UPDATED


def payload(
    incident: IncidentRow, update: UpdateRow, conditions: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the event with the incident after the update. `seq` orders and deduplicates.

    `conditions` are the failed conditions with their measured values, absent if there are none.
    """
    return {
        **({"conditions": list(conditions)} if conditions else {}),
        "event": event_of(update),
        "seq": update.seq,
        "incident": incident_body(incident),
        "update": update_body(incident, update),
    }


def incident_body(row: IncidentRow) -> dict[str, Any]:
    """Returns the body as the API returns it, without fields that are None."""
    body = {
        "id": str(row.uid),
        "project_id": str(row.project_uid),
        "monitor_id": _text(row.monitor_uid),
        "service_id": _text(row.service_uid),
        "external_key": row.external_key,
        "number": row.number,
        "seq": row.seq,
        "title": row.title,
        "status": row.status,
        "impact": row.impact,
        "source": row.source,
        "started_at": to_text(row.started_at),
        "resolved_at": _instant(row.resolved_at),
        "acknowledged_at": _instant(row.acknowledged_at),
        "acknowledged_by": _text(row.acknowledged_by),
        "acknowledged_by_name": row.acknowledged_label or None,
        "ack_expires_at": _instant(row.ack_expires_at),
        "ack_expired_at": _instant(row.ack_expired_at),
        "snoozed_until": None if row.resolved_at else _instant(row.snoozed_until),
        "snoozed_by_name": None if row.resolved_at else row.snoozed_label or None,
        "assigned_to_type": row.assigned_kind or None,
        "assigned_to_name": row.assigned_label or None,
        "paged_with": row.merged_number,
        "runbook_url": row.runbook_url or None,
        "self_condition": row.self_condition or None,
        "unrouted": row.is_unrouted or None,
        "escalation_step": row.escalation_step,
        "last_escalated_at": _instant(row.last_escalated_at),
        "created_at": to_text(row.created_at),
        "updated_at": to_text(row.updated_at),
    }
    return {name: value for name, value in body.items() if value is not None}


def update_body(incident: IncidentRow, row: UpdateRow) -> dict[str, Any]:
    body = {
        "id": str(row.uid),
        "incident_id": str(incident.uid),
        "seq": row.seq,
        "status": row.status,
        "body": row.body,
        "public": row.public,
        "author": row.author_label or None,
        "created_at": to_text(row.created_at),
        "withdraws": row.withdraws,
        "undo_until": _undo_until(row),
    }
    return {name: value for name, value in body.items() if value is not None}


def _undo_until(row: UpdateRow) -> str | None:
    can = is_undoable(row.seq, row.body, row.author_label, public=row.public)
    return to_text(undo_until(row.created_at)) if can else None


def recovery_page(incident: IncidentRow, update: UpdateRow) -> Notification:
    """Returns the recovery notification for all channels that were paged."""
    return Notification(
        event=RESOLVED,
        status="recovered",
        severity=incident.impact,
        title=one_line(f"Resolved: {incident.title}"),
        lines=tuple(line for line in (_lasted(incident), update.body) if line),
        why="",
        since=incident.started_at,
        path=path_of(incident),
        runbook_url=incident.runbook_url,
    )


def _lasted(incident: IncidentRow) -> str:
    over_at = incident.resolved_at
    return "" if over_at is None else f"Duration: {lasted(over_at - incident.started_at)}."


def path_of(incident: IncidentRow) -> str:
    """Returns the path of the incident's screen in the console."""
    return f"/incidents/{incident.uid}"


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)


def _instant(value: Instant | None) -> str | None:
    return None if value is None else to_text(value)
