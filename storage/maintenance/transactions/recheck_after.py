"""Recheck of monitors at the end of a maintenance, as their state is unknown until a run."""

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor import MonitorType
from ...monitors.tables import composite_wakeups
from ...monitors.transactions.write_batch import EXTRA_CLAIM_US
from ...scheduling.tables import work_queues as queues
from ..tables import maintenances

AT_ONCE = 20
# Types without a run that can be requested: push monitors report, composites are woken.
_NOT_RUN = frozenset({MonitorType.PUSH, MonitorType.COMPOSITE})


async def resume_after(tx: Tx) -> int:
    """Requests runs of the monitors of ended maintenances. Returns the number of maintenances.

    A maintenance that ended while no process ran is found later. A monitor within another
    maintenance is run too and stays in maintenance.
    """
    over = await maintenances.lock_over(tx, AT_ONCE)
    for row in over:
        covered = await maintenances.select_covered(tx, row.org, row.project, row.monitor)
        keys = [MonitorKey((row.org, one.id)) for one in covered]
        await composite_wakeups.wake_parents_of(tx, keys)
        for one in covered:
            if one.type == MonitorType.COMPOSITE and one.enabled:
                await composite_wakeups.wake_composites(tx, MonitorKey((row.org, one.id)), tx.now)
        run = [one.id for one in covered if one.type not in _NOT_RUN]
        until = Instant(tx.now + EXTRA_CLAIM_US)
        await queues.add_extra_runs(tx, row.org, run, tx.now, until)
        await maintenances.mark_resumed(tx, row)
    return len(over)
