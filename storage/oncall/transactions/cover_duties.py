"""Cover requests: a person asks others to take over a span of duty, and another one accepts.

Invariant: an acceptance writes all overrides of a request, or none. It needs the duties that the
request names: if they have changed, it is refused.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import FORBIDDEN, NOT_FOUND, audit, demand_row
from ...core.instant import EARLIEST, LATEST, Instant, to_datetime, to_text
from ...core.naming import text_rule_broken
from ...core.refusal import Refused, expect
from ...engine.paced import paced
from ...engine.pools import Tx
from ...notifications.tables.person_channels import ensure_people
from ..queries.cover_requests import select_cover_request
from ..queries.oncall_schedules import ScheduleRoster, select_rosters
from ..rows import CoverRequestRow, ScheduleRow
from ..rules.cover import (
    NOTE_LONGEST,
    OPEN_MOST,
    Cover,
    CoverSpan,
    accepted,
    duties_within,
    request_fault,
)
from ..rules.escalation import TargetKind
from ..rules.oncall_schedule import Duty, override_fault
from ..rules.weekly_hours import zone_of_name
from ..tables import cover_requests, oncall_mails
from .check_targets import RequestedTarget, lock_targets
from .edit_overrides import write_override
from .edit_schedules import EDIT, lock_for_edit

OUTDATED: Final = "cover_outdated"
# Only a person can go on call. The user of a token is its creator, who may know nothing of it. The
# role does not matter for those who are asked: they are on call with any.
ACCEPT: Final = Permission(Need.VIEWER, tokenless=True)


@dataclass(frozen=True, slots=True)
class CoverDraft:
    """Requested cover. `channel` and `wanted` are ids of channels or members, empty for none.

    Without `channel` it is the duty of the caller. A token must name it.
    """

    channel: str
    wanted: str
    span: CoverSpan
    in_return: CoverSpan | None = None
    note: str = ""


async def request_cover(
    tx: Tx, principal: Principal, schedule: UUID, draft: CoverDraft
) -> CoverRequestRow:
    """Creates a request, and writes an e-mail to those who are asked.

    Raises:
        Refused not_found, forbidden, invalid with its field, cover_quota. Refused invalid, if a
        token names nobody: the user of a token is only its creator.
    """
    home = await lock_for_edit(tx, principal, schedule)
    _check(draft)
    if principal.via_token and not draft.channel:
        raise Refused("invalid", "channel_id", "must name whose duty it is, for an API token")
    mine = draft.channel or (str(principal.user) if isinstance(principal.user, UUID) else "")
    given = [RequestedTarget("channel_id", TargetKind.CHANNEL, mine, or_person=True)]
    if draft.wanted:
        given.append(RequestedTarget("wanted_id", TargetKind.CHANNEL, draft.wanted, or_person=True))
    channel, *asked = [one.key for one in await lock_targets(tx, home.org, home.project, given)]
    wanted = asked[0] if asked else None
    cover = Cover(channel, wanted, draft.span, draft.in_return)
    standing = await _standing(tx, home)
    fault = request_fault(cover, *await _duties(standing, cover, tx.now), tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    if await cover_requests.count_open(tx, home.org, home.id) >= OPEN_MOST:
        raise Refused("cover_quota")
    uid = uuid7()
    await cover_requests.insert_cover_request(
        tx, home.org, home.id, uid, cover, draft.note, principal.label
    )
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "oncall_cover_request.create", _target(row))
    people = {one.channel for one in standing.participants} - {channel}
    subject = f"{row.channel_name} asks for cover in {home.name}"
    await oncall_mails.insert_mails(
        tx, home.org, people if wanted is None else {wanted}, subject, _asked_text(home, row)
    )
    return row


async def accept_cover(tx: Tx, principal: Principal, request: UUID) -> CoverRequestRow:
    """Accepts a request in the name of the caller, and writes the overrides.

    The person that the request names can accept it, or if it names none, a participant of the
    schedule or an editor.

    Raises:
        Refused not_found, forbidden (also for all tokens), cover_accepted, cover_outdated,
        override_quota. Refused invalid, if the duty is that of the caller.
    """
    home, row = await _lock(tx, principal, request, ACCEPT)
    if row.accepted_at is not None:
        raise Refused("cover_accepted")
    if not isinstance(principal.user, UUID):
        raise Refused(FORBIDDEN)
    people = await ensure_people(tx, home.org, home.project, {principal.user})
    by = people.get(principal.user)
    if by is None or row.wanted not in (None, by):
        raise Refused(FORBIDDEN)
    if by == row.channel:
        raise Refused("invalid", "channel_id", "must be another person")
    standing = await _standing(tx, home)
    if row.wanted is None and by not in {one.channel for one in standing.participants}:
        demand_row(principal, EDIT, home)
    duties = await _duties(standing, row.as_rule, tx.now)
    overrides = accepted(row.as_rule, *duties, by, tx.now)
    if overrides is None:
        raise Refused(OUTDATED)
    for one in overrides:
        await write_override(tx, home, one.channel, one.span.starts_at, one.span.ends_at)
    await cover_requests.accept_cover_request(tx, row, by)
    row = await _written(tx, request)
    await audit(tx, principal, row.org, "oncall_cover_request.accept", _target(row))
    subject = f"{row.accepted_by_name} takes over in {home.name}"
    await oncall_mails.insert_mails(tx, home.org, {row.channel}, subject, _accepted_text(home, row))
    return row


async def withdraw_cover(tx: Tx, principal: Principal, request: UUID) -> None:
    """Deletes an open request.

    Raises:
        Refused not_found, forbidden, cover_accepted.
    """
    _, row = await _lock(tx, principal, request, EDIT)
    if row.accepted_at is not None:
        raise Refused("cover_accepted")
    await cover_requests.delete_cover_request(tx, row)
    await audit(tx, principal, row.org, "oncall_cover_request.delete", _target(row))


def _check(draft: CoverDraft) -> None:
    if len(draft.note) > NOTE_LONGEST:
        raise Refused("invalid", "note", f"must be at most {NOTE_LONGEST} characters")
    expect("note", text_rule_broken(draft.note, multiline=True))
    for prefix, span in (("", draft.span), ("return_", draft.in_return)):
        fault = None if span is None else override_fault(span.starts_at, span.ends_at)
        if fault is not None:
            raise Refused("invalid", f"{prefix}{fault[0]}", fault[1])


async def _lock(
    tx: Tx, principal: Principal, request: UUID, action: Permission
) -> tuple[ScheduleRow, CoverRequestRow]:
    schedule = await cover_requests.select_schedule_of(tx, request)
    if schedule is None:
        raise Refused(NOT_FOUND)
    home = await lock_for_edit(tx, principal, schedule, action)
    row = await select_cover_request(tx, request)
    if row is None:
        raise Refused(NOT_FOUND)
    return home, row


async def _standing(tx: Tx, home: ScheduleRow) -> ScheduleRoster:
    (standing,) = await select_rosters(tx, home.org, [home], EARLIEST, LATEST)
    return standing


async def _duties(
    standing: ScheduleRoster, cover: Cover, now: Instant
) -> tuple[list[Duty], list[Duty]]:
    """Returns the duties of the span and of the one in return."""
    roster, overrides = standing.roster, standing.overrides
    held = await paced(duties_within(roster, overrides, cover.span, now))
    if cover.in_return is None:
        return held, []
    return held, await paced(duties_within(roster, overrides, cover.in_return, now))


async def _written(tx: Tx, request: UUID) -> CoverRequestRow:
    row = await select_cover_request(tx, request)
    assert row is not None, "the written row is missing"
    return row


def _target(row: CoverRequestRow) -> str:
    return (
        f"oncall_cover_request:{row.uid} oncall_schedule:{row.schedule_uid} "
        f"channel:{row.channel_uid} {to_text(row.starts_at)} to {to_text(row.ends_at)}"
    )


def _asked_text(home: ScheduleRow, row: CoverRequestRow) -> list[str]:
    found = [f"{row.channel_name} asks for cover from {_span(home, row.starts_at, row.ends_at)}."]
    if row.return_starts_at is not None and row.return_ends_at is not None:
        returned = _span(home, row.return_starts_at, row.return_ends_at)
        found.append(f"In return {row.channel_name} takes your duty from {returned}.")
    if row.note:
        found.append(row.note)
    return [*found, "Accept it on the screen On-call. The first person who accepts takes over."]


def _accepted_text(home: ScheduleRow, row: CoverRequestRow) -> list[str]:
    span = _span(home, row.starts_at, row.ends_at)
    found = [f"{row.accepted_by_name} is on call in your place from {span}."]
    if row.return_starts_at is not None and row.return_ends_at is not None:
        returned = _span(home, row.return_starts_at, row.return_ends_at)
        found.append(f"In return you are on call from {returned}.")
    return found


def _span(home: ScheduleRow, starts_at: Instant, ends_at: Instant) -> str:
    zone = zone_of_name(home.timezone)
    edges = [
        f"{to_datetime(at).astimezone(zone):%A %d %B %Y, %H:%M}" for at in (starts_at, ends_at)
    ]
    return f"{edges[0]} to {edges[1]} ({zone.key})"
