"""Hand-off of a schedule: an e-mail with a summary to the person who comes on call.

Invariant: one e-mail for each hand-off, in the transaction that records it. The first pass of a
schedule records who is on call and writes none.
"""

from typing import Final
from uuid import UUID

from ...core.instant import DAY, EARLIEST, LATEST, Instant, to_datetime
from ...engine.pools import Tx
from ..queries.hand_off_facts import HandOffFacts, HandOffIncident, select_hand_off_facts
from ..queries.oncall_schedules import ScheduleRoster, select_rosters
from ..rules.oncall_schedule import Duty, stretch
from ..rules.weekly_hours import zone_of_name
from ..tables import oncall_mails, oncall_schedules

# A duty without an end is looked at again.
_LATEST_LOOK_US: Final = 7 * DAY


async def hand_over_if_due(tx: Tx, schedule: UUID) -> bool:
    """Returns whether an e-mail was written."""
    row = await oncall_schedules.lock_schedule(tx, schedule)
    if row is None or not row.hand_off_email:
        return False
    last = await oncall_schedules.select_hand_off(tx, row)
    if last.looked_for_at is not None and last.looked_for_at > tx.now:
        return False
    (standing,) = await select_rosters(tx, row.org, [row], EARLIEST, LATEST)
    duty = stretch(standing.roster, standing.overrides, tx.now)
    is_first = last.looked_for_at is None
    is_handed = not is_first and duty.channel is not None and duty.channel != last.channel
    since = tx.now if is_first or is_handed or last.since is None else last.since
    next_at = Instant(min(duty.until, tx.now + _LATEST_LOOK_US))
    await oncall_schedules.set_hand_off(tx, row, next_at, duty.channel, since)
    if duty.channel is None or not is_handed:
        return False
    facts = await select_hand_off_facts(tx, row.org, row.project, last.since or tx.now)
    until = f"until {_time(standing, duty.until)}" if duty.until != LATEST else "without an end"
    subject = f"You are on call by {row.name} {until}"
    paragraphs = _paragraphs(standing, duty, facts)
    await oncall_mails.insert_mails(tx, row.org, {duty.channel}, subject, paragraphs)
    return True


def _paragraphs(standing: ScheduleRoster, duty: Duty, facts: HandOffFacts) -> list[str]:
    found = []
    before = stretch(standing.roster, standing.overrides, Instant(duty.from_at - 1))
    if before.channel is not None:
        found.append(f"You take over from {standing.name_of(before.channel)}.")
    if duty.until != LATEST:
        after = stretch(standing.roster, standing.overrides, duty.until)
        found.append(f"{standing.name_of(after.channel)} follows you.")
    heads = (
        (facts.open, facts.open_count, "Open incidents"),
        (facts.resolved, facts.resolved_count, "Resolved since the last hand-off"),
    )
    for incidents, count, head in heads:
        lines = [_line(standing, one) for one in incidents]
        if count > len(incidents):
            lines.append(f"{count - len(incidents)} more.")
        found.append("\n".join([f"{head}: {count}", *lines]))
    return found


def _line(standing: ScheduleRoster, one: HandOffIncident) -> str:
    by = f", acknowledged by {one.acknowledged_label}" if one.acknowledged_label else ""
    over = "" if one.resolved_at is None else f", resolved {_time(standing, one.resolved_at)}"
    started = _time(standing, one.started_at)
    return f"- {one.title} ({one.impact}), since {started}{by}{over}"


def _time(standing: ScheduleRoster, at: Instant) -> str:
    zone = zone_of_name(standing.schedule.timezone)
    return f"{to_datetime(at).astimezone(zone):%a %d %b %Y %H:%M} {zone.key}"
