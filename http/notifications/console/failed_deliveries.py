"""Failed deliveries: event, destination, reason, time and number of blocked events.

The screen covers the installation and belongs to no project.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.notifications.queries.dead_letter_list import (
    DeadLetter,
    count_dead,
    select_dead_letters,
)
from ....storage.notifications.rules.notification import NOTICE_EVENT, Topic
from ....storage.notifications.transactions.replay_dead import REPLAY
from ....storage.status_pages.rules.subscription import CONFIRM_EVENT
from ...ui.form_routes import form_route
from ...ui.form_values import uuid_given, value_of
from ...ui.formatting import Moment, count, moment, number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import outbox as api

PATH: Final = "/admin/dead-letters"
LINES_MOST: Final = 200
_EVENTS: Final = {
    "incident.opened": "Incident opened",
    "incident.updated": "Incident updated",
    "incident.escalated": "Incident escalated",
    "incident.reminder": "Reminder of an incident",
    "incident.resolved": "Incident resolved",
    "monitor.down": "Monitor down",
    "monitor.reminder": "Reminder of a monitor that is down",
    "monitor.recovered": "Monitor recovered",
    NOTICE_EVENT: "Incident on a status page",
    CONFIRM_EVENT: "Subscription confirmation",
}
_REASONS: Final = {
    "lease_lost": "The last attempt has no known result.",
    "decrypt_failed": "Its secrets cannot be decrypted with the configured keys.",
    "bad_secret": "A project secret that it names has no valid value.",
    "invalid_secret": "Its signing secret is not valid. Set another one.",
    "bad_payload": "The event is not readable.",
}


@dataclass(frozen=True, slots=True)
class FailedDeliveryItem:
    uid: UUID
    what: str
    title: str
    # Path of the subject, empty if it has no screen.
    link: str
    where: str
    place: str
    # Empty if the project was deleted.
    place_link: str
    reason: str
    reason_words: str
    tries: str
    told: Moment
    died: Moment
    behind: str


async def render_failed_deliveries(ask: Request) -> Response:
    return await _render(ask)


async def submit_failed_deliveries(ask: Request) -> Response:
    """Calls the API handler of the button."""
    try:
        match value_of(ask, "act"):
            case "replay":
                event = uuid_given(value_of(ask, "event"))
                await api.replay(replace(ask, ids={"eventID": event}))
            case "replay-all":
                await api.replay_all(ask)
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code != "not_found":
            raise
        return await _render(ask, error="The delivery was deleted or is already being sent.")
    return redirect(PATH)


async def _render(ask: Request, *, error: str = "") -> Response:
    async with ask.context.pool.transaction("console_dead_letters", read_only=True) as tx:
        letters = await select_dead_letters(tx, LINES_MOST)
        dead = len(letters) if len(letters) < LINES_MOST else await count_dead(tx)
        now = tx.now
    return page(
        "notifications/console/failed_deliveries.html",
        frame=await outer_frame_of(ask),
        status=400 if error else 200,
        first=_summary(dead),
        dead=dead,
        further=number(dead - len(letters)) if dead > len(letters) else "",
        lines=_lines(letters, now),
        error=error,
        path=PATH,
    )


def _summary(dead: int) -> str:
    if not dead:
        return "No failed deliveries"
    return f"{count(dead, 'delivery', 'deliveries')} failed"


def _lines(letters: Sequence[DeadLetter], now: Instant) -> list[FailedDeliveryItem]:
    return [_item(letter, now) for letter in letters]


def _item(letter: DeadLetter, now: Instant) -> FailedDeliveryItem:
    is_there = letter.project is not None
    is_incident = is_there and letter.topic == Topic.INCIDENT
    return FailedDeliveryItem(
        uid=letter.uid,
        what=_EVENTS.get(letter.event, letter.event),
        title=letter.title or "",
        link=f"/incidents/{letter.stream}" if is_incident else "",
        where=_where(letter),
        place=_place(letter),
        place_link=f"/projects/{letter.project_uid}" if is_there else "",
        reason=letter.last_error,
        reason_words=_REASONS.get(letter.last_error, ""),
        tries=count(letter.attempts, "try", "tries"),
        told=moment(letter.created_at, now),
        died=moment(letter.died_at, now),
        behind=number(letter.behind),
    )


def _where(letter: DeadLetter) -> str:
    if letter.channel_type:
        return f"{letter.channel} ({letter.channel_type})"
    if letter.status_page is not None:
        return f"Subscribers of {letter.status_page}"
    return f"Webhook to {letter.host or 'an unreadable URL'}"


def _place(letter: DeadLetter) -> str:
    if letter.of_no_project:
        return letter.organization
    return f"{letter.project or 'a deleted project'}, {letter.organization}"


_route: Final = partial(form_route, action=REPLAY)

ROUTES: Final = (
    _route("GET", PATH, None, render_failed_deliveries, "The failed deliveries."),
    _route("POST", PATH, None, submit_failed_deliveries, "Retry one failed delivery, or all."),
)
