"""Channels that take the warnings of the monitors of their project."""

from ...engine.pools import Tx

_CHANNELS = """
select id from notification_channels
where org = %(org)s and project = %(project)s and takes_warnings and enabled and person is null
order by id
"""


async def select_warning_channels(tx: Tx, org: int, project: int) -> list[int]:
    return [key for (key,) in await tx.rows(_CHANNELS, org=org, project=project)]
