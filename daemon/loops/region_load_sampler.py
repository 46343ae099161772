"""Sampler of the load of the regions, so that a metrics scrape needs no database query.

A sample is reported until it is older than STALE_US.
"""

from collections.abc import Callable
from typing import Final

from ...storage.agents.queries.fleet import Fleet, select_fleet
from ...storage.core.instant import SECOND, Instant
from ...storage.engine.pools import Pool

PAUSE_SECONDS: Final = 15.0
# Four failed samples: the last one no longer describes the current load.
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
