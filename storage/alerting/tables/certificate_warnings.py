"""Open warnings of certificates. The lock of the monitor's state covers them."""

from typing import Final
from uuid import UUID

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

_OPEN: Final = """
insert into certificate_warnings (org, monitor, since_at, thread)
values (%(org)s, %(monitor)s, at(%(since)s), %(thread)s)
"""
_POP: Final = """
delete from certificate_warnings where org = %(org)s and monitor = %(monitor)s
returning since_at, thread
"""


async def open_warning(tx: Tx, key: MonitorKey, since: Instant, thread: UUID) -> None:
    await tx.execute(_OPEN, org=key[0], monitor=key[1], since=since, thread=thread)


async def pop_warning(tx: Tx, key: MonitorKey) -> tuple[Instant, UUID] | None:
    """Deletes the warning of a monitor; returns its begin and its thread, None without one."""
    rows = await tx.rows(_POP, org=key[0], monitor=key[1])
    return rows[0] if rows else None
