"""Takes the due steps of an incident's escalation policy, under the incident's lock.

Invariant: no step is taken during an acknowledgement or a snooze, or after the resolution. A step
is taken once, except that a repetition and the end of a pause take the last one again. A step for
which nobody is on call is followed at once by the next one with somebody. If there is none, it is
due again after LOOK_AGAIN_US, until somebody is. The timeline of the incident records
the paged and the unreachable channels of each step. A mute or the global silence postpones the due
step and all later steps by the same duration, so that the first responders have their time.
"""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from ...core.instant import LATEST, SECOND, Instant
from ...engine.pools import Tx
from ...mutes.queries import mutes_of_incident
from ...mutes.rules.mute import latest, next_check_at
from ...notifications.queries.global_silence import global_silence_in_force
from ...notifications.queries.ticket_destinations import select_ticket_destinations
from ...notifications.rules.notification import Notification
from ...notifications.rules.personal_rules import is_low
from ...notifications.transactions.enqueue_notifications import enqueue_pages
from ...oncall.rules.escalation import (
    EscalationPolicy,
    TargetKind,
    due_steps,
    next_at,
    resumed,
)
from ...oncall.tables.escalation_policies import select_expanded_ladder
from ...oncall.transactions.resolve_targets import channels_of_step
from ...services.queries.support_hours import select_opening
from ..queries import incident_escalations
from ..rows import ASSIGNEE, TICKET, IncidentRow
from ..rules.alert_storm import STORM_US, count_line, leads
from ..rules.escalation_pause import handed_over, paused_until, woken
from ..rules.incident import IncidentStatus
from ..tables import alert_storms, incidents
from ..tables import incident_escalations as ladders
from .name_recipients import paged_names
from .write_incident import IncidentEntry, release_untold, write_entry

INCIDENT = "incident_event"
# Interval of looks for somebody on call, µs.
LOOK_AGAIN_US = 60 * SECOND


async def escalate_if_due(tx: Tx, incident: UUID) -> int:
    """Takes the due steps. Returns their number, 0 if the incident is not due any more.

    An alert of a storm takes none, because the page of its leader covers it, with all others of the
    storm that are due.
    """
    if not await ladders.is_due(tx, incident):
        # Covered together with another alert, since the list of due ones was read.
        return 0
    leader = None
    for named in await alert_storms.select_leaders(tx, incident, tx.now - STORM_US):
        if await _muted_until(tx, named) is None:
            # Before the covered alert, as a resolution of the leader locks both in this order.
            leader = await incidents.lock_incident(tx, named)
            break
    row = await incidents.lock_incident(tx, incident)
    if row is None or row.escalate_at is None or row.escalate_at > tx.now:
        return 0
    if (
        leader is not None
        and row.last_escalated_at is None
        and await _leads(tx, leader, row)
        and await _cover(tx, leader, due_by=tx.now)
    ):
        return 0
    return await escalate(tx, row)


async def _cover(tx: Tx, leader: IncidentRow, *, due_by: Instant = LATEST) -> int:
    """Covers the alerts of a storm that the last or the next page of their leader tells of.

    Args:
        due_by: latest instant at which such an alert is due.
    """
    paged_at = leader.last_escalated_at
    awaited = paged_at is None or (leader.escalate_at is not None and not leader.is_postponed)
    started_by = LATEST if awaited or paged_at is None else paged_at
    return await alert_storms.cover(tx, leader, due_by=due_by, started_by=started_by)


async def _leads(tx: Tx, row: IncidentRow, covered: IncidentRow) -> bool:
    """Returns whether an alert without a mute covers another one, which has no page."""
    paged_at = row.last_escalated_at
    if is_low(row.impact) != is_low(covered.impact):
        return False
    if await select_ticket_destinations(tx, row.org, row.project, row.impact):
        # Each ticket is filed.
        return False
    return leads(
        is_resolved=row.status == IncidentStatus.RESOLVED,
        is_taken_up=_is_taken_up(row),
        is_covered=row.merged_into is not None,
        paged_at=paged_at,
        is_awaited=row.escalate_at is not None and not row.is_postponed,
        is_told=paged_at is not None and covered.escalation_started_at <= paged_at,
        now=tx.now,
    )


def _is_taken_up(row: IncidentRow) -> bool:
    """Returns whether a person has acknowledged, snoozed or reassigned the incident."""
    return row.is_acknowledged or row.snoozed_until is not None or bool(row.assigned_kind)


