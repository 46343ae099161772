"""Recurring maintenance: announces the windows of a series up to `AHEAD_US` in advance.

Invariants: each occurrence is announced once. An announced window can be ended or annulled alone.
The end of a series archives future windows only. An occurrence that was not announced before its
start is omitted, because only users change the past.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import trio

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand, demand_project
from ...accounts.transactions.object_marks import SERIES, expect_unmanaged_object
from ...core.instant import DAY, SECOND, Instant
from ...core.naming import text_rule_broken
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ...scheduling.rules.maintenance_window import REASON_LONGEST
from ...services.tables.service_dependencies import lock_graph
from ..rows import SeriesRow
from ..rules import Recurrence, fault, occurrences
from ..tables import maintenance_series, maintenances
from .plan_maintenance import follow, monitor_of

SERIES_MOST: Final = 50
AHEAD_US: Final = 35 * DAY
# The occurrences since the beginning are computed at each change.
_BEGUN_BEFORE_MOST_US: Final = 3_653 * DAY
EDIT: Final = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPlan:
    """Requested series. `monitor` None covers the whole project."""

    recurrence: Recurrence
    monitor: UUID | None = None
    reason: str = ""


async def begin_series(tx: Tx, principal: Principal, project: UUID, plan: SeriesPlan) -> SeriesRow:
    """Creates a series and announces its first windows.

    Raises:
        Refused not_found, forbidden, invalid, maintenance_quota.
    """
    home = await demand_project(tx, principal, EDIT, project)
    await _check(plan, tx.now)
    if not await removals.lock_project_quota(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    monitor = await monitor_of(tx, home.org, home.id, plan.monitor)
    if await maintenance_series.count_series(tx, home.org, home.id) >= SERIES_MOST:
        raise Refused("maintenance_quota")
    uid = await maintenance_series.insert_series(
        tx, {"org": home.org, "project": home.id, **_values(plan, monitor)}
    )
    row = await maintenance_series.select_one_series(tx, uid)
    assert row is not None, "the new row is missing"
    await audit(tx, principal, row.org, "maintenance.repeat", _target(row))
    await _announce(tx, row)
    return row


async def put_held_series(
    tx: Tx, principal: Principal, home: ProjectRow, uid: UUID, plan: SeriesPlan
) -> None:
    """Creates or changes a series of a locked project, for a bundle. It can have begun before.

    The caller has checked its recurrence in a thread, and must reload the schedules afterwards. A
    new reason goes to the windows that have not begun. Another change archives these, and
    announces new ones.

    Raises:
        Refused invalid with its field.
    """
    _check_reason(plan)
    if plan.recurrence.starts_at < tx.now - _BEGUN_BEFORE_MOST_US:
        raise Refused("invalid", "starts_at", "must not be more than 10 years ago")
    values = _values(plan, await monitor_of(tx, home.org, home.id, plan.monitor))
    before = await maintenance_series.lock_series(tx, uid)
    if before is None:
        row_values = {"org": home.org, "project": home.id, **values}
        await maintenance_series.insert_series(tx, row_values, uid)
    elif _is_same_time(before, plan.recurrence) and before.monitor == values["monitor"]:
        # A window that people ended or annulled is not announced again.
        await maintenance_series.change_reason(tx, before, plan.reason)
    else:
        await maintenance_series.archive_to_come(tx, before)
        await maintenance_series.change_series(tx, before, values)
    row = await maintenance_series.select_one_series(tx, uid)
    assert row is not None, "it is locked or new"
    await audit(tx, principal, row.org, "maintenance.repeat", _target(row))
    await _announce_windows(tx, row)


async def end_held_series(tx: Tx, principal: Principal, series: UUID) -> None:
    """Ends a series of a locked project, for a bundle, which must reload the schedules."""
    row = await maintenance_series.lock_series(tx, series)
    if row is not None and row.ended_at is None:
        await maintenance_series.end_series(tx, row)
        await audit(tx, principal, row.org, "maintenance.repeat_end", _target(row))
        await maintenance_series.archive_to_come(tx, row)


def _values(plan: SeriesPlan, monitor: int | None) -> dict[str, Any]:
    return {
        "monitor": monitor,
        "rrule": plan.recurrence.rrule,
        "starts": plan.recurrence.starts_at,
        "duration": plan.recurrence.duration_us // SECOND,
        "timezone": plan.recurrence.timezone,
        "reason": plan.reason,
    }


async def announce_ahead(tx: Tx, series: UUID) -> int:
    """Announces the next windows of a series. Returns their number."""
    row = await maintenance_series.lock_free_series(tx, series)
    if row is None or row.ended_at is not None:
        return 0
    return await _announce(tx, row)


async def end_series(tx: Tx, principal: Principal, series: UUID) -> None:
    """Ends a series and archives its future windows.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    found = await maintenance_series.select_one_series(tx, series)
    # The project first: an application of a bundle, which can own the series, has locked it.
    if found is None or await lock_graph(tx, found.org, found.project) is None:
        raise Refused(NOT_FOUND)
    row = await maintenance_series.lock_series(tx, series)
    if row is None or row.ended_at is not None:
        raise Refused(NOT_FOUND)
    demand(principal, EDIT, Scope(row.org, row.project))
    await expect_unmanaged_object(tx, principal, row.org, row.project, SERIES, row.uid)
    await maintenance_series.end_series(tx, row)
    await audit(tx, principal, row.org, "maintenance.repeat_end", _target(row))
    for uid in await maintenance_series.select_windows_to_come(tx, row):
        window = await maintenances.lock_maintenance(tx, uid)
        if window is not None:
            await maintenances.archive(tx, window)
    await follow(tx, row.org, row.project, row.monitor)


