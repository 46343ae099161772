"""Announcement, end and annulment of maintenance by editors of a project.

Invariants: a change of the past requires a preview of it. Figures that it affects are repaired.
Schedules are reloaded, so that every window that is reserved later takes it into account. Verdicts
of the ledger stay withheld after an annulment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final
from uuid import UUID

from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand, demand_project
from ...core.instant import Instant, to_text
from ...core.key import MonitorKey
from ...core.naming import text_rule_broken, words_fault
from ...core.refusal import Refused, expect
from ...core.time_span import TimeSpan, by_day
from ...engine.pools import Tx
from ...figures.queries.monitor_time import AssumedMaintenance
from ...monitors.tables import composite_wakeups, monitors
from ...results.queries.longest_freshness import select_longest_hold_of, select_longest_holds
from ...results.rows import RepairRequest
from ...results.rules.repair_range import TOO_OLD, earliest_repairable
from ...results.tables import repair_requests
from ...scheduling.rules.maintenance_window import PREVIEW_US, plan_fault
from ...scheduling.tables import schedule_edits
from ..queries import maintenances as maintenances_queries
from ..rows import MaintenanceRow
from ..tables import maintenances
from ..tables.maintenances import Covered, PreviewRow
from .preview_services import Previewed, preview_services

TO_COME_MOST: Final = 500
EDIT: Final = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Requested maintenance. `monitor` None covers the whole project.

    Status pages notify their subscribers by `public_title`, unless it is empty.
    """

    starts_at: Instant
    ends_at: Instant
    monitor: UUID | None = None
    reason: str = ""
    public_title: str = ""


@dataclass(frozen=True, slots=True)
class MaintenancePreview:
    uid: UUID
    expires_at: Instant
    earliest_repairable: Instant
    services: Sequence[Previewed]

    @property
    def is_approximate(self) -> bool:
        return any(each.reason is not None for each in self.services)


async def announce(
    tx: Tx, principal: Principal, project: UUID, plan: Plan, preview: UUID | None, raw_days: int
) -> MaintenanceRow:
    """Announces a maintenance.

    Raises:
        Refused not_found, forbidden, invalid, maintenance_quota; if it begins before now also
        preview_required, preview_stale, older_than_raw_retention.
    """
    home = await demand_project(tx, principal, EDIT, project)
    _check(plan, tx.now)
    if not await removals.lock_project_quota(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    monitor = await monitor_of(tx, home.org, home.id, plan.monitor)
    if await maintenances.count_to_come(tx, home.org, home.id) >= TO_COME_MOST:
        raise Refused("maintenance_quota")
    if plan.starts_at < tx.now:
        await _expect_repairable(tx, home.org, home.id, monitor, plan.starts_at, raw_days)
        seen = ("create", None, monitor, plan.starts_at, plan.ends_at)
        await _expect_seen(tx, home.org, home.id, preview, seen)
    uid = await maintenances.insert_maintenance(
        tx,
        {
            "org": home.org,
            "project": home.id,
            "monitor": monitor,
            "starts": plan.starts_at,
            "ends": plan.ends_at,
            "reason": plan.reason,
            "series": None,
            "public_title": plan.public_title or None,
        },
    )
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "maintenance.create", _target(row))
    await _follow(tx, row, Instant(min(row.ends_at, tx.now)))
    return row


async def end(tx: Tx, principal: Principal, maintenance: UUID) -> None:
    """Archives a future maintenance, or ends a present one now.

    Raises:
        Refused not_found, forbidden; preview_required if it is over and must be annulled.
    """
    row = await _lock(tx, principal, maintenance)
    if row.over_at <= tx.now:
        raise Refused("preview_required")
    if row.starts_at > tx.now:
        await maintenances.archive(tx, row)
    else:
        await maintenances.cut_short(tx, row)
    await audit(tx, principal, row.org, "maintenance.end", _target(row))
    await _follow(tx, row, row.starts_at)


