"""Reservation: moves a shard's cursor and writes every window that it passes.

Invariant: the cursor passes each instant once, under the terms committed at that time, for any
number of concurrent schedulers and edits.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...core.instant import MINUTE, Instant
from ...core.key import ProjectKey
from ...engine.edit_notify import AGAIN, notify_work
from ...engine.pools import Tx
from ..queries import shards as shards_queries
from ..rules.run_batch import CANARY, RunBatch, cut
from ..rules.run_schedule import ResultMode, ScheduleTerm
from ..rules.schedule_plan import PlannedMonitor, SchedulePlan
from ..rules.work import Work
from ..tables import schedule_edits
from ..tables import shards as schedules
from ..tables.schedule_edits import ScheduleEdit

# Limit of one statement. After an outage, several are needed.
STEP_US: Final = MINUTE
# Limit of edited monitors that a reservation reads while edits wait. More of them are read before
# the lock is taken.
EDITED_UNDER_LOCK_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class ReservedStep:
    """Result of one reservation. Batches have their ids."""

    through: Instant
    windows: int
    batches: Sequence[tuple[int, RunBatch]]


def step_end(reserved_through: Instant, ahead: Instant) -> Instant:
    return min(ahead, Instant(reserved_through + STEP_US))


async def select_newest_edit(tx: Tx, shard: int) -> int:
    """Returns the newest edit; every edit up to it is committed.

    A plan that is loaded in a later transaction contains all of them.
    """
    await schedule_edits.lock_reservation(tx, shard)
    return await schedule_edits.select_newest_edit(tx, shard)


async def load_plan(tx: Tx, shard: int, edits_through: int) -> SchedulePlan | None:
    """Returns the plan as currently committed, or None if the shard is deleted."""
    found = await shards_queries.select_shards_by_id(tx, [shard])
    if not found:
        return None
    after = found[0].reserved_through
    monitors = await _planned(tx, shard, after, None)
    return SchedulePlan.of(shard, found[0].region, after, monitors, edits_through)


async def apply_edits_early(tx: Tx, plan: SchedulePlan) -> bool:
    """Applies the committed edits without a lock. The reservation applies the later ones.

    Returns False if edits were deleted that the plan does not have, or the shard is deleted.
    """
    seen = await schedule_edits.select_edits_after(tx, plan.shard, plan.edits_through)
    if seen is None or seen.deleted_through > plan.edits_through:
        return False
    edits = _unapplied(plan, seen.edits)
    await _apply(tx, plan, seen.reserved_through, edits)
    # An open transaction can have an edit with a smaller number, so `edits_through` does not move.
    plan.applied_early.update(edit.seq for edit in edits)
    return True


async def reserve_windows(
    tx: Tx, plan: SchedulePlan, ahead: Instant, holder: UUID | None, *, at_any_cost: bool = True
) -> ReservedStep | None:
    """Reserves one step up to `ahead` and assigns the runnable batches to `holder`.

    Returns None if the plan must be updated first: edits were deleted that it does not have, or,
    unless `at_any_cost`, a project or more than EDITED_UNDER_LOCK_MOST monitors were edited.
    Returns None also if the shard is deleted.
    """
    await schedule_edits.lock_reservation(tx, plan.shard)
    seen = await schedule_edits.select_edits_after(tx, plan.shard, plan.edits_through)
    if seen is None or seen.deleted_through > plan.edits_through:
        return None
    edits = _unapplied(plan, seen.edits)
    if not at_any_cost and _is_long(edits):
        return None
    if plan.reserved_through != seen.reserved_through:
        # Another scheduler reserved windows, or the last commit of this one failed and the plan is
        # ahead of the database.
        plan.timetable.seek(seen.reserved_through)
    await _apply(tx, plan, seen.reserved_through, edits)
    if seen.edits:
        # Under this lock no edit is open, so all edits up to this one are committed.
        plan.edits_through = seen.edits[-1].seq
    plan.applied_early.clear()
    through = step_end(seen.reserved_through, ahead)
    if through <= seen.reserved_through:
        return ReservedStep(seen.reserved_through, 0, ())
    due = plan.take(through)
    batches, spared = cut(due, tx.now)
    keys = await schedules.reserve(tx, plan.shard, through, batches, spared, holder)
    await _announce(tx, batches, holder)
    return ReservedStep(through, len(due), list(zip(keys, batches, strict=True)))


async def _announce(tx: Tx, batches: Sequence[RunBatch], holder: UUID | None) -> None:
    """Tells other processes about windows that they can run."""
    kinds = {item.kind for item in batches if item.published}
    if holder is None and "run" in kinds:
        await notify_work(tx, Work.JOBS)
    elif kinds & {"composite", CANARY}:
        await notify_work(tx, AGAIN)


def _unapplied(plan: SchedulePlan, edits: Sequence[ScheduleEdit]) -> list[ScheduleEdit]:
    return [edit for edit in edits if edit.seq not in plan.applied_early]


def _is_long(edits: Sequence[ScheduleEdit]) -> bool:
    """Returns whether the edits name too many monitors to read under the lock.

    A project counts as too many, since it can have any number of monitors.
    """
    if any(edit.project is not None for edit in edits):
        return True
    return sum(len(edit.monitors) for edit in edits) > EDITED_UNDER_LOCK_MOST


async def _apply(tx: Tx, plan: SchedulePlan, after: Instant, edits: Sequence[ScheduleEdit]) -> None:
    named = {key for edit in edits for key in edit.monitors}
    projects = [
        ProjectKey((edit.org, edit.project))
        for edit in edits
        if edit.org is not None and edit.project is not None
    ]
    if projects:
        # Reads the current monitors, including those created or moved here since the edit.
        named.update(await schedules.select_monitors_of_projects(tx, plan.shard, projects))
    if named:
        plan.replace(named, await _planned(tx, plan.shard, after, named))


async def _planned(
    tx: Tx, shard: int, after: Instant, named: Collection[int] | None
) -> dict[int, PlannedMonitor]:
    """Reads the committed monitors of a shard, or only those in `named`."""
    terms: dict[int, list[ScheduleTerm]] = {}
    kinds: dict[int, tuple[int, ResultMode, bool]] = {}
    found = await schedules.select_terms_after(tx, shard, after, named)
    for org, monitor, manner, is_canary, term in found:
        terms.setdefault(monitor, []).append(term)
        kinds[monitor] = org, manner, is_canary
    maintenance = await shards_queries.select_maintenances(tx, after, monitors=sorted(kinds))
    return {
        monitor: PlannedMonitor(
            org=org,
            manner=manner,
            is_canary=is_canary,
            terms=terms[monitor],
            maintenance=maintenance.get(monitor, ()),
        )
        for monitor, (org, manner, is_canary) in kinds.items()
    }
