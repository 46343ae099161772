"""The product's clock: the database's time, made to agree between processes and never run back.

It jumps forward at once. Where it is ahead of the database it goes at half speed until the database
has caught up, so that time stays monotone and nothing happens twice. Between readings it is carried
by the process's monotonic clock.
"""

from dataclasses import dataclass

from .instant import MINUTE, Instant

# More than this is told on readyz: somebody has set a clock.
NOTABLE_US = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Clock:
    """What the clock showed at a reading of the monotonic clock, and how far ahead it was then."""

    shown: Instant
    monotonic_us: int
    ahead_us: int = 0

    def at(self, monotonic_us: int) -> Instant:
        """What it shows now: never less than it showed at any earlier monotonic instant."""
        elapsed_us = max(monotonic_us - self.monotonic_us, 0)
        slowed_us = min(elapsed_us, 2 * self.ahead_us)
        return Instant(self.shown + elapsed_us - (slowed_us + 1) // 2)

    def read(self, monotonic_us: int, database: Instant, latest_through: Instant | None) -> "Clock":
        """The clock after a reading of the database; `latest_through` is the greatest `through` of
        all presences, so that a restart does not go back behind what another process showed."""
        floor = database if latest_through is None else max(database, latest_through)
        shown = max(self.at(monotonic_us), floor)
        return Clock(shown, max(monotonic_us, self.monotonic_us), shown - database)

    @property
    def is_notably_off(self) -> bool:
        return self.ahead_us > NOTABLE_US


def started(monotonic_us: int, database: Instant, latest_through: Instant | None) -> Clock:
    """The clock of a process that has just read the database for the first time."""
    shown = database if latest_through is None else max(database, latest_through)
    return Clock(shown, monotonic_us, shown - database)
