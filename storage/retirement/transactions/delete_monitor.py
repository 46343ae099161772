"""Deletion of a monitor with its jobs and open outage."""

from collections.abc import Sequence
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.rows import MonitorRow
from ...monitors.tables import compositions, monitors
from ...monitors.transactions.edit_monitor import EDIT
from ...monitors.transactions.lock_monitor import (
    demand_monitor,
    expect_no_part,
    expect_unmanaged_monitor,
)
from ...monitors.transactions.monitor_audit import target_of
from ...results.transactions.delete_history import delete_history_of
from ...scheduling.tables import schedule_edits
from ...scheduling.tables import work_queues as queues
from ...services.queries import service_revisions
from ...services.rules.epoch import counts_on
from ...services.tables import service_revisions as declarations
from .end_outage_of_deleted import end_with_monitor


async def delete_monitor(tx: Tx, principal: Principal, monitor: UUID) -> MonitorRow:
    """Deletes a monitor.

    Raises:
        Refused not_found, forbidden, managed_by_file; in_use as in `expect_unused`.
    """
    await compositions.lock_compositions_around(tx, monitor)
    row = await demand_monitor(tx, principal, EDIT, monitor, to_delete=True)
    expect_unmanaged_monitor(principal, row)
    expect_no_part(row)
    await expect_unused(tx, row)
    await remove_monitor(tx, row)
    await audit(tx, principal, row.org, "monitor.delete", target_of(row))
    await log_removed(tx, [row])
    return row


async def remove_monitor(tx: Tx, row: MonitorRow) -> None:
    """Deletes a locked monitor that no other object uses, or whose users are deleted too.

    `log_removed` follows as the last write of the transaction.
    """
    archived = await compositions.archive_monitor(tx, row.key, tx.now)
    await queues.delete_jobs_of(tx, [row.key])
    await end_with_monitor(tx, row)
    await monitors.delete_monitor(tx, row.org, row.id)
    if not archived:
        await delete_history_of(tx, [row.key])


async def log_removed(tx: Tx, rows: Sequence[MonitorRow]) -> None:
    """Logs deleted monitors for the schedulers, under the lock of their shards."""
    edited: dict[int, list[MonitorKey]] = {}
    for row in rows:
        edited.setdefault(row.shard, []).append(row.key)
    await schedule_edits.lock_edits(tx, edited)
    await schedule_edits.insert_edits(tx, edited)


async def expect_unused(tx: Tx, row: MonitorRow) -> None:
    """Refuses if another object uses the monitor. The project's compositions are locked.

    Raises:
        Refused in_use: a monitor depends on it, a composite contains it, or a present or future
        declaration of a service names it.
    """
    edges = await monitors.select_dependencies(tx, row.org, row.project)
    if any(row.id in wanted for wanted in edges.values()):
        raise Refused("in_use")
    parent = await compositions.select_parent_slug(tx, row.key)
    if parent is not None:
        raise Refused("in_use", "children", f"it is part of {parent}")
    # A declaration locks the project too.
    declaring = await declarations.select_declaring(tx, row.org, [row.id])
    for revisions in (await service_revisions.select_revisions(tx, declaring)).values():
        if counts_on(revisions, tx.now, row.id):
            raise Refused("in_use")
