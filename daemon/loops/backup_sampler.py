"""Reads the instant of the newest verified backup, from which the metrics compute its age."""

from typing import Final

from ...storage.backups.queries import select_newest_backup
from ...storage.core.instant import Instant
from ...storage.engine.pools import Pool

PAUSE_SECONDS: Final = 30.0


class BackupSampler:
    """`newest` is None before the first pass, and if there never was a verified backup.

    It stays while passes fail: its age rises, and does not become less by that.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.newest: Instant | None = None

    async def pass_once(self) -> None:
        async with self._pool.transaction("newest_backup", read_only=True) as tx:
            self.newest = await select_newest_backup(tx)