async def escalate(
    tx: Tx, row: IncidentRow, *, spared: Collection[int] = (), restarts: bool = False
) -> int:
    """Takes the due steps of a locked incident. `spared` channels are notified otherwise.

    `restarts`: its ticket destinations, if any, are notified again.
    """
    ladder = None
    if row.escalation_policy is not None:
        ladder = await select_expanded_ladder(tx, row.org, row.escalation_policy)
    taken, last_at = row.escalation_step, row.last_escalated_at
    until = paused_until(
        is_acknowledged=row.is_acknowledged,
        ack_expires_at=row.ack_expires_at,
        snoozed_until=row.snoozed_until,
        now=tx.now,
    )
    is_over = row.status == IncidentStatus.RESOLVED
    assignee = row.assigned_channel if row.snoozed_until is not None else None
    is_idle = ladder is None and assignee is None
    if is_idle or until is not None or is_over:
        again = None if is_idle or is_over or until == LATEST else until
        await incidents.climb(tx, row, step=taken, last_escalated_at=last_at, escalate_at=again)
        return 0
    if assignee is not None:
        paged = await _wake_assignee(tx, row, ladder, assignee)
        if paged is not None:
            return paged
    if ladder is None:
        await incidents.climb(tx, row, step=taken, last_escalated_at=last_at, escalate_at=None)
        return 0
    resumes = row.is_acknowledged or row.snoozed_until is not None
    if resumes:
        row, taken = await _continue(tx, row, ladder)
    until, why = await _waits_until(tx, row)
    if until is not None:
        await _wait(tx, row, ladder, taken, until, why)
        return 0
    filed = await _file_ticket(tx, row, spared, again=restarts or resumes)
    if filed is not None:
        return filed
    steps, taken = due_steps(ladder, row.escalation_started_at, taken, last_at, tx.now)
    is_gap = False
    if steps:
        taken, has_people = await _take_steps(tx, row, ladder, steps, taken, spared)
        is_gap = not has_people and _asks_schedules(ladder, steps)
        last_at = tx.now
        if has_people and not _is_taken_up(row):
            # One whose delay has not ended keeps it: the leader can be resolved before.
            await alert_storms.cover(tx, row, due_by=tx.now, started_by=tx.now)
    again = next_at(ladder, row.escalation_started_at, taken, last_at)
    if is_gap:
        taken, again = steps[0] - 1, Instant(tx.now + LOOK_AGAIN_US)
    await incidents.climb(tx, row, step=taken, last_escalated_at=last_at, escalate_at=again)
    if again is None and not steps:
        await release_untold(tx, row)
    return len(steps)


async def restart_escalation(
    tx: Tx, row: IncidentRow, why: str, *, spared: Collection[int] = ()
) -> None:
    """Ends the pauses of a locked open incident and takes its first step now, as for a new one.

    The first acknowledgement stays recorded. Writes the note `why`. Without a policy, the assigned
    person is paged.
    """
    started_at, taken, ladder = row.escalation_started_at, row.escalation_step, None
    if row.escalation_policy is not None:
        ladder = await select_expanded_ladder(tx, row.org, row.escalation_policy)
    if ladder is not None:
        started_at, taken = resumed(ladder, 0, tx.now)
    row = await _end_pause(tx, row, started_at, taken, why)
    if ladder is None and row.assigned_channel is not None:
        await page_assignee(tx, row, row.assigned_channel, why)
    await escalate(tx, row, spared=spared, restarts=True)


async def _continue(tx: Tx, row: IncidentRow, ladder: EscalationPolicy) -> tuple[IncidentRow, int]:
    """Ends a pause that is over, so that a step is due. Writes a note."""
    if row.snoozed_until is None:
        started_at, taken = resumed(ladder, row.escalation_step, tx.now)
        ended = f"The acknowledgement of {row.acknowledged_label} expired."
    else:
        started_at, taken = woken(ladder, row.escalation_step, tx.now)
        ended = f"The snooze of {row.snoozed_label} ended."
    body = f"{ended} The escalation continues."
    return await _end_pause(tx, row, started_at, taken, body), taken


async def _end_pause(
    tx: Tx, row: IncidentRow, started_at: Instant, taken: int, body: str
) -> IncidentRow:
    row = await incidents.end_pause(tx, row, started_at, taken)
    entry = IncidentEntry(status=None, body=body, public=False, author=None)
    row, _ = await write_entry(tx, row, entry)
    return row


