"""Product clock: the time of the database, consistent between processes and monotonic.

It jumps forward immediately. If it is ahead of the database, it runs at half speed until the
database has caught up, so that time stays monotonic. Between readings it follows the monotonic
clock of the process.
"""

from dataclasses import dataclass

from .instant import MINUTE, Instant

# A larger difference is reported on readyz: a system clock was changed.
NOTABLE_US = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Clock:
    """Time shown at a reading of the monotonic clock, and its lead over the database."""

    shown: Instant
    monotonic_us: int
    ahead_us: int = 0

    def at(self, monotonic_us: int) -> Instant:
        """Returns the current time, never less than at an earlier monotonic instant."""
        elapsed_us = max(monotonic_us - self.monotonic_us, 0)
        slowed_us = min(elapsed_us, 2 * self.ahead_us)
        return Instant(self.shown + elapsed_us - (slowed_us + 1) // 2)

    def read(self, monotonic_us: int, database: Instant, latest_through: Instant | None) -> "Clock":
        """Returns the clock after a reading of the database.

        `latest_through` is the greatest `through` of all presences, so that a restart never falls
        behind the time that another process showed.
        """
        floor = database if latest_through is None else max(database, latest_through)
        shown = max(self.at(monotonic_us), floor)
        return Clock(shown, max(monotonic_us, self.monotonic_us), shown - database)

    @property
    def is_notably_off(self) -> bool:
        return self.ahead_us > NOTABLE_US


def started(monotonic_us: int, database: Instant, latest_through: Instant | None) -> Clock:
    """Returns the clock of a process after its first reading of the database."""
    shown = database if latest_through is None else max(database, latest_through)
    return Clock(shown, monotonic_us, shown - database)
