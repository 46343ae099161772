"""Actions on a monitor outside its schedule: a run now, a new push token."""

from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit
from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...scheduling.tables import work_queues as queues
from ..rules.monitor import MonitorType
from ..tables import composite_wakeups, monitors
from .create_monitor import push_token
from .lock_monitor import demand_monitor
from .write_batch import EXTRA_CLAIM_US

EDIT = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """Requested run. A composite has a wakeup instead of a job."""

    key: MonitorKey
    type: str
    job: UUID


async def run_now(tx: Tx, principal: Principal, monitor: UUID) -> RequestedRun:
    """Requests a run of a monitor.

    Raises:
        Refused not_found, forbidden, in_use if a requested run waits, invalid if the monitor cannot
        run.
    """
    row = await demand_monitor(tx, principal, EDIT, monitor)
    if row.type == MonitorType.PUSH:
        raise Refused("invalid", "type", f"{row.type} cannot be run")
    if not row.enabled:
        raise Refused("invalid", "enabled", "the monitor is paused")
    job = uuid7()
    asked = RequestedRun(row.key, row.type, job)
    if row.type == MonitorType.COMPOSITE:
        # Another wakeup of a composite is harmless, so in_use does not apply.
        await composite_wakeups.wake_composites(tx, asked.key, tx.now)
        return asked
    until = Instant(tx.now + EXTRA_CLAIM_US)
    added = await queues.add_job(
        tx, job, row.org, row.id, row.shard, "asked", tx.now, until, replace=False
    )
    if not added:
        raise Refused("in_use")
    return asked


async def renew_push_token(tx: Tx, principal: Principal, monitor: UUID, keyring: Keyring) -> str:
    """Returns a new token. The old one expires with the commit."""
    row = await demand_monitor(tx, principal, EDIT, monitor)
    if row.type != MonitorType.PUSH:
        raise Refused("invalid", "type", "only a push monitor has a token")
    token, hashed, sealed = push_token(keyring, row.uid)
    await monitors.set_push_token(tx, row.org, row.id, hashed, sealed, tx.now)
    await audit(tx, principal, row.org, "monitor.update", f"monitor:{row.uid} push token renewed")
    return token
