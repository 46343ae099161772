"""Loop of the warnings without an outage: slow monitors, and certificates that end soon."""

from collections.abc import Callable
from typing import Final

from ....storage.alerting.queries.warning_work import select_warning_work
from ....storage.core.instant import Instant
from ....storage.engine.pools import Pool
from .certificate_teller import CertificateTeller
from .slow_teller import SlowTeller

PAUSE_SECONDS: Final = 10.0


class WarningTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._slow = SlowTeller(pool, clock)
        self._certificates = CertificateTeller(pool, clock)

    def beat_with(self, beat: Callable[[], None]) -> None:
        self._slow.beat = self._certificates.beat = beat

    async def pass_once(self) -> int:
        """Begins and ends warnings; returns their number."""
        async with self._pool.statement("warning_work") as tx:
            work = await select_warning_work(tx)
        changes = 0
        if work.slow:
            changes += await self._slow.pass_once()
        else:
            self._slow.forget()
        if work.certificates:
            changes += await self._certificates.pass_once()
        return changes
