"""Server time on the agent: the last received time, advanced by a monotonic clock.

The date of the host is never read, so that a wrong date changes no instant. A response more than a
minute from the carried time is doubted until the next one. Then either the carried time was right,
or the server's time has jumped, which begins a new era.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from ...probes.check.loop_lag import LoopLag

# At a larger difference, the response or the carried time is wrong. Drift alone would need more
# than three days.
DOUBT_US: Final = 60_000_000
# The time is off by at most half of what the quickest response took. An agent begins with responses
# that leave less than this open, or after so many.
OPEN_US: Final = 1_000_000
FIRST_ANSWERS: Final = 5
# Relative drift of two clocks. The worst small devices lose 17 s per day.
DRIFT_PPM: Final = 200


class TimeReading(Enum):
    """Effect of a response on the clock."""

    FIRST = auto()
    VAGUE = auto()
    AGREES = auto()
    DOUBTED = auto()
    LEAPT = auto()


class NoTimeYet(Exception):
    """Raised before the first response with the server's time."""


class ServerClock:
    """Clock. Instants are µs since the epoch. `count` returns monotonic µs, also in suspend."""

    def __init__(self, count: Callable[[], int] = LoopLag.now_us) -> None:
        self._count = count
        self._offset = 0
        # Bounds of the offset by all responses of this era. Drift widens them.
        self._within = (0, 0)
        self._heard_at: int | None = None
        self._answers = 0
        self._is_set = False
        self._doubted: tuple[int, int] | None = None
        self.era = 0

    @property
    def is_set(self) -> bool:
        """Returns whether results can be dated: the responses left less than OPEN_US open once, or
        there were FIRST_ANSWERS of them.
        """
        return self._is_set

    @property
    def is_doubted(self) -> bool:
        """Returns whether the newest response contradicts the carried time."""
        return self._doubted is not None

    def count(self) -> int:
        """Returns the reading for `hear`, taken before a request and after its response."""
        return self._count()

    def now(self) -> int:
        """Returns the server time. It never decreases between responses.

        A response moves it by the smallest consistent amount.
        Raises: `NoTimeYet` before the first response.
        """
        if self._heard_at is None:
            raise NoTimeYet
        return self._count() + self._offset

    def hear(self, said: int, asked_at: int, answered_at: int) -> TimeReading:
        """Applies a server time that was taken between two readings of `count`."""
        sample = (said - answered_at, said - asked_at)
        heard = self._apply(sample, answered_at)
        if self._is_set or heard is TimeReading.DOUBTED:
            return heard
        self._answers += 1
        self._is_set = (
            self._within[1] - self._within[0] <= OPEN_US or self._answers >= FIRST_ANSWERS
        )
        return TimeReading.FIRST if self._is_set else TimeReading.VAGUE

    def _apply(self, sample: tuple[int, int], answered_at: int) -> TimeReading:
        if self._heard_at is None:
            return self._begin(sample, answered_at, TimeReading.AGREES)
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
        # A small step of the server's time can make the bounds disjoint.
        self._within = (low, high) if low <= high else sample
        self._offset = min(max(self._offset, self._within[0]), self._within[1])
        self._heard_at = answered_at
        self._doubted = None


def _apart(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Returns the distance of two ranges of offsets, 0 if they touch."""
    return max(one[0] - other[1], other[0] - one[1], 0)
