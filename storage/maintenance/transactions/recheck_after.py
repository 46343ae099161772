"""When a maintenance is over, what it covered is checked at once and not at its next window: until
then nothing is known of it."""

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor import MonitorType
from ...monitors.tables import composite_wakeups
from ...monitors.transactions.write_batch import EXTRA_CLAIM_US
from ...scheduling.tables import work_queues as queues
from ..tables import maintenances

AT_ONCE = 20
# What no run can be asked for: a push reports by itself, a composite is called for.
_NOT_RUN = frozenset({MonitorType.PUSH, MonitorType.COMPOSITE})


async def resume_after(tx: Tx) -> int:
    """How many maintenances were found over. One that ended while nobody was there is found when
    somebody is; who is in another one still is checked then and stays in that."""
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
