"""What a person may ask of a monitor beside its schedule: a run now, a new push token."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...keyring import Keyring
from ...pools import Tx
from ...rules.access import Action, Need, Principal
from ...rules.instant import Instant
from ...rules.monitor import MonitorType
from ...rules.refusal import Refused
from ...tables import monitors, queues
from ..authority import audit, demand_monitor
from .create_monitor import EXTRA_CLAIM_US, push_token

_EDIT = Action(Need.EDITOR)


async def run_now(tx: Tx, principal: Principal, monitor: UUID) -> UUID:
    """The job's id. Refused in_use while one waits, invalid where nothing is probed."""
    row = await demand_monitor(tx, principal, _EDIT, monitor)
    if row.type in (MonitorType.PUSH, MonitorType.COMPOSITE):
        raise Refused("invalid", "type", f"{row.type} has nothing to run")
    if not row.enabled:
        raise Refused("invalid", "enabled", "the monitor is paused")
    job = uuid7()
    until = Instant(tx.now + EXTRA_CLAIM_US)
    added = await queues.add_job(
        tx, job, row.org, row.id, row.shard, "asked", tx.now, until, replace=False
    )
    if not added:
        raise Refused("in_use")
    return job


async def renew_push_token(tx: Tx, principal: Principal, monitor: UUID, keyring: Keyring) -> str:
    """The new token; the old one ends with the commit."""
    row = await demand_monitor(tx, principal, _EDIT, monitor)
    if row.type != MonitorType.PUSH:
        raise Refused("invalid", "type", "only a push monitor has a token")
    token, hashed, sealed = push_token(keyring, row.uid)
    await monitors.set_push_token(tx, row.org, row.id, hashed, sealed, tx.now)
    await audit(tx, principal, row.org, "monitor.update", f"monitor:{row.uid} push token renewed")
    return token
