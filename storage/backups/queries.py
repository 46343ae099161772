"""Reads the verified backups of the schedule."""

from typing import Final

from ..core.instant import Instant
from ..engine.pools import Tx

# A row in the future is of a clock that was ahead: its age would be 0 until the clock reaches it.
_NEWEST: Final = "select max(created_at) from backups where created_at <= clock_timestamp()"


async def select_newest_backup(tx: Tx) -> Instant | None:
    """Returns the instant of the newest verified backup; None if there never was one."""
    newest: Instant | None = await tx.value(_NEWEST)
    return newest
