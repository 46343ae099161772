"""Evaluator of composites, run when they are due or after a status change of a child.

The ticker reserves the windows. The first process that evaluates a window settles it, since the
ledger accepts one verdict per window. Children are evaluated and committed before the composites
that contain them. A composite whose result the database rejects does not delay the others. Each
result is published on the event bus of this process, like the results of the recorder.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ...storage.core.instant import SECOND, Instant
from ...storage.core.key import MonitorKey
from ...storage.core.time_span import TimeSpan
from ...storage.engine.pools import Pool, Rejected
from ...storage.monitors.rules.composite import by_height
from ...storage.monitors.tables import compositions
from ...storage.results.event_bus import Bus, status_event
from ...storage.results.queries.composites import (
    DueCompositeWindow,
    select_due_wakeups,
    select_due_windows,
)
from ...storage.results.transactions.evaluate_composites import (
    CompositeEvaluations,
    evaluate_composites,
)

log = logging.getLogger("leadline.composite_evaluator")

WINDOWS_AT_ONCE: Final = 1_000
# A transaction locks the states of one batch, which bounds the number of locked rows.
BATCH_MOST: Final = 250
# Delay of a composite whose result the database rejected.
PUT_OFF_US: Final = 30 * SECOND
# Longest delay between a child's status change and the evaluation of its composites.
PAUSE_SECONDS: Final = 0.5
# Bounds a pass; the remaining composites stay due.
ROUNDS_MOST: Final = 20


class CompositeEvaluator:
    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus
        # Composites that the database rejected, with the end of their delay.
        self._put_off: dict[MonitorKey, Instant] = {}
        self.evaluated = 0
        self.withheld = 0

    async def evaluate_due(self, now: Instant) -> int:
        """Evaluates the due windows and the requested composites; returns their number."""
        self._put_off = {key: until for key, until in self._put_off.items() if until > now}
        async with self._pool.transaction("due_composites", read_only=True) as tx:
            windows = await select_due_windows(tx, now, WINDOWS_AT_ONCE)
            called = await select_due_wakeups(tx, now, WINDOWS_AT_ONCE)
            keys = sorted({*called, *(window.key for window in windows)} - self._put_off.keys())
            # Indirect children determine the order of evaluation, even if they are not due.
            stretch = TimeSpan(now, Instant(now + 1))
            made = await compositions.select_beneath(tx, keys, stretch) if keys else {}
        newest = {window.key: window for window in windows}
        count = 0
        for level in by_height(keys, compositions.children_of(made)):
            for start in range(0, len(level), BATCH_MOST):
                part = level[start : start + BATCH_MOST]
                due = [newest[key] for key in part if key in newest]
                count += await self.evaluate(now, due, part)
        return count

    async def evaluate(
        self, now: Instant, windows: Sequence[DueCompositeWindow], called: Iterable[MonitorKey]
    ) -> int:
        """Evaluates composites; halves a rejected batch until the failing one is isolated."""
        keys = sorted({*called, *(window.key for window in windows)})
        try:
            done = await self._pool.transact(
                "evaluate_composites", lambda tx: evaluate_composites(tx, windows, keys)
            )
        except Rejected as error:
            if len(keys) == 1:
                log.error(
                    "composite evaluation failed",
                    extra={"cause": str(error), "key": keys[0]},
                )
                self._put_off[keys[0]] = Instant(now + PUT_OFF_US)
                return 0
            middle = len(keys) // 2
            return sum(
                [
                    await self.evaluate(now, [w for w in windows if w.key in set(half)], half)
                    for half in (keys[:middle], keys[middle:])
                ]
            )
        self.evaluated += len(done.results)
        self.withheld += done.withheld
        self._publish(done)
        return len(done.results) + done.withheld + done.calls

    def _publish(self, done: CompositeEvaluations) -> None:
        flipped = {(flip.org, flip.monitor, flip.at) for flip in done.flips}
        for arrival, recorded in done.results:
            changed = (*arrival.key, recorded.ts) in flipped
            event = status_event(arrival, recorded, changed=changed)
            if event is not None:
                self._bus.publish(event)


class CompositeScheduler:
    def __init__(self, evaluator: CompositeEvaluator, clock: Callable[[], Instant]) -> None:
        self.evaluator = evaluator
        self._clock = clock

    async def pass_once(self) -> int:
        """Runs rounds until no composite is due; returns the number of evaluations.

        A status change of a composite requests the evaluation of its parents in the same pass.
        """
        total = 0
        for _ in range(ROUNDS_MOST):
            count = await self.evaluator.evaluate_due(self._clock())
            total += count
            if not count:
                break
        return total
