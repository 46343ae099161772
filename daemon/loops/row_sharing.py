"""Whether a result may hold the verdict of its window.

A process of an earlier version does not find such a verdict. So none is written while one is
present, or was until some minutes ago and did not end its presence. Once none is left, none can
come: it refuses a database of a later version.
"""

from collections.abc import Callable
from typing import Final

from ...storage.core.instant import MINUTE, Instant
from ...storage.engine.pools import Pool
from ...storage.scheduling.tables.presences import SHARED_ROWS, lacks_capability

# A process without a connection keeps its work for less.
SEEN_WITHIN_US: Final = 10 * MINUTE
ASKED_EACH_US: Final = MINUTE


class RowSharing:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        self._asked_at: Instant | None = None
        self._is_allowed = False

    async def is_allowed(self) -> bool:
        """Asks the database at most once a minute, until it is allowed. Raises Unavailable."""
        now = self._clock()
        if self._is_allowed or (
            self._asked_at is not None and 0 <= now - self._asked_at < ASKED_EACH_US
        ):
            return self._is_allowed
        async with self._pool.transaction("read_presences", read_only=True) as tx:
            self._is_allowed = not await lacks_capability(tx, [SHARED_ROWS], SEEN_WITHIN_US)
        self._asked_at = now
        return self._is_allowed