async def _announce(tx: Tx, row: SeriesRow) -> int:
    found = await _announce_windows(tx, row)
    if found:
        await follow(tx, row.org, row.project, row.monitor)
    return found


async def _announce_windows(tx: Tx, row: SeriesRow) -> int:
    through = Instant(tx.now + AHEAD_US)
    after = max(row.generated_through, Instant(tx.now - 1))
    # Those since the beginning are computed too, which can take a tenth of a second.
    found = await trio.to_thread.run_sync(occurrences, row.recurrence, after, through)
    for starts in found:
        await maintenances.insert_maintenance(
            tx,
            {
                "org": row.org,
                "project": row.project,
                "monitor": row.monitor,
                "starts": starts,
                "ends": Instant(starts + row.duration_seconds * SECOND),
                "reason": row.reason,
                "series": row.id,
            },
        )
    await maintenance_series.mark_announced(tx, row, through)
    return len(found)


def _is_same_time(row: SeriesRow, recurrence: Recurrence) -> bool:
    before = (row.rrule, row.starts_at, row.duration_seconds, row.timezone)
    seconds = recurrence.duration_us // SECOND
    return before == (recurrence.rrule, recurrence.starts_at, seconds, recurrence.timezone)


async def _check(plan: SeriesPlan, now: Instant) -> None:
    # The check computes the occurrences of four years.
    said = await trio.to_thread.run_sync(fault, plan.recurrence)
    if said is not None:
        raise Refused("invalid", *said)
    _check_reason(plan)
    if plan.recurrence.starts_at < now:
        raise Refused("invalid", "starts_at", "must not be before now")


def _check_reason(plan: SeriesPlan) -> None:
    if len(plan.reason) > REASON_LONGEST:
        raise Refused("invalid", "reason", f"must be at most {REASON_LONGEST} characters")
    expect("reason", text_rule_broken(plan.reason))


def _target(row: SeriesRow) -> str:
    about = "" if row.monitor is None else f" monitor:{row.monitor_uid}"
    return f"maintenance_series:{row.uid} project:{row.project_uid}{about}"
