"""Loop of the warnings without an outage: slow monitors, and certificates that end soon."""

from collections.abc import Callable
from typing import Final

from ....storage.core.instant import Instant
from ....storage.engine.pools import Pool
from .certificate_teller import CertificateTeller
from .slow_teller import SlowTeller

PAUSE_SECONDS: Final = 10.0


class WarningTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._slow = SlowTeller(pool, clock)
        self._certificates = CertificateTeller(pool, clock)

    def beat_with(self, beat: Callable[[], None]) -> None:
        self._slow.beat = self._certificates.beat = beat

    async def pass_once(self) -> int:
        """Begins and ends warnings; returns their number."""
        return await self._slow.pass_once() + await self._certificates.pass_once()