async def _wake_assignee(
    tx: Tx, row: IncidentRow, ladder: EscalationPolicy | None, channel: int
) -> int | None:
    """Ends a snooze that is over with a page to the assigned person.

    The escalation then continues as after the reassignment. A mute postpones the end of the snooze.
    Returns the number of pages, None if the person cannot be paged.
    """
    muted_until = await _muted_until(tx, row.uid)
    if muted_until is not None:
        until = next_check_at(muted_until, tx.now)
        await incidents.postpone_escalation_step(tx, row, until, 0)
        return 0
    ended = f"The snooze of {row.snoozed_label} ended."
    if not await page_assignee(tx, row, channel, ended):
        return None
    started_at, taken, again = row.escalation_started_at, row.escalation_step, None
    if ladder is not None:
        started_at, taken = handed_over(ladder, taken, tx.now)
        again = Instant(started_at + ladder.steps[taken].after_us)
    body = f"{ended} {row.assigned_label} is notified again."
    row = await _end_pause(tx, row, started_at, taken, body)
    await incidents.climb(tx, row, step=taken, last_escalated_at=tx.now, escalate_at=again)
    return 1


async def _muted_until(tx: Tx, incident: UUID) -> Instant | None:
    """Returns when a mute of the incident ends at the latest, None if it is not muted."""
    silence = await global_silence_in_force(tx)
    if silence is not None:
        return silence.next_check_at(tx.now)
    return latest(mute.ends_at for mute in await mutes_of_incident(tx, incident))


async def _waits_until(tx: Tx, row: IncidentRow) -> tuple[Instant | None, str]:
    """Returns until when the steps of an incident wait at the latest, and the note about it.

    A mute delays them. Outside the support hours of its service, an incident of low urgency without
    a ticket destination waits for them.
    """
    muted_until = await _muted_until(tx, row.uid)
    if muted_until is not None or row.assigned_kind or not is_low(row.impact):
        return muted_until, ""
    opening = await select_opening(tx, row.org, row.service)
    if opening is None:
        return None, ""
    if await select_ticket_destinations(tx, row.org, row.project, row.impact):
        return None, ""
    return opening.at, f"Outside the support hours: the escalation waits until {opening.text}."


async def _wait(
    tx: Tx, row: IncidentRow, ladder: EscalationPolicy, taken: int, until: Instant, why: str
) -> None:
    """Postpones the next step and all later ones. The first time, `why` becomes a note."""
    last_at = row.last_escalated_at
    due = next_at(ladder, row.escalation_started_at, taken, last_at)
    if due is None or due > tx.now:
        # Not due, but looked at again after an edit of the policy or a new mute: the wait delays no
        # step. What the next page would have told of is not covered any more.
        await incidents.climb(tx, row, step=taken, last_escalated_at=last_at, escalate_at=due)
        await release_untold(tx, row)
        return
    if why and not row.is_postponed:
        entry = IncidentEntry(status=None, body=why, public=False, author=None)
        row, _ = await write_entry(tx, row, entry)
    checked_at = next_check_at(until, tx.now)
    # A repetition of the last step follows the step itself: no later one depends on the start.
    delayed_us = checked_at - due if taken < len(ladder.steps) else 0
    await incidents.postpone_escalation_step(tx, row, checked_at, delayed_us)
    await release_untold(tx, row)


async def _file_ticket(
    tx: Tx, row: IncidentRow, spared: Collection[int], *, again: bool
) -> int | None:
    """Notifies the ticket destinations once in place of the steps, and `again` after a pause.

    Returns the number of notifications, None for a page.

    A reassigned incident is a page, because a person has decided whom to page. Without an enabled
    destination the steps are taken.
    """
    if row.assigned_kind:
        return None
    channels = await select_ticket_destinations(tx, row.org, row.project, row.impact)
    if not channels:
        return None
    last_at = row.last_escalated_at
    if not again and await ladders.has_page(tx, row.org, row.id, TICKET):
        step = row.escalation_step
        await incidents.climb(tx, row, step=step, last_escalated_at=last_at, escalate_at=None)
        return 0
    page = await _page_of(tx, row, TICKET, f"Ticket of impact {row.impact}.")
    wanted = [channel for channel in channels if channel not in spared]
    await enqueue_pages(tx, row.org, row.project, row.uid, row.uid, INCIDENT, wanted, page)
    names = await ladders.select_channel_names(tx, row.org, channels)
    await ladders.insert_page(tx, row.org, row.id, TICKET, [names[one] for one in channels], [])
    step = row.escalation_step
    await incidents.climb(tx, row, step=step, last_escalated_at=tx.now, escalate_at=None)
    return 1


