"""Says that this process is there, and how far it has listened.

A renewal that is refused (too late, or the row is gone) begins a new stretch: what happened in
between, nobody can vouch for.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import trio

from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Tx
from ...storage.scheduling.tables import presences
from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.presence_renewer")

PAUSE_SECONDS: Final = 5.0
GOODBYE_SECONDS: Final = 2.0
# A renewal that is later than this begins a new presence.
BREAK_US: Final = 15 * SECOND


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What a process says of itself."""

    process: UUID
    host: str
    roles: Sequence[str]
    # Where it probes; none where it does not.
    regions: tuple[str, ...]
    version: str
    accepts_pushes: bool


class PresenceRenewer:
    """`committed_through` is the instant by which every push received is committed, `lost` how many
    were received and could not be kept: such a stretch is broken, as after an unclean end."""

    def __init__(
        self,
        pool: Pool,
        identity: ProcessIdentity,
        clock: Callable[[], Instant],
        heard_through: Callable[[], Instant],
        lost: Callable[[], int] = lambda: 0,
    ) -> None:
        self._pool = pool
        self._identity = identity
        self._clock = clock
        self._heard_through = heard_through
        self._lost = lost
        self._lost_before = 0
        self._asks = False
        self.wake = WakeEvent()
        self._from_at: Instant | None = None
        self.renewed_through: Instant | None = None

    def is_steady(self, us: int) -> bool:
        """Whether this process was there without a break for so long, and is."""
        if self._from_at is None or self.renewed_through is None:
            return False
        here = self._clock() - self.renewed_through <= BREAK_US
        return here and self.renewed_through - self._from_at >= us

    def ask(self) -> None:
        """A deadline waits: this process says at once how far it has listened, and asks the
        others to."""
        self._asks = True
        self.wake.set()

    async def pass_once(self) -> None:
        asks, self._asks = self._asks, False
        async with self._pool.transaction("renew_presence") as tx:
            if asks:
                await presences.ask_others(tx)
            await self._renew(tx)

    async def _renew(self, tx: Tx) -> None:
        through, lost = self._heard_through(), self._lost()
        if (
            self._from_at is not None
            and lost == self._lost_before
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
        self._lost_before = lost

    async def delete_presence(self) -> None:
        """A clean end: what was heard until now was heard. Bounded, and not cancelled by the stop
        that it belongs to."""
        if self._from_at is None or self._lost() != self._lost_before:
            return
        with trio.move_on_after(GOODBYE_SECONDS, shield=True):
            try:
                async with self._pool.transaction("end_presence") as tx:
                    await presences.end_presence(
                        tx, self._identity.process, self._from_at, self._heard_through()
                    )
            except Unavailable:
                log.warning("database unavailable: this stop will count as unclean")
