"""Connectivity check: distinguishes a failed target from an offline host.

It runs only after a failure that a dead network could cause. An answer serves every run that failed
before the check started, and no later run. Otherwise an older success would vouch for a network
that died a second ago.
"""

from dataclasses import dataclass
from time import monotonic

import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from .dial import dial
from .egress_policy import EgressPolicy
from .resolver import Resolver

CHECK_SECONDS = 2.0


@dataclass(slots=True)
class _Answer:
    asked_at: float
    reachable: bool


class Connectivity:
    """Check of `prober.connectivity_check`: a host and port that answer while we are online."""

    def __init__(self, host: str, port: int, resolver: Resolver, policy: EgressPolicy) -> None:
        self._host, self._port = host, port
        self._resolver, self._policy = resolver, policy
        self._asking = trio.Lock()
        self._last: _Answer | None = None

    async def online(self, since: float) -> bool:
        """Returns whether the host was reachable after `since` (of `time.monotonic`)."""
        async with self._asking:
            if self._last is None or self._last.asked_at < since:
                asked_at = monotonic()
                self._last = _Answer(asked_at, await self._reach())
            return self._last.reachable

    async def _reach(self) -> bool:
        with trio.move_on_after(CHECK_SECONDS):
            try:
                connection = await dial(
                    self._resolver, self._policy, self._host, self._port, Stopwatch()
                )
            except TargetFailure as failure:
                # The refusal arrived over the network, so the network works.
                return failure.failure is FailureClass.CONNECT_REFUSED
            except LocalFailure:
                return False
            connection.stream.socket.close()
            return True
        return False
