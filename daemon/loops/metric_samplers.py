"""Samplers of values that metrics report, so that a scrape needs no database query."""

from collections.abc import Callable
from typing import Final

from ...storage.agents.queries.fleet import Fleet, select_fleet
from ...storage.backups.queries import select_newest_backup
from ...storage.core.instant import SECOND, Instant
from ...storage.engine.pools import Pool
from ...storage.results.queries.monitor_samples import MonitorSamples, select_monitor_samples

PAUSE_SECONDS: Final = 15.0
# Four failed samples: the last one no longer describes the present.
STALE_US: Final = 60 * SECOND


class RegionLoadSampler:
    """Samples the load. `regions` are the configured regions."""

    def __init__(self, pool: Pool, clock: Callable[[], Instant], regions: frozenset[str]) -> None:
        self._pool = pool
        self._clock = clock
        self._regions = regions
        self._seen: Fleet | None = None

    @property
    def seen(self) -> Fleet | None:
        """Returns the last sample; None before the first, and if it is older than STALE_US."""
        if self._seen is None or self._clock() - self._seen.at > STALE_US:
            return None
        return self._seen

    async def pass_once(self) -> None:
        async with self._pool.transaction("sample_region_load", read_only=True) as tx:
            self._seen = await select_fleet(tx, self._regions)


class InstallationSampler:
    """Samples the newest verified backup, and the statuses of at most `monitors_most` monitors.

    `newest_backup` is None before the first pass, and if no verified backup exists. If passes fail,
    it keeps its value, so that the reported age still rises.
    """

    def __init__(self, pool: Pool, clock: Callable[[], Instant], monitors_most: int = 0) -> None:
        self._pool = pool
        self._clock = clock
        self._monitors_most = monitors_most
        self._monitors: MonitorSamples | None = None
        self.newest_backup: Instant | None = None

    @property
    def monitors(self) -> MonitorSamples | None:
        """Returns the last sample; None before the first, and if it is older than STALE_US."""
        if self._monitors is None or self._clock() - self._monitors.at > STALE_US:
            return None
        return self._monitors

    async def pass_once(self) -> None:
        async with self._pool.transaction("sample_installation", read_only=True) as tx:
            self.newest_backup = await select_newest_backup(tx)
            if self._monitors_most:
                self._monitors = await select_monitor_samples(tx, self._monitors_most)
