"""Notifier of slow monitors: begins and ends their warnings.

It reads the results of monitors with a threshold, so recording a result does not cost more. Several
processes can run it: the lock of the monitor's state decides which one stores a change.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ....storage.alerting.rows import WatchedMonitor
from ....storage.alerting.rules.slow_warning import SlowState, follow
from ....storage.alerting.tables import slow_warnings
from ....storage.alerting.transactions.tell_slow import SlowDecision, SlowOutcome, tell_slow
from ....storage.core.instant import DAY, Instant
from ....storage.core.key import MonitorKey
from ....storage.core.refusal import Unavailable
from ....storage.engine.pools import Pool
from ....storage.mutes.queries import mutes_of_monitors

log = logging.getLogger("leadline.slow_teller")

PAUSE_SECONDS: Final = 10.0
# Monitors whose results one statement reads.
BATCH_MOST: Final = 500
# Older results are ignored, for example after the threshold is set.
LOOKBACK_US: Final = DAY


class SlowTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        # State of each monitor as of its newest result, to continue from.
        self._states: dict[MonitorKey, SlowState] = {}
        self.told: Counter[SlowOutcome] = Counter()

    async def pass_once(self) -> int:
        """Follows the results since the last pass; returns the number of changes."""
        changes, after, known = 0, MonitorKey((0, 0)), set[MonitorKey]()
        while True:
            async with self._pool.statement("slow_monitors") as tx:
                batch = await slow_warnings.select_watched(tx, after, BATCH_MOST)
            if not batch:
                break
            known.update(one.key for one in batch)
            changes += await self._follow(batch)
            after = batch[-1].key
        self._states = {key: self._states[key] for key in self._states.keys() & known}
        async with self._pool.statement("unwatched_monitors") as tx:
            removed = await slow_warnings.select_unwatched(tx, BATCH_MOST)
        for one in removed:
            assert one.seen is not None, "the warning is stored"
            before = (one.seen, one.since)
            changes += await self._store(
                SlowDecision(one.key, before, SlowState(one.seen), 0, None)
            )
        return changes

    async def _follow(self, batch: Sequence[WatchedMonitor]) -> int:
        start = Instant(self._clock() - LOOKBACK_US)
        before = {one.key: self._state(one, start) for one in batch}
        async with self._pool.statement("slow_results") as tx:
            found = await slow_warnings.select_measured(
                tx, {key: state.seen for key, state in before.items()}
            )
        decided: list[tuple[WatchedMonitor, SlowDecision]] = []
        for one in batch:
            state = before[one.key]
            after, changes = follow(state, found.get(one.key, ()), one.above_ms, one.runs)
            self._states[one.key] = SlowState(after.seen, after.streak, state.since)
            # A warning that began and ended since the last pass sends no message.
            if (after.since is None) != (state.since is None):
                # If the change is not stored now, the next result like the last one decides again.
                self._states[one.key] = SlowState(after.seen, one.runs - 1, state.since)
                stored = (one.seen, one.since)
                change = SlowDecision(one.key, stored, after, one.above_ms, changes[-1])
                decided.append((one, change))
        return await self._store_unmuted(decided)

    async def _store_unmuted(self, decided: Sequence[tuple[WatchedMonitor, SlowDecision]]) -> int:
        """Stores the changes of monitors that are not muted; returns their number."""
        if not decided:
            return 0
        async with self._pool.transaction("muted_slow_monitors", read_only=True) as tx:
            muted = await mutes_of_monitors(tx, [one.key for one, _ in decided])
        count = 0
        for one, change in decided:
            if one.key not in muted and await self._store(change):
                count += 1
                # The next pass continues from the stored state.
                self._states.pop(one.key, None)
        return count

    def _state(self, one: WatchedMonitor, start: Instant) -> SlowState:
        """Returns the state to continue from, unless another process changed the stored one."""
        known = self._states.get(one.key)
        stored = max(one.seen or start, start)
        if known is None or known.since != one.since or known.seen < stored:
            return SlowState(stored, 0, one.since)
        return known

    async def _store(self, decision: SlowDecision) -> int:
        """Stores one change. A failure does not stop the monitors of other tenants."""
        org, monitor = decision.key
        try:
            told = await self._pool.transact("tell_slow", partial(tell_slow, decision=decision))
        except Unavailable as error:
            extra = {"org": org, "monitor": monitor, "cause": str(error)}
            log.warning("slow warning postponed", extra=extra)
            return 0
        except Exception:
            log.exception("slow warning failed", extra={"org": org, "monitor": monitor})
            return 0
        self.told[told] += 1
        return int(told is not SlowOutcome.LATER)
