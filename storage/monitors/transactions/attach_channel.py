"""Attachment of channels to monitors."""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...notifications.tables import channels
from ...notifications.transactions.edit_channels import EDIT
from ..rows import MonitorRow
from .lock_monitor import demand_monitor, expect_unmanaged_monitor


async def attach_channel(tx: Tx, principal: Principal, monitor: UUID, channel: UUID) -> None:
    """Attaches a channel to a monitor. Idempotent.

    Raises:
        Refused not_found, forbidden, invalid if the project has no such channel, managed_by_file if
        a bundle states the channels of the monitor.
    """
    row = await demand_monitor(tx, principal, EDIT, monitor)
    await _expect_unstated(tx, principal, row)
    key = await channels.lock_shared_channel(tx, row.org, row.project, channel)
    if key is None:
        raise Refused("invalid", "channel_id", "names no channel of this project")
    if await channels.attach_channel(tx, row.org, row.id, key):
        target = f"monitor:{row.uid} channel:{channel}"
        await audit(tx, principal, row.org, "channel.attach", target)


async def detach_channel(tx: Tx, principal: Principal, monitor: UUID, channel: UUID) -> None:
    """Detaches a channel from a monitor.

    Raises:
        Refused not_found, forbidden, managed_by_file if a bundle states the channels of the
        monitor.
    """
    row = await demand_monitor(tx, principal, EDIT, monitor)
    await _expect_unstated(tx, principal, row)
    if not await channels.detach_channel(tx, row.org, row.id, channel):
        raise Refused(NOT_FOUND)
    target = f"monitor:{row.uid} channel:{channel}"
    await audit(tx, principal, row.org, "channel.detach", target)


async def _expect_unstated(tx: Tx, principal: Principal, row: MonitorRow) -> None:
    if await channels.are_channels_managed(tx, row.org, row.id):
        expect_unmanaged_monitor(principal, row)
