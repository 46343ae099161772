"""Transactions of monitors: lock monitor."""

from uuid import UUID

from ...accounts.rules.access import Permission, Principal
from ...accounts.transactions.authorize import demand_row, is_managed
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import MonitorRow
from ..tables.monitors import lock_monitor


async def demand_monitor(
    tx: Tx, principal: Principal, action: Permission, monitor: UUID, *, to_delete: bool = False
) -> MonitorRow:
    """The monitor, locked for writing or to be deleted, if the principal may do this to it."""
    return demand_row(principal, action, await lock_monitor(tx, monitor, to_delete=to_delete))


def expect_unmanaged_monitor(principal: Principal, row: MonitorRow) -> None:
    """Refused managed_by_file: an edit of what a file says would be undone by the file."""
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")
