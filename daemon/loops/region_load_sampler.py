"""Looks at the load of the regions now and then, for the metrics: nobody's scrape asks the store.

What was seen is told until it is too old to say anything about now.
"""

from collections.abc import Callable
from typing import Final

from ...storage.agents.queries.fleet import Fleet, select_fleet
from ...storage.core.instant import SECOND, Instant
from ...storage.engine.pools import Pool

PAUSE_SECONDS: Final = 15.0
# Four looks that failed: what was seen before them is no figure of now any more.
STALE_US: Final = 60 * SECOND


class RegionLoadSampler:
    """`regions` are those that the configuration knows."""

    def __init__(self, pool: Pool, clock: Callable[[], Instant], regions: frozenset[str]) -> None:
        self._pool = pool
        self._clock = clock
        self._regions = regions
        self._seen: Fleet | None = None

    @property
    def seen(self) -> Fleet | None:
        """The last look; None before the first, and once it is older than STALE_US."""
        if self._seen is None or self._clock() - self._seen.at > STALE_US:
            return None
        return self._seen

    async def pass_once(self) -> None:
        async with self._pool.transaction("survey_fleet", read_only=True) as tx:
            self._seen = await select_fleet(tx, self._regions)
