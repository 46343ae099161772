"""Start, change and end of mutes by editors of a project, and the start of mutes at their instant.

Every write locks the project, so that the number of its mutes stays bounded.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ..accounts.rows import ProjectRow
from ..accounts.rules.access import Need, Permission, Principal
from ..accounts.transactions.authorize import NOT_FOUND, audit, demand_project, demand_row
from ..accounts.transactions.authorize_tenant_write import lock_project
from ..core.instant import Instant, to_text
from ..core.refusal import Refused, expect
from ..engine.pools import Tx
from ..services.tables.services import lock_shared_service
from . import tables
from .rows import MuteRow
from .rules.label_matcher import BadMatcher
from .rules.mute import (
    MUTES_MOST,
    MuteState,
    mute_state,
    normal_matchers,
    reason_fault,
    span_fault,
)

EDIT: Final = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteDraft:
    """Mute of one of `monitor`, `service` and `matchers`. Without `starts_at` it starts now."""

    reason: str
    ends_at: Instant
    starts_at: Instant | None = None
    monitor: UUID | None = None
    service: UUID | None = None
    matchers: str = ""


async def create_mute(tx: Tx, principal: Principal, project: UUID, draft: MuteDraft) -> MuteRow:
    """Creates a mute.

    Raises: Refused not_found, forbidden, invalid with its field, mute_quota.
    """
    home = await demand_project(tx, principal, EDIT, project)
    given = (draft.monitor is not None, draft.service is not None, bool(draft.matchers.strip()))
    if sum(given) != 1:
        raise Refused("invalid", "matchers", "give one of monitor_id, service_id and matchers")
    reason = " ".join(draft.reason.split())
    expect("reason", reason_fault(reason))
    starts_at = tx.now if draft.starts_at is None else draft.starts_at
    fault = span_fault(starts_at, draft.ends_at, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    await lock_project(tx, home)
    if await tables.count_mutes(tx, home.org, home.id) >= MUTES_MOST:
        raise Refused("mute_quota")
    await tables.prune_mutes(tx, home.org, home.id)
    uid = uuid7()
    values = {
        **await _subject(tx, home, draft),
        "org": home.org,
        "uid": uid,
        "project": home.id,
        "reason": reason,
        "starts_at": starts_at,
        "ends_at": draft.ends_at,
        "label": principal.label,
    }
    await tables.insert_mute(tx, values)
    if starts_at <= tx.now:
        await tables.look_at_storms_again(tx, home.org, home.id)
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "mute.create", _target(row))
    return row


async def start_due_mutes(tx: Tx, org: int, project: int) -> int:
    """Makes the leaders of storms due in a project with mutes that start now.

    A leader that is muted from now on releases the alerts of which no page has told. Waits for no
    lock: while another transaction has locked such a leader, the mutes stay to be started. Returns
    the number of started mutes.
    """
    if not await tables.look_at_free_storms_again(tx, org, project):
        return 0
    return await tables.start_mutes(tx, org, project)


async def edit_mute(
    tx: Tx, principal: Principal, mute: UUID, reason: str | None, ends_at: Instant | None
) -> MuteRow:
    """Changes the fields that are not None. An edit without an effect is not written.

    Raises: Refused not_found, forbidden, invalid with its field, mute_ended.
    """
    before = await _lock(tx, principal, mute)
    if mute_state(before.starts_at, before.ends_at, tx.now) is MuteState.ENDED:
        raise Refused("mute_ended")
    wanted = before.reason if reason is None else " ".join(reason.split())
    expect("reason", reason_fault(wanted))
    until = before.ends_at if ends_at is None else ends_at
    fault = span_fault(before.starts_at, until, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    if (wanted, until) == (before.reason, before.ends_at):
        return before
    await tables.update_mute(tx, before, wanted, until)
    if until < before.ends_at:
        await tables.release_held(tx, before.org, before.project)
    row = await _written(tx, mute)
    await audit(tx, principal, row.org, "mute.update", _target(row))
    return row


async def end_mute(tx: Tx, principal: Principal, mute: UUID) -> None:
    """Ends a mute now. One that has not started is deleted; one that has ended stays as it is.

    Raises: Refused not_found, forbidden.
    """
    row = await _lock(tx, principal, mute)
    match mute_state(row.starts_at, row.ends_at, tx.now):
        case MuteState.ENDED:
            return
        case MuteState.PENDING:
            await tables.delete_mute(tx, row)
        case MuteState.ACTIVE:
            await tables.update_mute(tx, row, row.reason, tx.now)
            await tables.release_held(tx, row.org, row.project)
    await audit(tx, principal, row.org, "mute.end", _target(row))


async def _subject(tx: Tx, home: ProjectRow, draft: MuteDraft) -> dict[str, int | str | None]:
    monitor, service, matchers = None, None, ""
    if draft.service is not None:
        found = await lock_shared_service(tx, draft.service)
        if found is None or (found.org, found.project) != (home.org, home.id):
            raise Refused("invalid", "service_id", "names no service of this project")
        service = found.id
    elif draft.monitor is not None:
        monitor = await tables.lock_shared_monitor(tx, home.org, home.id, draft.monitor)
        if monitor is None:
            raise Refused("invalid", "monitor_id", "names no monitor of this project")
    else:
        try:
            matchers = normal_matchers(draft.matchers)
        except BadMatcher as fault:
            raise Refused("invalid", "matchers", str(fault)) from None
    return {"monitor": monitor, "service": service, "matchers": matchers}


async def _lock(tx: Tx, principal: Principal, mute: UUID) -> MuteRow:
    """Returns the mute as it is after the lock of its project."""
    found = demand_row(principal, EDIT, await tables.select_mute(tx, mute))
    await lock_project(tx, await demand_project(tx, principal, EDIT, found.project_uid))
    row = await tables.select_mute(tx, mute)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def _written(tx: Tx, mute: UUID) -> MuteRow:
    row = await tables.select_mute(tx, mute)
    assert row is not None, "it was just written"
    return row


def _target(row: MuteRow) -> str:
    about = f" monitor:{row.monitor_uid}" if row.monitor_uid else ""
    about += f" service:{row.service_uid}" if row.service_uid else ""
    about += f" matchers={{{row.matchers}}}" if row.matchers else ""
    until = f"from={to_text(row.starts_at)} until={to_text(row.ends_at)}"
    return f"mute:{row.uid} project:{row.project_uid}{about} {until} reason={row.reason}"
