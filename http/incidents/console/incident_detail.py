"""Incident screen: status, duration and cause, actions, and the time line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.changes.queries.preceding_changes import Preceding, select_preceding
from ....storage.core.instant import Instant
from ....storage.core.key import ServiceKey
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.console_incidents import (
    DeliverySummary,
    Paged,
    ToSubscribers,
    count_waiting,
    select_deliveries,
    select_monitor_of,
    select_pages,
    select_service_of,
    select_to_subscribers,
)
from ....storage.incidents.queries.incident_escalations import IncidentCause, select_cause
from ....storage.incidents.queries.incident_updates import select_updates
from ....storage.incidents.queries.incidents import select_incident
from ....storage.incidents.queries.postmortems import select_postmortem
from ....storage.incidents.rows import IncidentRow, PostmortemRow, UpdateRow
from ....storage.incidents.rules.contradiction import Comparison, compare
from ....storage.incidents.rules.incident import (
    BODY_LONGEST,
    POSTMORTEM_LONGEST,
    IncidentSource,
    IncidentStatus,
    statuses_from,
    undo_until,
)
from ....storage.incidents.transactions.edit_incidents import EDIT
from ....storage.incidents.transactions.write_incident import is_undoable_row
from ....storage.mutes.queries import mutes_of_incident
from ....storage.mutes.rows import MuteRow
from ....storage.services.queries.service_revisions import select_revisions
from ....storage.services.rules.epoch import governed_within
from ....storage.status_pages.queries.incident_measurements import select_measured
from ....storage.status_pages.queries.incident_status_pages import subject_of
from ...ui.failure_help import failure_sentence
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_in, value_of
from ...ui.formatting import Moment, ago, clock, count, duration, moment, number
from ...ui.render import page, redirect
from ...ui.shell.mute_fact import mute_facts
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import incidents as api
from ..schemas import AddIncidentUpdate, PutPostmortem
from .answer_fields import answer_of_form, recipients, words_of
from .contradiction_fact import READ, fact_of, is_unread
from .duplicate_submit import was_submitted_already
from .incident_mark import lasted, mark_of
from .incident_timeline import chosen, notification_items, subscriber_items, timeline
from .preceding_changes_panel import SHOWN_MOST, changes_before
from .public_preview import (
    PublicPreview,
    expect_sayable,
    read_outside,
    read_postmortem_outside,
)

PAGES_MOST: Final = 200
DELIVERIES_MOST: Final = 50


class IncidentQuery(msgspec.Struct, frozen=True):
    show: Literal["all", "public", "team"] = "all"
    # Result of the last action.
    done: Literal["", "published", "undone"] = ""


@dataclass(frozen=True, slots=True)
class WaitingUpdate:
    """The newest update, while it can be withdrawn. `many` is the upper bound of its messages."""

    uid: UUID
    until: Moment
    many: int


@dataclass(frozen=True, slots=True)
class IncidentData:
    frame: PageLayout
    row: IncidentRow
    monitor: tuple[UUID, str] | None
    service: tuple[UUID, str] | None
    cause: IncidentCause
    updates: list[UpdateRow]
    pages: list[Paged]
    deliveries: list[DeliverySummary]
    readers: list[ToSubscribers]
    postmortem: PostmortemRow | None
    changes: list[Preceding]
    outside: PublicPreview | None
    compared: Comparison
    waiting: WaitingUpdate | None
    mutes: list[MuteRow]
    choices: Sequence[tuple[str, str]]
    now: Instant


@dataclass(frozen=True, slots=True)
class IncidentInput:
    """Submitted values of a refused form with the fault. `form` names the form."""

    form: str = ""
    status: str = ""
    body: str = ""
    public: bool = True
    fault: str = ""
    # Show a preview instead of posting the update.
    is_tried: bool = False
    # Contradiction that the user must confirm. The update was not posted.
    warned: Comparison | None = None

    @property
    def update_text(self) -> IncidentStatus | None:
        """Returns the submitted status, None for a note. Raises Problem for an unknown status."""
        try:
            return IncidentStatus(self.status) if self.status else None
        except ValueError:
            raise Problem("Unknown action") from None


async def render_incident(ask: Request) -> Response:
    return await _render(ask, ask.query.show, IncidentInput(), ask.query.done)


async def submit_incident(ask: Request) -> Response:
    """Executes the action of the button through the handler of the API."""
    what = value_of(ask, "act")
    typed = IncidentInput(
        form="postmortem" if what in ("postmortem", "preview_postmortem") else "update",
        status=value_of(ask, "status"),
        body=stripped(ask, "body"),
        public="public" in ask.form,
    )
    try:
        if what in ("preview", "preview_postmortem"):
            return await _render(ask, "all", replace(typed, is_tried=True))
        if what == "acknowledge" and value_of(ask, "back") == "list":
            taken = await api.acknowledge_incident(ask)
            return redirect(f"/projects/{taken.project_id}/incidents")
        if what == "update" and (warned := await _contradiction(ask, typed)) is not None:
            return await _render(ask, "all", replace(typed, warned=warned))
        done = await _apply(ask, what, typed)
    except Refused as refused:
        if what in ("snooze", "reassign"):
            typed = replace(typed, form="answer", public=True)
        if what == "undo":
            typed = replace(typed, form="undo", public=True)
        fault = _SAID.get(refused.code) or (words_of(refused) if refused.field else "")
        if not fault:
            raise
        return await _render(ask, "all", replace(typed, fault=fault))
    path = f"/incidents/{ask.ids['incidentID']}"
    return redirect(f"{path}?done={done}" if done else path)


_SAID: Final = {
    "status_backward": "Status can only move forward. Another user has already changed it.",
    "incident_resolved": "The incident is already resolved. You can still add notes.",
    "update_quota": "Update limit reached; only the status can change.",
    "update_not_public": "The update is not public any more.",
    "update_final": "Only a public message of a user can be withdrawn.",
    "update_sent": "Not withdrawn: its messages to subscribers are being sent.",
    "undo_expired": "Not withdrawn: the 10 s are over, and its messages may have been sent.",
    "not_resolved": "The postmortem is available once the incident is resolved.",
}


async def _apply(ask: Request, what: str, typed: IncidentInput) -> str:
    """Executes an action. Returns the result that the screen states."""
    match what:
        case "acknowledge":
            await api.acknowledge_incident(ask)
        case "update":
            if typed.update_text is None:
                raise Problem("Unknown action")
            body = AddIncidentUpdate(status=typed.update_text, body=typed.body, public=typed.public)
            await _post_update(ask, body)
            return "published" if typed.public and typed.body else ""
        case "note":
            # A note to the team is never published, even if the box is still checked.
            public = typed.public if value_of(ask, "for") == "all" else UNSET
            note = AddIncidentUpdate(body=typed.body, public=public)
            await _post_update(ask, note)
            return "published" if public is True else ""
        case "snooze" | "reassign":
            await api.perform(ask, answer_of_form(ask))
        case "undo":
            update = uuid_in(value_of(ask, "update"))
            await api.undo(replace(ask, ids={**ask.ids, "updateID": update}))
            return "undone"
        case "postmortem":
            written = PutPostmortem(
                body=typed.body,
                published=typed.public,
                declaration_revision=await _revision(ask),
            )
            await api.write_postmortem(replace(ask, body=written))
        case _:
            raise Problem("Unknown action")
    return ""


async def _contradiction(ask: Request, typed: IncidentInput) -> Comparison | None:
    """Returns the contradiction that the user has not confirmed, None if the update can be posted.

    Raises Refused, as the post does, for an update that cannot be posted at all.
    """
    if typed.update_text is None:
        return None
    async with ask.context.pool.transaction("console_compare_update", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
        if row is None:
            raise Problem("not_found")
        found = await _compared(tx, row, _shown_status(row, typed.update_text, typed))
    if not is_unread(found, value_of(ask, READ)):
        return None
    update = AddIncidentUpdate(status=typed.update_text, body=typed.body, public=typed.public)
    if await was_submitted_already(ask, update):
        return None
    expect_sayable(row, typed.update_text, typed.body)
    return found


def _shown_status(
    row: IncidentRow, status: IncidentStatus | None, typed: IncidentInput
) -> IncidentStatus | None:
    """Returns the status that status pages show because of the update, None if it shows nothing.

    They show a new status also if its message is not public.
    """
    return status if typed.public or status != row.status else None


async def _compared(tx: Tx, row: IncidentRow, status: IncidentStatus | None) -> Comparison:
    return compare(status, await select_measured(tx, await subject_of(tx, row)), tx.now)


async def _revision(ask: Request) -> int | UnsetType:
    """Returns the revision of the postmortem, else the last that governed the incident.

    UNSET without a service or a revision.
    """
    async with ask.context.pool.transaction("console_postmortem_revision", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
        if row is None or row.service is None:
            return UNSET
        written = await select_postmortem(tx, row.org, row.id)
        if written is not None and written.declaration_revision is not None:
            return written.declaration_revision
        key = ServiceKey((row.org, row.service))
        revisions = (await select_revisions(tx, [key]))[key]
        until = tx.now if row.resolved_at is None else row.resolved_at
        governed = governed_within(revisions, row.started_at, until)
    return governed[-1].revision if governed else UNSET


async def _post_update(ask: Request, body: AddIncidentUpdate) -> None:
    if not await was_submitted_already(ask, body):
        await api.write_update(replace(ask, body=body))


async def _render(ask: Request, which: str, typed: IncidentInput, done: str = "") -> Response:
    async with ask.context.pool.transaction("console_incident", read_only=True) as tx:
        facts = await _select_facts(ask, tx, typed)
    row, now = facts.row, facts.now
    is_over = row.status == IncidentStatus.RESOLVED
    events = timeline(row, facts.updates, facts.pages, facts.postmortem, now)
    return page(
        "incidents/console/incident_detail.html",
        status=400 if typed.fault else 200,
        frame=facts.frame,
        row=row,
        is_over=is_over,
        mark=mark_of(row.status, row.impact),
        started=moment(row.started_at, now),
        open_for=lasted(row.started_at, row.resolved_at, now),
        why=failure_sentence(facts.cause.why, kind=facts.cause.kind) if facts.cause.why else "",
        failed=facts.cause.failed or "",
        origin=_origin(facts),
        monitor=facts.monitor,
        service=facts.service,
        answered=answered(row, now),
        figures=_figures(facts),
        statuses=statuses_from(IncidentStatus(row.status)),
        typed=typed,
        outside=facts.outside,
        fact=fact_of(facts.compared, now),
        which=which,
        events=chosen(events, which),
        done=done,
        waiting=facts.waiting,
        choices=facts.choices,
        typed_answer=(value_of(ask, "minutes"), value_of(ask, "assignee")),
        mutes=mute_facts(facts.mutes, now),
        told=notification_items(facts.deliveries, now) + subscriber_items(facts.readers),
        changes=changes_before(facts.changes),
        further_changes=max(len(facts.changes) - SHOWN_MOST, 0),
        postmortem=facts.postmortem,
        edited=_edited(facts.postmortem, now),
        body_longest=number(BODY_LONGEST),
        postmortem_longest=number(POSTMORTEM_LONGEST),
    )


async def _select_facts(ask: Request, tx: Tx, typed: IncidentInput) -> IncidentData:
    row = await select_incident(tx, ask.ids["incidentID"])
    if row is None:
        raise Problem("not_found")
    outside = None
    if typed.is_tried and typed.form == "postmortem":
        outside = await read_postmortem_outside(tx, row, typed.body, published=typed.public)
    elif typed.is_tried:
        expect_sayable(row, typed.update_text, typed.body)
        outside = await read_outside(tx, row, typed.update_text, typed.body, public=typed.public)
    elif row.status != IncidentStatus.RESOLVED:
        outside = await read_outside(tx, row, IncidentStatus(row.status), "", public=True)
    frame = await frame_of(ask, tx)
    compared = typed.warned or Comparison(None)
    if frame.may_write and row.status != IncidentStatus.RESOLVED and typed.warned is None:
        chosen_status = typed.update_text if typed.form == "update" else IncidentStatus(row.status)
        compared = await _compared(tx, row, _shown_status(row, chosen_status, typed))
    updates = await select_updates(tx, row.org, row.id)
    return IncidentData(
        frame,
        row,
        None if row.monitor is None else await select_monitor_of(tx, row.org, row.monitor),
        None if row.service is None else await select_service_of(tx, row.org, row.service),
        await select_cause(tx, row.org, row.id),
        updates,
        await select_pages(tx, row.org, row.id, PAGES_MOST),
        await select_deliveries(tx, row.org, row.uid, DELIVERIES_MOST),
        await select_to_subscribers(tx, row.org, row.uid, DELIVERIES_MOST),
        await select_postmortem(tx, row.org, row.id),
        await select_preceding(tx, row),
        outside,
        compared,
        await _waiting(tx, row, updates),
        [] if row.status == IncidentStatus.RESOLVED else await mutes_of_incident(tx, row.uid),
        await recipients(tx, row) if frame.may_write and row.resolved_at is None else (),
        tx.now,
    )


async def _waiting(tx: Tx, row: IncidentRow, updates: list[UpdateRow]) -> WaitingUpdate | None:
    last = updates[-1] if updates else None
    if last is None or not is_undoable_row(last) or tx.now >= undo_until(last.created_at):
        return None
    many = await count_waiting(tx, row.org, row.uid, last.seq)
    return WaitingUpdate(last.uid, moment(undo_until(last.created_at), tx.now), many)


def _origin(facts: IncidentData) -> str:
    match facts.row.source:
        case IncidentSource.AUTO if facts.row.self_condition:
            pages = "" if facts.row.escalation_policy else " It pages nobody: no default policy."
            return f"Opened by Leadline about itself. No target has failed.{pages}"
        case IncidentSource.AUTO:
            return "Opened automatically."
        case IncidentSource.API if facts.row.external_key is not None:
            said = f"Opened by an external alert, sent by {_author(facts)}."
            if facts.row.is_unrouted:
                return f"{said} Unrouted: no alert route matches, so it pages nobody."
            if facts.row.escalation_policy is None:
                return f"{said} Its service has no escalation policy, so it pages nobody."
            return said
        case _:
            return f"Opened by {_author(facts)}."


def _author(facts: IncidentData) -> str:
    first = facts.updates[0].author_label if facts.updates else ""
    return first or "unknown"


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


def _figures(facts: IncidentData) -> list[tuple[str, str, str]]:
    """Returns (label, figure, note) of each figure."""
    row, now = facts.row, facts.now
    found = [
        ("Status", row.status.capitalize(), count(len(facts.updates), "update")),
        ("Impact", row.impact.capitalize(), ""),
    ]
    paged = [page for page in facts.pages if page.paged]
    if paged:
        first = min(paged, key=lambda page: page.at)
        after = f"{duration(max(first.at - row.started_at, 0))} after the start"
        found.append(("First page sent", moment(first.at, now).text, after))
    if row.acknowledged_at is not None:
        when = moment(row.acknowledged_at, now).text
        found.append(("Acknowledged", when, row.acknowledged_label))
    if row.assigned_label:
        found.append(("Assigned to", row.assigned_label, ""))
    if row.resolved_at is not None:
        when = moment(row.resolved_at, now).text
        found.append(("Resolved", when, f"after {duration(row.resolved_at - row.started_at)}"))
    return found


def _edited(postmortem: PostmortemRow | None, now: Instant) -> str:
    if postmortem is None:
        return ""
    by = f" by {postmortem.author_label}" if postmortem.author_label else ""
    if postmortem.published:
        text = f"Published {ago(postmortem.published_at, now).text}{by}"
    else:
        text = f"Not published, written {ago(postmortem.created_at, now).text}{by}"
    if postmortem.updated_at not in (postmortem.published_at, postmortem.created_at):
        text += f", edited {ago(postmortem.updated_at, now).text}"
    return f"{text}."


_INCIDENT: Final[Any] = ("incident", "incidentID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/incidents/{incidentID}",
        action=Permission(Need.VIEWER),
        scope=_INCIDENT,
        handler=render_incident,
        summary="Incident.",
        query=IncidentQuery,
    ),
    page_route(
        method="POST",
        path="/incidents/{incidentID}",
        action=EDIT,
        scope=_INCIDENT,
        handler=submit_incident,
        summary="Acknowledge or update an incident, or write its postmortem.",
    ),
)
