"""Locks of monitors with a check of permissions."""

from uuid import UUID

from ...accounts.rules.access import Permission, Principal
from ...accounts.transactions.authorize import demand_row, is_managed
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import MonitorRow
from ..tables.monitors import lock_monitor

# Refusal of a write of one part of a regional monitor.
REGIONAL = "regional_monitor"


async def demand_monitor(
    tx: Tx, principal: Principal, action: Permission, monitor: UUID, *, to_delete: bool = False
) -> MonitorRow:
    """Returns the monitor, locked for writing or deletion, if the principal is permitted."""
    return demand_row(principal, action, await lock_monitor(tx, monitor, to_delete=to_delete))


def expect_unmanaged_monitor(principal: Principal, row: MonitorRow) -> None:
    """Refuses an edit of a managed monitor, because the file would undo it.

    Raises:
        Refused managed_by_file.
    """
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")


def expect_no_part(row: MonitorRow) -> None:
    """Refuses an edit of one part of a regional monitor.

    Raises:
        Refused regional_monitor.
    """
    if row.regional_of is not None:
        raise Refused(REGIONAL)
