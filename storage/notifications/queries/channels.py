"""Reads of channels."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import ChannelRow
from ..tables.channels import _BY_UID, _COLUMNS, _FROM

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM} where c.org = %(org)s and c.project = %(project)s and c.person is null
order by c.id
"""

_OF_MONITOR = f"""
select {_COLUMNS} {_FROM} join monitor_channels m on m.org = c.org and m.channel = c.id
where m.org = %(org)s and m.monitor = %(monitor)s order by c.id
"""


async def select_channel(tx: Tx, uid: UUID) -> ChannelRow | None:
    return await tx.one(ChannelRow, _BY_UID, uid=uid)


async def select_channels_of(tx: Tx, org: int, project: int) -> list[ChannelRow]:
    return await tx.structs(ChannelRow, _OF_PROJECT, org=org, project=project)


async def select_channels_of_monitor(tx: Tx, org: int, monitor: int) -> list[ChannelRow]:
    return await tx.structs(ChannelRow, _OF_MONITOR, org=org, monitor=monitor)
