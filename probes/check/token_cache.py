"""Access tokens of this process, by the set-up that they depend on. Bounded."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import trio

from .oauth2 import TokenSetup
from .phase_timer import Stopwatch

TOKENS_MOST: Final = 10_000


@dataclass(slots=True)
class CachedToken:
    """Token of a set-up, valid until an instant of the monotonic clock.

    The run that fetches it locks `fetching`, one at a time, and `watch` times this fetch.
    """

    fetching: trio.Lock = field(default_factory=trio.Lock)
    watch: Stopwatch = field(default_factory=Stopwatch)
    token: str = field(default="", repr=False)
    until: float = 0.0

    @property
    def usable(self) -> str:
        """Returns the token, or "" if it must be fetched."""
        return self.token if monotonic() < self.until else ""

    def keep(self, token: str, seconds: float) -> None:
        self.token, self.until = token, monotonic() + seconds


class TokenCache:
    """Tokens by set-up. Evicts the least recently used one at the limit."""

    def __init__(self) -> None:
        self._kept: dict[TokenSetup, CachedToken] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def entry(self, setup: TokenSetup) -> CachedToken:
        found = self._kept.pop(setup, None) or CachedToken()
        if len(self._kept) >= TOKENS_MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[setup] = found
        return found

    def drop(self, setup: TokenSetup, token: str) -> None:
        """Drops a token that the target refused, unless another one has replaced it."""
        found = self._kept.get(setup)
        if found is not None and found.token == token:
            found.until = 0.0
