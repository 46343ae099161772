"""Reads the verified backups of the schedule."""

from typing import Final

from ..core.instant import Instant
from ..engine.pools import Tx

_NEWEST: Final = "select max(created_at) from backups"


async def select_newest_backup(tx: Tx) -> Instant | None:
    """Returns the instant of the newest verified backup; None if there never was one."""
    newest: Instant | None = await tx.value(_NEWEST)
    return newest
