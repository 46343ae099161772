"""Interface of the part of the daemon that stores results, as HTTP uses it.

The recorder and the evaluator of composites belong to the daemon, a higher layer than HTTP; the
wiring supplies them.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Protocol

from ...storage.core.instant import Instant
from ...storage.core.key import MonitorKey
from ...storage.results.rules.incoming_result import IncomingResult, StoreResult

# Evaluates one composite, given as (organization, monitor), and commits its result.
EvaluateComposite = Callable[[MonitorKey], Awaitable[None]]


class ResultSink(Protocol):
    """Stores results in batches and answers each after its commit."""

    def receiving(self) -> AbstractContextManager[Instant]:
        """Spans a push from its receipt, whose instant it returns, to its answer."""

    def waited_us(self) -> int:
        """Returns how long a push that is read now can have waited in its socket."""

    def count_lost_push(self) -> None:
        """Counts a push that this process could not keep."""

    async def record(self, arrival: IncomingResult, *, until: float = inf) -> StoreResult:
        """Stores a result and waits until it is committed. If the database is unavailable at the
        Trio instant `until`, returns DELAYED: the result is stored later."""

    async def record_all(
        self, arrivals: Sequence[IncomingResult], *, until: float = inf
    ) -> list[StoreResult]:
        """Stores results and waits until all are committed; returns their fates in their order.
        Raises Unavailable if the database is unavailable at the Trio instant `until`."""

    def forget(self, key: MonitorKey) -> None:
        """Drops the cached state of a monitor that was edited or deleted."""
