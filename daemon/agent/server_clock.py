"""The server's time on this box: what the server last said, carried by a clock that only counts.

The box's own date is never read, so that one which is an hour wrong changes no instant. An answer
that is more than a minute from what was carried is doubted, until another decides: either the
carried time was right, or the server's time has leapt, and with it a new era begins.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from ...probes.check.loop_lag import LoopLag

# Further apart than this, an answer and what was carried are not both right. Drift alone would need
# more than three days for it.
DOUBT_US: Final = 60_000_000
# How fast two crystals part: the worst of small boxes lose seventeen seconds a day.
DRIFT_PPM: Final = 200


class TimeReading(Enum):
    """What an answer made of the clock."""

    FIRST = auto()
    AGREES = auto()
    DOUBTED = auto()
    LEAPT = auto()


class NoTimeYet(Exception):
    """The server has not said its time since this process began."""


class ServerClock:
    """Instants are µs since the epoch; `count` gives µs that only run on, asleep or not."""

    def __init__(self, count: Callable[[], int] = LoopLag.now_us) -> None:
        self._count = count
        self._offset = 0
        # Where the offset can be, by all answers of this era; it widens by drift.
        self._within = (0, 0)
        self._heard_at: int | None = None
        self._doubted: tuple[int, int] | None = None
        self.era = 0

    @property
    def is_set(self) -> bool:
        return self._heard_at is not None

    @property
    def is_doubted(self) -> bool:
        """Whether the newest answer and the carried time are not both right."""
        return self._doubted is not None

    def count(self) -> int:
        """To be handed to `hear`, read before a question and after its answer."""
        return self._count()

    def now(self) -> int:
        """The server's time. Between answers it never runs back; an answer moves it by as little as
        it must. NoTimeYet before the first."""
        if self._heard_at is None:
            raise NoTimeYet
        return self._count() + self._offset

    def hear(self, said: int, asked_at: int, answered_at: int) -> TimeReading:
        """The server said its time at some instant between those two of `count`."""
        sample = (said - answered_at, said - asked_at)
        if self._heard_at is None:
            return self._begin(sample, answered_at, TimeReading.FIRST)
        if _apart((self._offset, self._offset), sample) <= DOUBT_US:
            self._narrow(sample, answered_at)
            return TimeReading.AGREES
        if self._doubted is not None and _apart(self._doubted, sample) <= DOUBT_US:
            self.era += 1
            return self._begin(sample, answered_at, TimeReading.LEAPT)
        self._doubted = sample
        return TimeReading.DOUBTED

    def _begin(self, sample: tuple[int, int], answered_at: int, heard: TimeReading) -> TimeReading:
        self._within = sample
        self._offset = sum(sample) // 2
        self._heard_at = answered_at
        self._doubted = None
        return heard

    def _narrow(self, sample: tuple[int, int], answered_at: int) -> None:
        assert self._heard_at is not None
        drift = (answered_at - self._heard_at) * DRIFT_PPM // 1_000_000 + 1
        low, high = max(self._within[0] - drift, sample[0]), min(self._within[1] + drift, sample[1])
        # A step of the server's that is small enough to be believed leaves nothing in common.
        self._within = (low, high) if low <= high else sample
        self._offset = min(max(self._offset, self._within[0]), self._within[1])
        self._heard_at = answered_at
        self._doubted = None


def _apart(one: tuple[int, int], other: tuple[int, int]) -> int:
    """How far two spans of offsets are from each other; 0 where they touch."""
    return max(one[0] - other[1], other[0] - one[1], 0)
