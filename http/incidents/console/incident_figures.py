"""Figures of an incident: its progress, and the times to the first page and the answer."""

from collections.abc import Sequence
from typing import Final

from ....storage.core.instant import Instant
from ....storage.incidents.queries.console_incidents import Paged
from ....storage.incidents.rows import IncidentRow, UpdateRow
from ....storage.incidents.rules.incident import IncidentStatus
from ...ui.formatting import clock, count, duration, moment

_STATUSES = list(IncidentStatus)


def figures(
    row: IncidentRow, updates: Sequence[UpdateRow], pages: Sequence[Paged], now: Instant
) -> list[tuple[str, str, str]]:
    """Returns (label, figure, note) of each figure."""
    at = _STATUSES.index(IncidentStatus(row.status)) + 1
    step = f"step {at} of {len(_STATUSES)}, {count(len(updates), 'update')}"
    found = [("Status", row.status.capitalize(), step), ("Impact", row.impact.capitalize(), "")]
    first = min((page.at for page in pages if page.paged), default=None)
    if first is not None:
        took = duration(max(first - row.started_at, 0))
        found.append(("Time to page", took, f"first page at {moment(first, now).text}"))
    if row.acknowledged_at is not None:
        took = duration(row.acknowledged_at - row.started_at)
        by = f"by {row.acknowledged_label}, {moment(row.acknowledged_at, now).text}"
        found.append(("Time to acknowledge", took, by))
    if row.assigned_label:
        found.append(("Assigned to", row.assigned_label, ""))
    if row.resolved_at is not None:
        took = duration(row.resolved_at - row.started_at)
        found.append(("Time to resolve", took, f"at {moment(row.resolved_at, now).text}"))
    return found


_WAITS: Final = "for the end of a mute or for the support hours of the service"


def answered(row: IncidentRow, now: Instant) -> str:
    """Returns the text on acknowledgement and on the next escalation step."""
    if row.is_snoozed(now) and row.snoozed_until is not None:
        continues = "; the escalation continues then" if row.escalation_policy is not None else ""
        return f"Snoozed by {row.snoozed_label} until {clock(row.snoozed_until)}{continues}."
    first = ""
    if row.acknowledged_at is not None:
        took = duration(row.acknowledged_at - row.started_at)
        first = f"Acknowledged by {row.acknowledged_label} after {took}"
        stopped = "; escalation stopped" if row.escalation_policy is not None else ""
        if row.ack_expires_at is not None:
            stopped = f"; escalation stopped until {clock(row.ack_expires_at)}"
        if row.is_acknowledged or row.status == IncidentStatus.RESOLVED:
            return f"{first}{stopped}."
        first += ", which has expired. "
    if row.status == IncidentStatus.RESOLVED:
        return "Not acknowledged."
    if row.merged_number is not None:
        return f"{first}Paged together with INC-{row.merged_number}, in a storm of alerts."
    if row.escalate_at is None:
        climbed = row.escalation_policy is not None and row.escalation_step > 0
        ladder = " Escalation finished." if climbed else ""
        return f"{first.rstrip() or 'Not acknowledged.'}{ladder}"
    if row.is_postponed:
        return f"{first or 'Not acknowledged. '}The next escalation step waits: {_WAITS}."
    if row.escalate_at <= now:
        return f"{first or 'Not acknowledged. '}The next escalation step is due now."
    taken = f"{count(row.escalation_step, 'step')} done, the next" if row.escalation_step else ""
    return (
        f"{first or 'Not acknowledged. '}Escalation: {taken or 'the first step'} is due in "
        f"{duration(row.escalate_at - now)}, at {clock(row.escalate_at)}."
    )
