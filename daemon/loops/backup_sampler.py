"""Sampler of the newest verified backup, from whose instant the metrics compute its age."""

from typing import Final

from ...storage.backups.queries import select_newest_backup
from ...storage.core.instant import Instant
from ...storage.engine.pools import Pool

PAUSE_SECONDS: Final = 30.0


class BackupSampler:
    """Samples the instant of the newest verified backup.

    `newest` is None before the first pass, and if no verified backup exists. If passes fail, it
    keeps its value, so that the reported age still rises.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.newest: Instant | None = None

    async def pass_once(self) -> None:
        async with self._pool.transaction("newest_backup", read_only=True) as tx:
            self.newest = await select_newest_backup(tx)
