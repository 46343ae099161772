"""Supersession of a monitor by a service, and retirement of superseded monitors.

Invariants: a retired monitor has a successor when it is retired, does not run, and is used by no
composite, dependency or service. All its records remain. The lock of the project serializes these
edits with declarations of services.
"""

from uuid import UUID

from msgspec import structs

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_row
from ...alerting.tables import outages
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.queries import monitors as monitors_queries
from ...monitors.rows import MonitorRow
from ...monitors.tables import compositions, monitors
from ...monitors.transactions.edit_monitor import edit_held, retire_held
from ...monitors.transactions.lock_monitor import (
    demand_monitor,
    expect_no_part,
    expect_unmanaged_monitor,
)
from ...monitors.transactions.monitor_audit import target_of
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...services.tables import services
from ...services.transactions.lock_service import lock_home
from .delete_monitor import expect_unused
from .end_outage_of_deleted import end_with_monitor

EDIT = Permission(Need.EDITOR)


async def set_successor(
    tx: Tx, principal: Principal, monitor: UUID, service: UUID | None
) -> MonitorRow:
    """Sets the successor of a monitor; None removes it.

    Raises:
        Refused not_found, forbidden, managed_by_file; invalid if the project has no such service;
        retired if a retired monitor would have no successor.
    """
    before = await lock_with_project(tx, principal, monitor)
    successor = None
    if service is not None:
        await services.lock_shared_service(tx, service)
        found = await services.select_service(tx, service)
        if found is None or (found.org, found.project) != (before.org, before.project):
            raise Refused("invalid", "service_id", "names no service of this project")
        successor = found.id
    await monitors.lock_monitors_of(tx, before.org, [before.id])
    row = await _again(tx, monitor)
    expect_unmanaged_monitor(principal, row)
    expect_no_part(row)
    if successor is None and row.retired_at is not None:
        raise Refused("retired")
    if successor == row.superseded_by:
        return row
    await monitors.set_superseded(tx, row.org, row.id, successor)
    stands = "none" if service is None else str(service)
    await audit(tx, principal, row.org, "monitor.supersede", f"{target_of(row)} by={stands}")
    return await _again(tx, monitor)


async def retire(tx: Tx, principal: Principal, monitor: UUID) -> MonitorRow:
    """Disables the monitor and notifies the notified channels. No effect if it is retired.

    Raises:
        Refused not_found, forbidden, managed_by_file, not_superseded without a successor, in_use.
    """
    await lock_with_project(tx, principal, monitor)
    await compositions.lock_compositions_around(tx, monitor)
    before = await demand_monitor(tx, principal, EDIT, monitor)
    expect_unmanaged_monitor(principal, before)
    expect_no_part(before)
    if before.retired_at is not None:
        return before
    if before.superseded_by is None:
        raise Refused("not_superseded")
    await expect_unused(tx, before)
    together = MonitorWriteBatch(principal)
    await retire_held(tx, together, before)
    together.audit(before.org, "monitor.retire", target_of(before))
    await end_with_monitor(tx, before)
    for outage in (await outages.select_open_outages(tx, [before.key])).values():
        await outages.end_outage(tx, outage, tx.now)
    # The end of the outage has locked the state, which the remaining writes need.
    tx.holds_all()
    await together.flush(tx)
    return await _again(tx, monitor)


async def reactivate(
    tx: Tx, principal: Principal, monitor: UUID, keyring: Keyring, regions: frozenset[str]
) -> MonitorRow:
    """Enables a retired monitor. Its successor remains.

    Raises:
        Refused not_found, forbidden, managed_by_file, not_retired, or an error of `edit_monitor`.
    """
    await lock_with_project(tx, principal, monitor)
    await compositions.lock_compositions_around(tx, monitor, only_composites=True)
    before = await demand_monitor(tx, principal, EDIT, monitor)
    expect_unmanaged_monitor(principal, before)
    expect_no_part(before)
    if before.retired_at is None:
        raise Refused("not_retired")
    await monitors.reactivate_monitor(tx, before.org, before.id)
    together = MonitorWriteBatch(principal)
    again = structs.replace(before, retired_at=None)
    await edit_held(tx, together, again, {"enabled": True}, keyring, regions)
    together.audit(before.org, "monitor.reactivate", target_of(before))
    await together.flush(tx)
    return await _again(tx, monitor)


async def lock_with_project(tx: Tx, principal: Principal, monitor: UUID) -> MonitorRow:
    """Returns the monitor with its project locked.

    Raises:
        Refused not_found, forbidden.
    """
    row = demand_row(principal, EDIT, await monitors_queries.select_monitor(tx, monitor))
    await lock_home(tx, principal, row.project_uid)
    return await _again(tx, monitor)


async def _again(tx: Tx, monitor: UUID) -> MonitorRow:
    row = await monitors_queries.select_monitor(tx, monitor)
    if row is None:
        raise Refused(NOT_FOUND)
    return row
