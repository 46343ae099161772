"""Key checker of a worker: records whether the keys of the process decrypt stored values.

A worker opens no incidents. Its presence has the result, from which the self-monitor of another
process opens the incident.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from ...storage.alerting.queries.self_monitoring import opens_nothing
from ...storage.core.instant import Instant
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.scheduling.tables.presences import put_opens_nothing
from .self_monitor import KEYS_EVERY_US

# A new presence of the process has no result for this time.
PAUSE_SECONDS: Final = 30.0


class KeyChecker:
    """Checks the keys every KEYS_EVERY_US. `process` is that of the presence."""

    def __init__(
        self, pool: Pool, clock: Callable[[], Instant], keyring: Keyring, process: UUID
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._keyring = keyring
        self._process = process
        self._opens_nothing = False
        self._checked_at: Instant | None = None

    async def pass_once(self) -> None:
        now = self._clock()
        if self._checked_at is None or now - self._checked_at >= KEYS_EVERY_US:
            async with self._pool.transaction("check_keys", read_only=True) as tx:
                self._opens_nothing = await opens_nothing(tx, self._keyring)
            self._checked_at = now
        async with self._pool.transaction("put_key_state") as tx:
            await put_opens_nothing(tx, self._process, opens_nothing=self._opens_nothing)