async def annul(
    tx: Tx, principal: Principal, maintenance: UUID, preview: UUID | None, raw_days: int
) -> None:
    """Removes all effects of a maintenance except verdicts.

    Raises:
        Refused not_found, forbidden; if it has begun also preview_required, preview_stale,
        preview_approximate, older_than_raw_retention.
    """
    row = await _lock(tx, principal, maintenance)
    if row.starts_at < tx.now:
        await _expect_repairable(tx, row.org, row.project, row.monitor, row.starts_at, raw_days)
        seen = ("annul", row.id, row.monitor, row.starts_at, row.ends_at)
        if (await _expect_seen(tx, row.org, row.project, preview, seen)).approximate:
            raise Refused("preview_approximate")
    await maintenances.archive(tx, row)
    await audit(tx, principal, row.org, "maintenance.annul", _target(row))
    await _follow(tx, row, Instant(min(row.over_at, tx.now)))


async def preview_announcement(
    tx: Tx, principal: Principal, project: UUID, plan: Plan, raw_days: int
) -> MaintenancePreview:
    """Returns the effect of an announcement.

    Raises:
        Refused not_found, forbidden, invalid, older_than_raw_retention.
    """
    home = await demand_project(tx, principal, EDIT, project)
    _check(plan, tx.now)
    monitor = await monitor_of(tx, home.org, home.id, plan.monitor)
    return await _preview(tx, home.org, home.id, raw_days, "create", None, monitor, plan)


async def preview_annulment(
    tx: Tx, principal: Principal, project: UUID, maintenance: UUID, raw_days: int
) -> MaintenancePreview:
    """Returns the effect of an annulment.

    Raises:
        Refused not_found, forbidden, older_than_raw_retention; invalid, if the project has no such
        maintenance.
    """
    home = await demand_project(tx, principal, EDIT, project)
    row = await maintenances_queries.select_maintenance(tx, maintenance)
    if row is None or (row.org, row.project) != (home.org, home.id) or row.archived_at is not None:
        raise Refused("invalid", "maintenance_id", "names no maintenance of this project")
    plan = Plan(starts_at=row.starts_at, ends_at=row.ends_at)
    return await _preview(tx, home.org, home.id, raw_days, "annul", row.id, row.monitor, plan)


async def _preview(
    tx: Tx,
    org: int,
    project: int,
    raw_days: int,
    mutation: str,
    maintenance: int | None,
    monitor: int | None,
    plan: Plan,
) -> MaintenancePreview:
    earliest, hold_us = await _expect_repairable(
        tx, org, project, monitor, plan.starts_at, raw_days
    )
    expires_at = Instant(tx.now + PREVIEW_US)
    shown = await _services(tx, org, project, earliest, hold_us, maintenance, monitor, plan)
    uid = await maintenances.insert_preview(
        tx,
        {
            "org": org,
            "project": project,
            "mutation": mutation,
            "maintenance": maintenance,
            "monitor": monitor,
            "starts": plan.starts_at,
            "ends": plan.ends_at,
            "expires": expires_at,
            "approximate": any(each.reason is not None for each in shown),
        },
    )
    return MaintenancePreview(uid, expires_at, earliest, shown)


async def _services(
    tx: Tx,
    org: int,
    project: int,
    earliest: Instant,
    hold_us: int,
    maintenance: int | None,
    monitor: int | None,
    plan: Plan,
) -> list[Previewed]:
    ever = await maintenances.select_covered_ever(tx, org, project, monitor)
    ids = [id_ for id_, _ in ever]
    range_ = TimeSpan(plan.starts_at, plan.ends_at)
    if maintenance is None:
        supposing = AssumedMaintenance(monitors=frozenset(ids), more=range_)
    else:
        supposing = AssumedMaintenance(apart_from=maintenance)
    begun = perf_counter()
    return await preview_services(
        tx, org, ids, range_, hold_us, supposing, earliest, lambda: perf_counter() - begun
    )


async def _expect_repairable(
    tx: Tx, org: int, project: int, monitor: int | None, starts_at: Instant, raw_days: int
) -> tuple[Instant, int]:
    """Returns the earliest repairable instant, and the longest freshness of a result in µs.

    A result before the maintenance is not fresh after it, so it changes figures after its end.
    """
    ever = await maintenances.select_covered_ever(tx, org, project, monitor)
    hold_us = await select_longest_hold_of(tx, [MonitorKey((org, key)) for key, _ in ever])
    earliest = earliest_repairable(tx.now, raw_days, hold_us)
    if starts_at < earliest:
        fault = f"must not be before {to_text(earliest)}: older results are deleted"
        raise Refused(TOO_OLD, "starts_at", fault)
    return earliest, hold_us


