"""Notifier of slow monitors: begins and ends their warnings.

It reads the results of monitors with a threshold, so recording a result does not cost more. Several
processes can run it: the lock of the monitor's state decides which one stores a change.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from ....storage.alerting.queries.quiet_monitors import select_quiet
from ....storage.alerting.rows import WatchedMonitor
from ....storage.alerting.rules.slow_warning import SlowState, follow
from ....storage.alerting.tables import slow_warnings
from ....storage.alerting.transactions.tell_slow import SlowDecision, SlowOutcome, tell_slow
from ....storage.core.instant import DAY, SECOND, Instant
from ....storage.core.key import MonitorKey
from ....storage.core.refusal import Unavailable
from ....storage.engine.pools import Pool, Tx

log = logging.getLogger("leadline.slow_teller")

# Monitors whose results one statement reads. Following them blocks the event loop meanwhile.
BATCH_MOST: Final = 100
# Changes that a pass stores. The next one decides about the others again.
CHANGES_MOST: Final = 200
# Without a known state, for example after a start, results of this time count, or those of one more
# interval than a warning takes. Older ones are ignored.
LOOKBACK_US: Final = DAY

_Select = Callable[[Tx, MonitorKey, int], Awaitable[list[WatchedMonitor]]]
_Handle = Callable[[Sequence[WatchedMonitor]], Awaitable[int]]


class SlowTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        # State of each monitor as of its newest result, to continue from.
        self._states: dict[MonitorKey, SlowState] = {}
        self.told: Counter[SlowOutcome] = Counter()
        self._left = CHANGES_MOST
        # For the watchdog, within a pass.
        self.beat: Callable[[], None] = lambda: None

    async def pass_once(self) -> int:
        """Follows the results since the last pass; returns the number of changes."""
        known = set[MonitorKey]()
        self._left = CHANGES_MOST

        async def follow_known(batch: Sequence[WatchedMonitor]) -> int:
            known.update(one.key for one in batch)
            return await self._follow(batch)

        changes = await self._each("slow_monitors", slow_warnings.select_watched, follow_known)
        self._states = {key: self._states[key] for key in self._states.keys() & known}
        return changes + await self._each(
            "unwatched_monitors", slow_warnings.select_unwatched, self._end
        )

    def forget(self) -> None:
        """Forgets the states of all monitors, because none has a threshold."""
        self._states.clear()

    async def _each(self, name: str, select: _Select, handle: _Handle) -> int:
        """Handles all monitors in batches, whatever happens to those before."""
        changes, after = 0, MonitorKey((0, 0))
        while True:
            async with self._pool.statement(name) as tx:
                batch = await select(tx, after, BATCH_MOST)
            if not batch:
                return changes
            changes += await handle(batch)
            self.beat()
            await trio.lowlevel.checkpoint()
            after = batch[-1].key

    async def _end(self, batch: Sequence[WatchedMonitor]) -> int:
        """Ends the warnings of monitors whose threshold was removed."""
        changes = 0
        for one in batch:
            if not self._left:
                break
            assert one.seen is not None, "the warning is stored"
            before = (one.seen, one.since)
            decision = SlowDecision(one.key, before, SlowState(one.seen), 0, None)
            changes += await self._store(decision)
        return changes

    async def _follow(self, batch: Sequence[WatchedMonitor]) -> int:
        now = self._clock()
        before = {one.key: self._state(one, now) for one in batch}
        async with self._pool.statement("slow_results") as tx:
            found = await slow_warnings.select_measured(
                tx, {key: state.seen for key, state in before.items()}, now
            )
        decided: list[SlowDecision] = []
        for one in batch:
            state = before[one.key]
            after, changes = follow(state, found.get(one.key, ()), one.above_ms, one.runs)
            self._states[one.key] = replace(after, since=state.since)
            # A warning that began and ended since the last pass sends no message.
            if (after.since is None) != (state.since is None):
                # If the change is not stored now, the next result like the last one decides again.
                self._states[one.key] = replace(after, streak=one.runs - 1, since=state.since)
                stored = (one.seen, one.since)
                decided.append(SlowDecision(one.key, stored, after, one.above_ms, changes[-1]))
        return await self._store_allowed(decided, before)

    async def _store_allowed(
        self, decided: Sequence[SlowDecision], before: Mapping[MonitorKey, SlowState]
    ) -> int:
        """Stores the ends, and the begins of monitors that may warn; returns their number."""
        if not decided:
            return 0
        begins = [change.key for change in decided if change.after.since is not None]
        async with self._pool.transaction("quiet_slow_monitors", read_only=True) as tx:
            waiting = await select_quiet(tx, begins)
        count = 0
        for change in decided:
            if change.key in waiting:
                continue
            if not self._left:
                # The next pass reads the same results.
                self._states[change.key] = before[change.key]
            elif await self._store(change):
                count += 1
                # The next pass continues from the stored state.
                self._states.pop(change.key, None)
        return count

    def _state(self, one: WatchedMonitor, now: Instant) -> SlowState:
        """Returns the state to continue from, unless another process changed the stored one.

        It is never later than now, so that results count after a clock is set back.
        """
        known = self._states.get(one.key)
        stored = one.seen or Instant(0)
        if (
            known is not None
            and known.since == one.since
            and (known.seen >= stored or stored > now)
        ):
            return replace(known, seen=min(known.seen, now))
        lookback = max(LOOKBACK_US, (one.runs + 1) * one.interval_seconds * SECOND)
        start = Instant(now - lookback)
        return SlowState(min(max(one.seen or start, start), now), 0, one.since, one.above_ms)

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
        finally:
            self.beat()
        self.told[told] += 1
        is_stored = told is not SlowOutcome.LATER
        self._left -= is_stored
        return int(is_stored)
