"""Time line of an incident, newest first, and the state of its notifications."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ....storage.core.instant import Instant
from ....storage.incidents.queries.console_incidents import DeliverySummary, Paged, ToSubscribers
from ....storage.incidents.rows import (
    ASSIGNEE,
    OWN_CHANNELS,
    TICKET,
    IncidentRow,
    PostmortemRow,
    UpdateRow,
)
from ....storage.incidents.rules.incident import IncidentStatus
from ...ui.formatting import Moment, count, duration, moment, number
from .incident_mark import mark_of


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """`who` is empty for events by Leadline. Only members see an event that is not public."""

    at: Instant
    when: Moment
    mark: str
    what: str
    who: str
    text: str
    public: bool
    # Order of events at the same instant. A consequence has the higher rank.
    rank: int


@dataclass(frozen=True, slots=True)
class NotificationItem:
    mark: str
    name: str
    state: str
    note: str


def timeline(
    row: IncidentRow,
    updates: Sequence[UpdateRow],
    pages: Sequence[Paged],
    postmortem: PostmortemRow | None,
    now: Instant,
) -> list[TimelineEvent]:
    events = [_update(row, update, now) for update in updates]
    events += [_page_event(paged, now) for paged in pages]
    if row.acknowledged_at is not None:
        at, who = row.acknowledged_at, row.acknowledged_label
        took = f"{duration(at - row.started_at)} after the start."
        events.append(TimelineEvent(at, moment(at, now), "up", "Acknowledged", who, took, False, 2))
    if postmortem is not None:
        at = postmortem.published_at if postmortem.published else postmortem.created_at
        what = "Postmortem published" if postmortem.published else "Postmortem written"
        who = postmortem.author_label
        events.append(
            TimelineEvent(at, moment(at, now), "pending", what, who, "", postmortem.published, 3)
        )
    return sorted(events, key=lambda event: (event.at, event.rank), reverse=True)


def chosen(events: Sequence[TimelineEvent], show: str) -> list[TimelineEvent]:
    """Returns all events, the public ones, or those that only members see."""
    match show:
        case "public":
            return [event for event in events if event.public]
        case "team":
            return [event for event in events if not event.public]
        case _:
            return list(events)


def _update(row: IncidentRow, update: UpdateRow, now: Instant) -> TimelineEvent:
    if update.seq == 1:
        what = "Opened" if update.status != IncidentStatus.RESOLVED else "Opened as resolved"
    else:
        what = "Note" if update.status is None else update.status.capitalize()
    text = update.body
    if update.withdraws is not None:
        what, text = "Update withdrawn", "Its message is internal now. No subscriber gets it."
    mark = "pending" if update.status is None else mark_of(update.status, row.impact)
    return TimelineEvent(
        update.created_at,
        moment(update.created_at, now),
        mark,
        what,
        update.author_label,
        text,
        update.public,
        0 if update.seq == 1 else 4,
    )


_STEPS: Final = {
    OWN_CHANNELS: "the monitor's channels",
    ASSIGNEE: "the assigned person",
    TICKET: "ticket",
}


def _page_event(paged: Paged, now: Instant) -> TimelineEvent:
    lost = f"Not reached: {', '.join(paged.unreachable)}." if paged.unreachable else ""
    step = _STEPS.get(paged.step, f"step {paged.step}")
    what = f"Paged {', '.join(paged.paged)}" if paged.paged else "No channel could be paged"
    mark = "degraded" if lost or not paged.paged else "pending"
    text = f"{step[:1].upper()}{step[1:]}. {lost}".strip()
    return TimelineEvent(paged.at, moment(paged.at, now), mark, what, "", text, False, 1)


def notification_items(
    deliveries: Sequence[DeliverySummary], now: Instant
) -> list[NotificationItem]:
    """Returns a line per channel and webhook, described by its first undelivered event."""
    return [_notification_item(delivery, now) for delivery in deliveries]


def subscriber_items(pages: Sequence[ToSubscribers]) -> list[NotificationItem]:
    """Returns a line per status page whose subscribers were notified."""
    return [_subscriber_item(page) for page in pages]


def _subscriber_item(page: ToSubscribers) -> NotificationItem:
    name = f"Subscribers of {page.page}"
    parts = [f"{count(page.refused, 'address', 'addresses')} refused." if page.refused else ""]
    parts.append(f"{count(page.dead, 'message')} failed." if page.dead else "")
    note = " ".join(part for part in parts if part)
    if page.pending:
        return NotificationItem(
            "pending", name, f"{number(page.told)} sent, {number(page.pending)} pending", note
        )
    return NotificationItem("down" if page.dead else "up", name, f"{number(page.told)} sent", note)


def _notification_item(delivery: DeliverySummary, now: Instant) -> NotificationItem:
    # A webhook URL can contain a credential, so only its host is shown.
    name = delivery.channel or f"Webhook, {urlsplit(delivery.webhook_url).hostname}"
    undelivered = delivery.pending + delivery.dead
    if not undelivered:
        return NotificationItem("up", name, f"{delivery.delivered} delivered", "")
    waiting = f" {count(undelivered - 1, 'event')} blocked." if undelivered > 1 else ""
    why = f": {delivery.last_error}" if delivery.last_error else ""
    if delivery.first_status == "dead":
        tries = count(delivery.attempts or 0, "attempt", "attempts")
        return NotificationItem("down", name, "delivery failed", f"After {tries}{why}.{waiting}")
    if not delivery.enabled:
        return NotificationItem("paused", name, "off", f"Disabled: not sent.{waiting}")
    rests_us = 0 if delivery.due_at is None else delivery.due_at - now
    again = f"in {duration(rests_us)}" if rests_us > 0 else "soon"
    if not delivery.attempts:
        return NotificationItem(
            "pending", name, "waiting", f"Pending, first attempt {again}.{waiting}"
        )
    tries = count(delivery.attempts, "attempt", "attempts")
    note = (
        f"{tries} failed{why}. Next attempt {again}.{waiting}" if why else f"Being sent.{waiting}"
    )
    return NotificationItem(
        "degraded" if why else "pending", name, "retrying" if why else "sending", note
    )