async def _page_of(tx: Tx, row: IncidentRow, number: int, line: str) -> Notification:
    cause = await incident_escalations.select_cause(tx, row.org, row.id)
    failed = () if cause.failed is None else (cause.failed,)
    return replace(_notification(row, number, cause.why, failed), lines=(line,))


async def page_assignee(tx: Tx, row: IncidentRow, channel: int, line: str) -> bool:
    """Pages the person that a locked incident was reassigned to. Returns whether that is possible.

    `channel` is that of the person in the project. `line` states the reason.
    """
    page = await _page_of(tx, row, ASSIGNEE, line)
    page = replace(page, event="incident.reassigned")
    paged = await enqueue_pages(
        tx, row.org, row.project, row.uid, row.uid, INCIDENT, [channel], page
    )
    if channel not in paged:
        return False
    names = await paged_names(tx, row.org, row.uid, [channel])
    await ladders.insert_page(tx, row.org, row.id, ASSIGNEE, [names[channel]], [])
    return True


async def _take_steps(
    tx: Tx,
    row: IncidentRow,
    ladder: EscalationPolicy,
    steps: list[int],
    taken: int,
    spared: Collection[int],
) -> tuple[int, bool]:
    """Takes the due steps. Returns the number of steps taken by then, and whether they have people.

    If nobody is on call by all of these steps, the next step with somebody follows at once: its
    delay is for the people of the steps before it.
    """
    told, has_people = set(spared), False
    for number in steps:
        channels = await channels_of_step(tx, row.org, ladder.steps[number - 1].targets, tx.now)
        # The timeline has one entry for a gap, however often somebody was looked for.
        if channels or not await ladders.has_page(tx, row.org, row.id, number):
            told |= await _take(tx, row, number, channels, told)
        has_people = has_people or bool(channels)
    if has_people:
        return taken, True
    for number in range(taken + 1, len(ladder.steps) + 1):
        channels = await channels_of_step(tx, row.org, ladder.steps[number - 1].targets, tx.now)
        if channels:
            for skipped in range(taken + 1, number):
                await _take(tx, row, skipped, [], told)
            await _take(tx, row, number, channels, told)
            return number, True
    return taken, False


def _asks_schedules(ladder: EscalationPolicy, steps: list[int]) -> bool:
    """Returns whether somebody can come on call for one of the steps."""
    targets = (target for number in steps for target in ladder.steps[number - 1].targets)
    return any(target.kind is TargetKind.SCHEDULE for target in targets)


async def _take(
    tx: Tx, row: IncidentRow, number: int, channels: list[int], told: Collection[int]
) -> set[int]:
    """Pages the channels of a step except those in `told`. Returns the paged channels."""
    names = await ladders.select_channel_names(tx, row.org, channels)
    # A channel that was deleted after the policy was read has no name.
    channels = [channel for channel in channels if channel in names]
    cause = await incident_escalations.select_cause(tx, row.org, row.id)
    failed = () if cause.failed is None else (cause.failed,)
    page = _notification(row, number, cause.why, failed)
    more = count_line(await alert_storms.count_covered(tx, row))
    if more:
        page = replace(page, lines=(*page.lines, more))
    wanted = [channel for channel in channels if channel not in told]
    paged = await enqueue_pages(tx, row.org, row.project, row.uid, row.uid, INCIDENT, wanted, page)
    reached = {*paged, *told}
    names = await paged_names(tx, row.org, row.uid, channels)
    shown = [names[channel] for channel in channels if channel in reached]
    lost = [names[channel] for channel in channels if channel not in reached]
    await ladders.insert_page(tx, row.org, row.id, number, shown, lost)
    return set(paged)


def _notification(
    row: IncidentRow, number: int, why: str, conditions: tuple[str, ...]
) -> Notification:
    return Notification(
        event="incident.escalated",
        status="down",
        severity=row.impact,
        title=row.title,
        lines=(f"{'' if number == 1 else 'Not acknowledged. '}Escalation step {number}.",),
        why=why,
        conditions=conditions,
        since=row.started_at,
        path=f"/incidents/{row.uid}",
        runbook_url=row.runbook_url,
    )
