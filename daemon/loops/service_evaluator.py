"""Service evaluator: evaluates due services, and the burn rules of services and monitors.

Several processes can run it: each evaluation locks the alerting row of the service and skips rows
that another process has locked. A failing batch is halved until the failing service is isolated.
Its error is stored with it, and the other services continue.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, TypeVar

from ...storage.alerting.rules.alert_episode import EVERY_US, EpisodeAction
from ...storage.alerting.tables import service_alerting
from ...storage.alerting.transactions.evaluate_services import ServiceEvaluations, evaluate_services
from ...storage.core.instant import Instant
from ...storage.core.key import Key, MonitorKey, ServiceKey
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Tx
from ...storage.objectives.tables import burn_rules
from ...storage.objectives.transactions.evaluate_burn_rules import (
    Burned,
    evaluate_monitor_burns,
    evaluate_service_burns,
)

log = logging.getLogger("leadline.service_evaluator")

T = TypeVar("T")
K = TypeVar("K", MonitorKey, ServiceKey)

PAUSE_SECONDS: Final = 1.0
# A transaction locks the alerting rows of a batch, and the members wait for it.
BATCH_MOST: Final = 20
AT_ONCE: Final = 200
ROUNDS_MOST: Final = 10
ERROR_LONGEST: Final = 500


# Metric labels of the episode actions.
_DONE: Final = {
    EpisodeAction.OPEN: "opened",
    EpisodeAction.ADOPT: "adopted",
    EpisodeAction.ANNOUNCE: "announced",
    EpisodeAction.REMIND: "reminded",
    EpisodeAction.END: "resolved",
}


def _batches(keys: Sequence[K]) -> Iterator[Sequence[K]]:
    """Yields batches of one organization each, which bounds the rows that a transaction locks."""
    for _, group in groupby(sorted(keys), key=lambda key: key[0]):
        own = list(group)
        yield from (own[start : start + BATCH_MOST] for start in range(0, len(own), BATCH_MOST))


class ServiceEvaluator:
    """Evaluates services.

    `on_told` is called after a transaction queued a delivery. `is_steady` is as in AlertProcessor.
    """

    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        on_told: Callable[[], None],
        is_steady: Callable[[], bool] = lambda: True,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._on_told = on_told
        self._is_steady = is_steady
        # Monitors whose burn rules failed, with the end of their delay.
        self._put_off: dict[MonitorKey, Instant] = {}
        self.evaluated = 0
        self.failed = 0
        # For metrics: actions on episodes, and reasons of withheld pages by signal.
        self.acts: Counter[str] = Counter()
        self.withheld: Counter[tuple[str, str]] = Counter()

    async def pass_once(self) -> int:
        """Evaluates due services and monitors; returns their number, with failures."""
        total = 0
        for _ in range(ROUNDS_MOST):
            now = self._clock()
            async with self._pool.statement("due_services") as tx:
                keys = await service_alerting.select_due_alertings(tx, now, AT_ONCE)
            looked = 0
            for batch in _batches(keys):
                looked += await self._evaluate(batch)
                await self._burn(batch)
            total += looked
            if not looked:
                break
        return total + await self._look_at_monitors()

    async def _look_at_monitors(self) -> int:
        """Evaluates the burn rules of monitors; returns the number of due monitors."""
        now = self._clock()
        self._put_off = {key: until for key, until in self._put_off.items() if until > now}
        async with self._pool.statement("due_monitor_burns") as tx:
            found = await burn_rules.select_due_monitors(tx, Instant(now - EVERY_US), AT_ONCE)
        keys = [key for key in found if key not in self._put_off]
        for batch in _batches(keys):
            await self._burn_of_monitors(batch)
        return len(keys)

    async def _evaluate(self, keys: Sequence[ServiceKey]) -> int:
        async def work(tx: Tx) -> ServiceEvaluations:
            return await evaluate_services(tx, keys)

        return await self._try("evaluate_services", work, self._count, keys, self._evaluate)

    async def _burn(self, keys: Sequence[ServiceKey]) -> int:
        async def work(tx: Tx) -> Burned:
            return await evaluate_service_burns(tx, keys)

        return await self._try("evaluate_service_burns", work, self._count_burned, keys, self._burn)

    async def _burn_of_monitors(self, keys: Sequence[MonitorKey]) -> int:
        async def work(tx: Tx) -> Burned:
            return await evaluate_monitor_burns(tx, keys, is_steady=self._is_steady())

        name, again = "evaluate_monitor_burns", self._burn_of_monitors
        return await self._try(name, work, self._count_burned, keys, again)

    async def _try(
        self,
        name: str,
        work: Callable[[Tx], Awaitable[T]],
        count: Callable[[T], int],
        keys: Sequence[K],
        again: Callable[[Sequence[K]], Awaitable[int]],
    ) -> int:
        """Runs a transaction; halves a failing batch and records the error of a single key."""
        fault: Exception | None = None
        try:
            return count(await self._pool.transact(name, work))
        except Unavailable:
            raise
        except Exception as error:
            fault = error
        if len(keys) > 1:
            middle = len(keys) // 2
            return await again(keys[:middle]) + await again(keys[middle:])
        log.error("service evaluation failed", extra={"step": name, "key": keys[0]}, exc_info=fault)
        self.failed += 1
        text = f"{type(fault).__name__}: {fault}".replace("\0", "")
        await self._note(name, keys[0], text[:ERROR_LONGEST])
        return 1

    async def _note(self, name: str, key: Key, text: str) -> None:
        due = Instant(self._clock() + EVERY_US)
        if name == "evaluate_monitor_burns":
            self._put_off[MonitorKey(key)] = due
            return
        async with self._pool.transaction("record_service_error") as tx:
            if name == "evaluate_services":
                await service_alerting.write_failed(tx, ServiceKey(key), text, due)
            else:
                await service_alerting.write_burn_failed(tx, ServiceKey(key), text)

    def _count_burned(self, done: Burned) -> int:
        for reason, count in done.withheld.items():
            self.withheld["burn", reason] += count
        if done.told:
            self._on_told()
        return done.rules

    def _count(self, done: ServiceEvaluations) -> int:
        self.evaluated += done.services
        for act, word in _DONE.items():
            if done.acts[act]:
                self.acts[word] += done.acts[act]
        for reason, count in done.withheld.items():
            self.withheld["live", reason] += count
        if done.told:
            self._on_told()
        return done.services
