"""Renewer of the process presence and of the instant up to which it received pushes.

A refused renewal (too late, or the row is gone) begins a new presence, because no process can
prove what happened in between.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import trio

from ...probes.check.loop_lag import LoopLag
from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Tx
from ...storage.scheduling.tables import presences
from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.presence_renewer")

PAUSE_SECONDS: Final = 5.0
GOODBYE_SECONDS: Final = 2.0
# A renewal later than this begins a new presence.
BREAK_US: Final = 15 * SECOND
# A sender can cancel its push during a longer stall of the event loop. The recorder extends the
# deadlines that pass in a shorter one.
LONG_STALL_US: Final = 5 * SECOND


class ReceptionGaps:
    """Counts the times in which a push can be lost by a fault of this process.

    `lost` returns the number of pushes that were not stored, and of times that the clock skipped.
    """

    def __init__(self, lag: LoopLag, lost: Callable[[], int]) -> None:
        self._lag = lag
        self._lost = lost
        self._looked_us = lag.now_us()
        self._stalls = 0

    def count(self) -> int:
        """Returns the number of gaps. A stall is counted by the first call after its begin."""
        looked_us, self._looked_us = self._looked_us, self._lag.now_us()
        if self._lag.is_watched and self._lag.stalled_since(looked_us) > LONG_STALL_US:
            self._stalls += 1
        return self._lost() + self._stalls


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identity and roles that a process publishes in its presence."""

    process: UUID
    host: str
    roles: Sequence[str]
    # Regions that it probes in; empty if it does not probe.
    regions: tuple[str, ...]
    version: str
    accepts_pushes: bool


class PresenceRenewer:
    """Renews the presence of this process.

    `heard_through` returns the instant up to which every received push is committed. `gaps` returns
    the number of times in which a push can be lost. A gap ends the presence, like an
    unclean stop. `read_clock` reads the clock of the database in the same transaction.
    """

    def __init__(
        self,
        pool: Pool,
        identity: ProcessIdentity,
        clock: Callable[[], Instant],
        heard_through: Callable[[], Instant],
        gaps: Callable[[], int] = lambda: 0,
        read_clock: Callable[[Tx], Awaitable[object]] | None = None,
    ) -> None:
        self._pool = pool
        self._identity = identity
        self._clock = clock
        self._heard_through = heard_through
        self._gaps = gaps
        self._read_clock = read_clock
        self._gaps_before = 0
        self._asks = False
        self.wake = WakeEvent()
        self._from_at: Instant | None = None
        self.renewed_through: Instant | None = None

    def is_steady(self, us: int) -> bool:
        """Returns whether this process has been present without a gap for `us` microseconds."""
        if self._from_at is None or self.renewed_through is None:
            return False
        here = self._clock() - self.renewed_through <= BREAK_US
        return here and self.renewed_through - self._from_at >= us

    def ask(self) -> None:
        """Requests a renewal now, here and in the other processes; a deadline waits for it."""
        self._asks = True
        self.wake.set()

    async def pass_once(self) -> None:
        asks, self._asks = self._asks, False
        async with self._pool.transaction("renew_presence") as tx:
            if self._read_clock is not None:
                await self._read_clock(tx)
            if asks:
                await presences.ask_others(tx)
            await self._renew(tx)

    async def _renew(self, tx: Tx) -> None:
        through, gaps = self._heard_through(), self._gaps()
        if (
            self._from_at is not None
            and gaps == self._gaps_before
            and await presences.renew_presence(tx, self._identity.process, self._from_at, through)
        ):
            self.renewed_through = through
            return
        begun = max(self._clock(), through)
        who = self._identity
        await presences.begin_presence(
            tx,
            who.process,
            begun,
            who.host,
            who.roles,
            who.regions,
            who.version,
            accepts_pushes=who.accepts_pushes,
        )
        if self._from_at is not None:
            log.warning(
                "presence renewed after a gap", extra={"was": self._from_at, "begins": begun}
            )
        self._from_at = self.renewed_through = begun
        self._gaps_before = gaps

    async def delete_presence(self) -> None:
        """Ends the presence cleanly, up to the last received push.

        Limited to GOODBYE_SECONDS, and shielded from the cancellation of the stop.
        """
        if self._from_at is None or self._gaps() != self._gaps_before:
            return
        with trio.move_on_after(GOODBYE_SECONDS, shield=True):
            try:
                async with self._pool.transaction("end_presence") as tx:
                    await presences.end_presence(
                        tx, self._identity.process, self._from_at, self._heard_through()
                    )
            except Unavailable:
                log.warning("database unavailable: this stop will count as unclean")
