"""RDAP requests of this process: shared answers, servers that rest, requests per organization.

A registry limits its clients, and all organizations of a process are one client. Bounded.
"""

from dataclasses import dataclass, field
from time import monotonic
from typing import Final, TypeVar

from .rdap_domain import DomainFacts

SHARED_SECONDS: Final = 300.0
ANSWERS_MOST: Final = 1_000
RESTING_MOST: Final = 1_000
# Requests of one organization to one server in a minute.
ASKED_MOST: Final = 60
ASKED_SECONDS: Final = 60.0
COUNTS_MOST: Final = 10_000

Origin = tuple[str, str, int]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class RdapAnswer:
    """Answer about a domain. `facts` is None for an unregistered one."""

    facts: DomainFacts | None
    code: int
    took_us: int


@dataclass(slots=True)
class _Count:
    began: float
    asked: int = 0


@dataclass(slots=True)
class RdapTraffic:
    """`resting` is the end of the pause of a server, by origin."""

    resting: dict[Origin, float] = field(default_factory=dict)
    _answers: dict[str, tuple[float, RdapAnswer]] = field(default_factory=dict)
    _counts: dict[tuple[int, Origin], _Count] = field(default_factory=dict)

    def answer(self, url: str) -> RdapAnswer | None:
        until, found = self._answers.get(url, (0.0, None))
        return found if monotonic() < until else None

    def keep(self, url: str, answer: RdapAnswer) -> None:
        self._answers.pop(url, None)
        _put(self._answers, url, (monotonic() + SHARED_SECONDS, answer), ANSWERS_MOST)

    def rest(self, origin: Origin, seconds: float) -> None:
        self.resting.pop(origin, None)
        _put(self.resting, origin, monotonic() + seconds, RESTING_MOST)

    def admits(self, org: int, origin: Origin) -> bool:
        """Counts a request. Returns false if the server rests or the organization had its part."""
        now = monotonic()
        if self.resting.get(origin, 0.0) > now:
            return False
        key = (org, origin)
        count = self._counts.get(key)
        if count is None or now - count.began >= ASKED_SECONDS:
            self._counts.pop(key, None)
            count = _Count(now)
            _put(self._counts, key, count, COUNTS_MOST)
        if count.asked >= ASKED_MOST:
            return False
        count.asked += 1
        return True


def _put(kept: dict[K, V], key: K, value: V, most: int) -> None:
    """Keeps a value. Drops the oldest one at the limit."""
    if len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
