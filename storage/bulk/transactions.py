"""Actions on many monitors. Each object is changed in a transaction of its own.

An action in the background stores the result of an object in the same transaction as the change. So
any process can continue it, no object is changed twice, and its undo covers what it changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from ..accounts.queries.principals import select_again
from ..accounts.rules.access import AccessDecision, Need, Permission, Principal, Scope, may
from ..accounts.tables import operations
from ..accounts.tables.tenant_deletion import lock_shared_project
from ..accounts.transactions.authorize import FORBIDDEN, NOT_FOUND, demand_project, demand_row
from ..core.instant import MINUTE, SECOND, Instant, from_text
from ..core.refusal import Refused
from ..engine.keyring import Keyring
from ..engine.pools import LockTimeout, Pool, Tx
from ..maintenance.transactions.plan_maintenance import Plan, announce, end
from ..monitors.queries.monitors import select_monitor
from ..monitors.rows import MonitorRow
from ..monitors.tables import compositions
from ..monitors.transactions.attach_channel import attach_channel, detach_channel
from ..monitors.transactions.lock_monitor import demand_monitor
from ..notifications.queries.channels import select_channel, select_channels_of_monitor
from ..regional.rules import RegionSpread
from ..regional.transactions import delete_any, edit_any
from . import tables
from .queries import has_ended, select_monitor_revision, select_undo
from .rows import BulkChange, BulkObject, BulkRow
from .rules import ARGUMENTS, OBJECTS_MOST, UNDO, BulkAct, ObjectState, argument_fault

EDIT: Final = Permission(Need.EDITOR)
LOCKED: Final = "locked"
BUSY: Final = "bulk_busy"
# Codes of the refusals of an action that its author can request again.
NO_UNDO: Final = "no_undo"
NOT_BEGUN: Final = frozenset({BUSY, NO_UNDO})
# The monitor was changed after the action that is to be undone.
CHANGED_SINCE: Final = "changed_since"
# A window that begins in the past would need a preview.
_START_AFTER: Final = 2 * SECOND
_UNAUTHORIZED: Final = (
    "the account that began the action may no longer edit monitors of the project"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkContext:
    """Settings of the process, see `edit_monitor` and `announce`."""

    keyring: Keyring
    raw_days: int


class _ObjectRefused(Exception):
    """The action is refused for one object. Rolls back what was written for it."""

    def __init__(self, place: int, code: str, rule: str) -> None:
        super().__init__(place, code, rule)
        self.place, self.code, self.rule = place, code, rule


async def begin_action(
    tx: Tx,
    principal: Principal,
    project: UUID,
    act: BulkAct,
    values: Mapping[str, str],
    objects: Sequence[tuple[UUID, str]],
) -> UUID:
    """Begins an action in the background and returns its operation, for `perform_next`.

    Args:
        values: those that `ARGUMENTS` names.
        objects: ids with names, in their order.

    Raises:
        Refused not_found, forbidden, invalid with a field of the API, or without objects, or with
        too many; bulk_busy while another action of the project runs.
    """
    await expect_values(tx, principal, project, act, values)
    found = [BulkObject(place, uid, name) for place, (uid, name) in enumerate(objects, start=1)]
    return await _begin(tx, principal, project, act, values, found)


async def expect_values(
    tx: Tx, principal: Principal, project: UUID, act: BulkAct, values: Mapping[str, str]
) -> None:
    """Checks the values of an action before its objects.

    Raises:
        Refused not_found, forbidden, invalid with a field of the API, also for a channel that the
        project does not have.
    """
    home = await demand_project(tx, principal, EDIT, project)
    fault = argument_fault(act, values, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    if act in (BulkAct.ATTACH, BulkAct.DETACH):
        channel = await select_channel(tx, UUID(values["channel"]))
        if channel is None or (channel.org, channel.project) != (home.org, home.id):
            raise Refused("invalid", "channel_id", "names no channel of this project")


async def _begin(
    tx: Tx,
    principal: Principal,
    project: UUID,
    act: BulkAct,
    values: Mapping[str, str],
    objects: Sequence[BulkObject],
    undoes: UUID | None = None,
) -> UUID:
    home = await demand_project(tx, principal, EDIT, project)
    if not await lock_shared_project(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    if not 0 < len(objects) <= OBJECTS_MOST:
        raise Refused("invalid", "id", f"must name 1 to {OBJECTS_MOST} objects")
    arguments = {name: values[name] for name in ARGUMENTS.get(act, ()) if values.get(name)}
    uid = await operations.insert_edit(
        tx, home.org, home.id, started_by=principal.uid, total=len(objects)
    )
    if uid is None:
        raise Refused(BUSY, "", "another action on monitors of the project runs: try again later")
    text = msgspec.json.encode(arguments).decode()
    place = (home.org, home.id)
    if not await tables.insert_bulk_action(tx, uid, place, act, text, objects, undoes):
        raise Refused(NO_UNDO, "", "the action was undone before")
    return uid


async def begin_undo(tx: Tx, principal: Principal, project: UUID, row: BulkRow) -> UUID:
    """Begins the undo of an action: the opposite action on what it changed.

    The undo skips the monitors that were changed after the action.

    Raises:
        Refused as begin_action; invalid if the action has no undo; no_undo if it runs, or was
        undone before.
    """
    act = UNDO.get(row.kind)
    if act is None:
        raise Refused("invalid", "act", f"{row.act} has no undo")
    if not await has_ended(tx, row.uid):
        raise Refused(NO_UNDO, "", "the action has not ended: try again later")
    objects = await select_undo(tx, row.uid)
    return await _begin(tx, principal, project, act, row.values, objects, row.uid)


async def stop_action(tx: Tx, principal: Principal, project: UUID, uid: UUID) -> bool:
    """Requests that an action ends after its present object. False if it has ended.

    Raises:
        Refused not_found, forbidden.
    """
    await demand_project(tx, principal, EDIT, project)
    return await tables.request_stop(tx, uid, principal.label)


async def fail_action(tx: Tx, uid: UUID, error: str) -> None:
    """Ends an action whose next object cannot be settled."""
    if await tables.lock_bulk_action(tx, uid) is not None:
        await operations.fail(tx, uid, error)
    else:
        await operations.end_orphan(tx, uid)


async def perform_next(pool: Pool, uid: UUID, ground: BulkContext) -> bool:
    """Performs an action on its next object, or ends its operation.

    Returns False if the operation has ended, or another process performs it.
    """

    async def work(tx: Tx) -> bool:
        return await _perform(tx, uid, ground)

    try:
        return await pool.transact("bulk_action", work)
    except _ObjectRefused as why:
        refused = why

    async def note(tx: Tx) -> bool:
        if await tables.lock_bulk_action(tx, uid) is None:
            return False
        if refused.code == CHANGED_SINCE:
            await _settle(tx, uid, refused.place, ObjectState.SKIPPED)
        else:
            await _settle(tx, uid, refused.place, ObjectState.FAILED, (refused.code, refused.rule))
        return True

    return await pool.transact("bulk_action_failure", note)


async def _perform(tx: Tx, uid: UUID, ground: BulkContext) -> bool:
    row = await tables.lock_bulk_action(tx, uid)
    if row is None:
        await operations.end_orphan(tx, uid)
        return False
    if row.stopped_by is not None:
        await operations.fail(tx, uid, f"stopped by {row.stopped_by}")
        return False
    item = await tables.select_next(tx, uid)
    if item is None:
        await operations.succeed(tx, uid)
        return False
    who = None if row.started_by is None else await select_again(tx, row.started_by)
    if who is None or may(who, EDIT, Scope(row.org, row.project)) is not AccessDecision.ALLOWED:
        await operations.fail(tx, uid, _UNAUTHORIZED)
        return False
    try:
        undo = await act_on(tx, who, row, item, ground)
    except LockTimeout as why:
        raise _ObjectRefused(item.place, LOCKED, "") from why
    except Refused as why:
        rule = " ".join(part for part in (why.field, why.message) if part)
        raise _ObjectRefused(item.place, why.code, rule) from why
    if undo is None:
        await _settle(tx, uid, item.place, ObjectState.UNCHANGED)
    else:
        await _settle(tx, uid, item.place, ObjectState.CHANGED, undo=undo)
    return True


async def _settle(
    tx: Tx,
    uid: UUID,
    place: int,
    state: ObjectState,
    why: tuple[str | None, str | None] = (None, None),
    *,
    undo: UUID | None = None,
) -> None:
    code, rule = why
    if await tables.settle_object(tx, uid, place, state, undo=undo, code=code, rule=rule):
        await operations.advance(tx, uid, 1)


async def act_at_once(
    tx: Tx, principal: Principal, row: BulkRow, item: BulkObject, ground: BulkContext
) -> BulkChange | None:
    """Performs an action on one object as `act_on`, for a caller that keeps the undo itself."""
    uid = await act_on(tx, principal, row, item, ground)
    # The monitor is locked, so this is the revision that the change gave it.
    return None if uid is None else BulkChange(uid, await select_monitor_revision(tx, uid))


async def act_on(
    tx: Tx, principal: Principal, row: BulkRow, item: BulkObject, ground: BulkContext
) -> UUID | None:
    """Performs an action on one object.

    Returns the object that the undo needs; None if nothing had to be changed.

    Raises:
        Refused as the transaction of the action; changed_since if the monitor has not the expected
        revision.
    """
    act, values = row.kind, row.values
    if act is BulkAct.END:
        return await _end_maintenance(tx, principal, item.uid)
    if act is BulkAct.DELETE:
        await delete_any(tx, principal, item.uid)
        return item.uid
    if act is BulkAct.MAINTAIN:
        plan = _maintenance(item.uid, values, tx.now)
        made = await announce(tx, principal, row.project_uid, plan, None, ground.raw_days)
        return made.uid
    monitor = await _locked(tx, principal, item.uid)
    if (monitor.org, monitor.project) != (row.org, row.project):
        raise Refused(NOT_FOUND)
    if item.expected not in (None, monitor.revision):
        raise Refused(CHANGED_SINCE)
    if act in (BulkAct.ATTACH, BulkAct.DETACH):
        return await _channel(tx, principal, act, monitor, UUID(values["channel"]))
    given = _edit(act, monitor, values)
    if given is None:
        return None
    # Its own region is permitted, and the edit names no other.
    await edit_any(tx, principal, item.uid, given, RegionSpread(), ground.keyring, frozenset())
    return item.uid


async def _locked(tx: Tx, principal: Principal, uid: UUID) -> MonitorRow:
    """Returns the monitor, locked. A regional one by the lock of all its edits, before its parts.

    Raises:
        Refused not_found, forbidden.
    """
    row = demand_row(principal, EDIT, await select_monitor(tx, uid))
    if row.regional_of != row.id:
        return await demand_monitor(tx, principal, EDIT, uid)
    await compositions.lock_compositions_around(tx, uid)
    return demand_row(principal, EDIT, await select_monitor(tx, uid))


def _edit(act: BulkAct, row: MonitorRow, values: Mapping[str, str]) -> dict[str, object] | None:
    """Returns the fields of an edit, None if the monitor has these values."""
    tag, tags = values.get("tag", ""), list(row.tags)
    match act:
        case BulkAct.PAUSE | BulkAct.RESUME:
            wanted = act is BulkAct.RESUME
            return None if row.enabled is wanted else {"enabled": wanted}
        case BulkAct.TAG:
            return None if tag in tags else {"tags": [*tags, tag]}
        case _:
            return {"tags": [one for one in tags if one != tag]} if tag in tags else None


async def _channel(
    tx: Tx, principal: Principal, act: BulkAct, row: MonitorRow, channel: UUID
) -> UUID | None:
    known = {one.uid for one in await select_channels_of_monitor(tx, row.org, row.id)}
    if (channel in known) is (act is BulkAct.ATTACH):
        return None
    if act is BulkAct.ATTACH:
        await attach_channel(tx, principal, row.uid, channel)
    else:
        await detach_channel(tx, principal, row.uid, channel)
    return row.uid


def _maintenance(monitor: UUID, values: Mapping[str, str], now: Instant) -> Plan:
    """Returns the window of a monitor. A start that has passed meanwhile becomes the present."""
    starts, reason = Instant(now + _START_AFTER), values.get("reason", "")
    if values.get("starts_at"):
        starts = max(starts, from_text(values["starts_at"]))
        ends = from_text(values["ends_at"])
    else:
        ends = Instant(now + int(values["minutes"]) * MINUTE)
    return Plan(monitor=monitor, starts_at=starts, ends_at=ends, reason=reason)


async def _end_maintenance(tx: Tx, principal: Principal, uid: UUID) -> UUID | None:
    """Ends a window. Returns None if it was deleted, or is over."""
    try:
        await end(tx, principal, uid)
    except Refused as refused:
        if refused.code == FORBIDDEN:
            raise
        return None
    return uid