async def _expect_seen(
    tx: Tx, org: int, project: int, preview: UUID | None, wanted: tuple[object, ...]
) -> PreviewRow:
    """Checks that a recent preview has shown the same change, and deletes the preview."""
    if preview is None:
        raise Refused("preview_required")
    found = await maintenances.pop_preview(tx, org, project, preview)
    if found is None or found.expires_at < tx.now:
        raise Refused("preview_stale")
    seen = (found.mutation, found.maintenance, found.monitor, found.starts_at, found.ends_at)
    if seen != wanted:
        raise Refused("preview_stale")
    return found


async def _follow(tx: Tx, row: MaintenanceRow, past_until: Instant) -> None:
    """Requests repairs of past figures and reloads schedules.

    A result before the maintenance is not fresh after it. Therefore the repairs extend beyond its
    end by the longest freshness.
    """
    if row.starts_at < past_until:
        ever = await maintenances.select_covered_ever(tx, row.org, row.project, row.monitor)
        holds = await select_longest_holds(
            tx, [MonitorKey((row.org, monitor)) for monitor, _ in ever]
        )
        ranges = [
            RepairRequest(row.org, shard, monitor, day.from_, day.until, "maintenance")
            for monitor, shard in ever
            for day in by_day(
                TimeSpan(
                    row.starts_at,
                    Instant(past_until + holds.get(MonitorKey((row.org, monitor)), 0)),
                )
            )
        ]
        await repair_requests.insert_repairs(tx, ranges)
    await follow(tx, row.org, row.project, row.monitor)


async def follow(tx: Tx, org: int, project: int, monitor: int | None) -> None:
    """Reloads schedules and wakes the composites of the covered monitors.

    Locks: schedule edits, so that this is the last step of a transaction.
    """
    covered = await maintenances.select_covered(tx, org, project, monitor)
    await _call_composites(tx, org, covered)
    # Not the monitors that are covered now: one can be created, or change its shard, meanwhile.
    if monitor is None:
        await schedule_edits.edit_everywhere(tx, org, project=project)
    else:
        await schedule_edits.edit_everywhere(tx, org, monitor=monitor)


async def _call_composites(tx: Tx, org: int, covered: list[Covered]) -> None:
    """Wakes the parents of the covered monitors, as after a change of a child."""
    await composite_wakeups.wake_parents_of(tx, [MonitorKey((org, one.id)) for one in covered])


async def monitor_of(tx: Tx, org: int, project: int, monitor: UUID | None) -> int | None:
    if monitor is None:
        return None
    known = await monitors.select_ids(tx, org, project, [monitor])
    if monitor not in known:
        raise Refused("invalid", "monitor_id", "names no monitor of this project")
    return known[monitor]


async def _lock(tx: Tx, principal: Principal, maintenance: UUID) -> MaintenanceRow:
    row = await maintenances.lock_maintenance(tx, maintenance)
    if row is None or row.archived_at is not None:
        raise Refused(NOT_FOUND)
    demand(principal, EDIT, Scope(row.org, row.project))
    return row


async def _written(tx: Tx, uid: UUID) -> MaintenanceRow:
    row = await maintenances_queries.select_maintenance(tx, uid)
    assert row is not None, "the new row is missing"
    return row


def _check(plan: Plan, now: Instant) -> None:
    fault = plan_fault(plan.starts_at, plan.ends_at, plan.reason, now)
    if fault is not None:
        raise Refused("invalid", *fault)
    expect("reason", text_rule_broken(plan.reason))
    expect("public_title", words_fault(plan.public_title))


def _target(row: MaintenanceRow) -> str:
    about = "" if row.monitor is None else f" monitor:{row.monitor_uid}"
    return f"maintenance:{row.uid} project:{row.project_uid}{about}"
