"""Result recorder: stores incoming results in batches and answers each after its commit.

Invariant: a result that was answered as stored is committed. A result that the database rejects is
answered alone; the others of its batch are stored. While the database is unavailable no result is
dropped: the queue fills, and then callers wait. A caller must not have a connection checked out.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

import msgspec
import trio

from ...http.wire.errors import Problem
from ...storage.core.instant import EARLIEST, MINUTE, SECOND, Instant
from ...storage.core.key import MonitorKey
from ...storage.core.refusal import Refused, Unavailable
from ...storage.engine.pools import Pool, Rejected, holding_connection
from ...storage.results.event_bus import Bus, status_event
from ...storage.results.rules.incoming_result import (
    RECORDER_STOPPED,
    CachedState,
    IncomingResult,
    ResultSource,
    StoreOutcome,
    StoreResult,
)
from ...storage.results.transactions.record_results import record_results
from ...storage.results.transactions.record_steady import copy_steady, is_copied, record_steady
from ...storage.scheduling.rules.expected_run import Verdict, verdict_of_result
from ...storage.scheduling.tables import presences
from ..runtime.batch_queue import BatchQueue

BATCH_MOST: Final = 200
LINGER_SECONDS: Final = 0.1
# The same for a run that leaves the status unchanged, at the rates that do not fill a batch before.
STEADY_LINGER_SECONDS: Final = 1.0
PUSH_LINGER_SECONDS: Final = 0.002
# Results of one minute at 1 000 per second. When the queue is full, callers wait.
QUEUE_MOST: Final = 60_000
WRITERS: Final = 2
RETRY_FIRST_SECONDS: Final = 0.2
# The pool waits for a connection as well, so the pause bounds only how soon a return is seen.
RETRY_LAST_SECONDS: Final = 1.0
# How often a result that waits beyond its bound asks whether the database is unavailable.
AWAY_LOOK_SECONDS: Final = 0.5
DATABASE_AWAY: Final = "the database is unavailable"
STANDINGS_MOST: Final = 200_000
# Limits of the wait for other receivers if a push deadline cannot be decided yet.
UNDECIDED_PAUSE_SECONDS: Final = 0.05
UNDECIDED_SECONDS: Final = 6.0
# A process that was seen within this time can still be present.
SEEN_WITHIN_US: Final = 10 * MINUTE
ASKED_EACH_US: Final = MINUTE
# A sender that disconnects earlier has its own reason.
HANGS_UP_US: Final = SECOND
# Pushes that waited in their sockets during a stall are read within the first time after it. They
# are as punctual as at its begin. A shorter stall is part of the grace.
READ_WITHIN_US: Final = 2 * SECOND
STALL_US: Final = SECOND // 2

Answer = Callable[[StoreResult], None]


@dataclass(eq=False, slots=True)
class Pending:
    arrival: IncomingResult
    answer: Answer
    undecided_since: float | None = None


class Recorder:
    """Recorder of a process. `record` and `hand_over` accept results; `run` stores them."""

    def __init__(
        self,
        pool: Pool,
        bus: Bus,
        clock: Callable[[], Instant],
        *,
        may_share: bool = True,
        stalled_within: Callable[[int], int] = lambda _: 0,
    ) -> None:
        """`may_share`: whether the row of a result may contain the verdict of its window.
        `stalled_within` returns the longest stall of the event loop that ended within a time, µs.
        """
        self._pool = pool
        self._may_share = may_share
        # Whether no earlier version can be present, and the instant of the last check.
        self._is_understood = False
        self._asked_at = EARLIEST
        self._bus = bus
        self._clock = clock
        self._stalled_within = stalled_within
        self._queue = BatchQueue[Pending](QUEUE_MOST, BATCH_MOST)
        self._standings: dict[MonitorKey, CachedState] = {}
        self._unanswered: set[Pending] = set()
        # Number of pushes in the newest batch.
        self._pushes_before = 0
        # Receipt instants of pushes that are not committed yet.
        self._hearing: dict[object, Instant] = {}
        self._closed_at: Instant | None = None
        # Number of received pushes that were not stored: the presence then has a gap.
        self.lost = 0
        self._undecided: list[Pending] = []
        self._has_undecided = trio.Event()
        # True if the last transaction failed because the database is unavailable.
        self._is_away = False
        # Called when a push deadline waits for the presence of this process.
        self.on_deadline_waiting: Callable[[], None] = lambda: None

    @contextmanager
    def receiving(self) -> Iterator[Instant]:
        """Marks a push as received until its answer; yields the receipt instant.

        Until then `committed_through` stays before the receipt. If the database is unavailable, or
        so slow that the sender disconnects, this process lost the push. The sender did not miss it.
        """
        instant, mark = self._clock(), object()
        self._hearing[mark] = instant
        try:
            yield instant
        except (Problem, Refused):
            # A deliberate answer. The route counts the push if it could not be kept.
            raise
        except trio.Cancelled:
            self.lost += self._clock() - instant > HANGS_UP_US
            raise
        except Exception:
            self.lost += 1
            raise
        finally:
            del self._hearing[mark]

    def count_lost_push(self) -> None:
        """Counts a push that this process could not store; the presence then has a gap."""
        self.lost += 1

    def stop_hearing(self) -> None:
        """Fixes `committed_through` at now, because later pushes can be rejected."""
        self._closed_at = self._heard_at()

    def waited_us(self) -> int:
        """Returns how long a push that is read now can have waited in its socket."""
        stalled_us = self._stalled_within(READ_WITHIN_US)
        return stalled_us if stalled_us > STALL_US else 0

    def _heard_at(self) -> Instant:
        """Returns an instant by which every push that came was read. It never runs back."""
        return Instant(self._clock() - self.waited_us())

    def committed_through(self) -> Instant:
        """Returns an instant by which every received push is committed."""
        now = self._closed_at or self._heard_at()
        return min([now, *(Instant(ts - 1) for ts in self._hearing.values())])

    @property
    def waiting(self) -> int:
        return len(self._queue)

    async def record(self, arrival: IncomingResult, *, until: float = inf) -> StoreResult:
        """Stores a result and waits until it is committed.

        If the database is unavailable at the Trio instant `until`, returns DELAYED; the result is
        stored when the database is back. Raises Unavailable if the queue is full until then.
        """
        done = trio.Event()
        answers: list[StoreResult] = []

        def answer(recorded: StoreResult) -> None:
            answers.append(recorded)
            done.set()

        with _queueing(until):
            await self.hand_over(arrival, answer)
        if not await self._settled(done, until):
            return StoreResult(StoreOutcome.DELAYED, arrival.ts, None, DATABASE_AWAY)
        return answers[0]

    async def record_all(
        self, arrivals: Sequence[IncomingResult], *, until: float = inf
    ) -> list[StoreResult]:
        """Stores results that came together and waits until all are committed; in their order.

        Raises Unavailable if the database is unavailable at the Trio instant `until`. The queue
        keeps the results and stores them later; if the caller brings them again, each window still
        gets one result.
        """
        found: dict[int, StoreResult] = {}
        done = trio.Event()

        def answer(number: int, recorded: StoreResult) -> None:
            found[number] = recorded
            if len(found) == len(arrivals):
                done.set()

        with _queueing(until):
            for number, arrival in enumerate(arrivals):
                await self.hand_over(arrival, partial(answer, number))
        if arrivals and not await self._settled(done, until):
            raise Unavailable(DATABASE_AWAY)
        return [found[number] for number in range(len(arrivals))]

    async def _settled(self, done: trio.Event, until: float) -> bool:
        """Waits; returns False if `until` has passed and the database is unavailable."""
        with trio.move_on_at(until):
            await done.wait()
        # A deadline that waits for other listeners, or a slow statement, does not count.
        while not done.is_set() and not self._is_away:
            with trio.move_on_after(AWAY_LOOK_SECONDS):
                await done.wait()
        return done.is_set()

    async def hand_over(
        self, arrival: IncomingResult, answer: Answer, *, may_wait: bool = False
    ) -> None:
        """Waits only for a place in the queue; `answer` is called after the commit or a refusal.

        With `may_wait`, nobody waits for the answer: a steady result can wait for a larger batch.
        """
        assert not holding_connection(), "the recorder needs a connection to make room"
        linger = self._linger_seconds(arrival, may_wait=may_wait)
        pending = Pending(arrival, answer)
        if arrival.source is ResultSource.PUSH:
            # The push is stored even if its sender disconnects.
            self._hearing[pending] = arrival.ts
        try:
            await self._queue.put(pending, trio.current_time() + linger)
        except trio.Cancelled:
            self._hearing.pop(pending, None)
            raise

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stores results until `close`, and then the rest. A cancellation refuses what is left."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._settle_undecided)
                async with trio.open_nursery() as writers:
                    for _ in range(WRITERS):
                        writers.start_soon(self._write_batches)
                    task_status.started()
                nursery.cancel_scope.cancel()
        finally:
            self._give_up()

    def close(self) -> None:
        """Stops accepting results. The queued results are stored; then `run` ends."""
        self._queue.close()

    def forget(self, key: MonitorKey) -> None:
        """Removes the cached state of a monitor that was edited or deleted."""
        self._standings.pop(key, None)

    def _linger_seconds(self, arrival: IncomingResult, *, may_wait: bool) -> float:
        """Returns how long a result may wait for its batch. One that changes a status waits not."""
        standing = self._standings.get(arrival.key)
        if standing is not None and not standing.is_left_unchanged_by(arrival):
            return 0.0
        if arrival.source is ResultSource.PUSH:
            # A sender that pushes alone waits for no other.
            is_alone = self._pushes_before <= 1 and not self._unanswered and not self.waiting
            return 0.0 if is_alone else PUSH_LINGER_SECONDS
        if standing is None or not may_wait:
            return LINGER_SECONDS
        # The wait never makes a result late.
        left_us = max(arrival.covered_until - self._clock(), 0)
        return min(STEADY_LINGER_SECONDS, left_us / 2 / SECOND)

    async def _write_batches(self) -> None:
        while batch := await self._queue.collect():
            self._unanswered.update(batch)
            self._pushes_before = sum(one.arrival.source is ResultSource.PUSH for one in batch)
            await self._store(batch)

    async def _store(self, batch: Sequence[Pending]) -> None:
        steady: list[Pending] = []
        moving: list[Pending] = []
        for pending in batch:
            (moving if self._must_lock(pending.arrival) else steady).append(pending)
        if steady:
            moving += await self._store_steady(steady)
        if moving:
            moving.sort(key=lambda p: (p.arrival.key, p.arrival.ts))
            await self._store_moving(moving, again=False)

    def _must_lock(self, arrival: IncomingResult) -> bool:
        if arrival.withheld:
            return True
        standing = self._standings.get(arrival.key)
        return standing is None or not standing.is_left_unchanged_by(arrival)

    async def _store_steady(self, batch: Sequence[Pending]) -> list[Pending]:
        """Stores steady writes; returns the results that need the locked path."""
        arrivals = [self._stamped(pending.arrival) for pending in batch]
        try:
            shares = await self._shares_rows()
            if is_copied(arrivals):
                async with self._pool.transaction("record_steady") as tx:
                    stored = await copy_steady(tx, _settled(arrivals, tx.now, shares))
            else:
                async with self._pool.statement("record_steady") as tx:
                    stored = await record_steady(tx, _settled(arrivals, tx.now, shares))
            self._is_away = False
        except (Unavailable, Rejected):
            # The locked path determines for each result whether it was written.
            await self._store_moving(list(batch), again=True)
            return []
        left = []
        for pending, arrival, kept in zip(batch, arrivals, stored, strict=True):
            if not kept:
                self._standings.pop(arrival.key, None)
                left.append(pending)
                continue
            standing = self._standings.get(arrival.key)
            if standing is not None:
                standing = standing.heard(arrival)
                self._standings[arrival.key] = standing
            self._answer(
                pending, StoreResult(StoreOutcome.LIVE, arrival.ts, standing), changed=False
            )
        return left

    async def _shares_rows(self) -> bool:
        """Returns whether all processes find a verdict in the row of its result.

        Processes of earlier versions do not, and refuse to start on this database. So the answer
        stays true. Until then it is read again each minute.
        """
        now = self._clock()
        if not self._may_share or self._is_understood or now < self._asked_at + ASKED_EACH_US:
            return self._is_understood
        async with self._pool.transaction("read_presences", read_only=True) as tx:
            lacks = await presences.lacks_capability(tx, [presences.SHARED_ROWS], SEEN_WITHIN_US)
        self._is_understood, self._asked_at = not lacks, now
        return self._is_understood

    def _stamped(self, arrival: IncomingResult) -> IncomingResult:
        standing = self._standings[arrival.key]
        return msgspec.structs.replace(
            arrival, version=standing.version, dues=standing.windows_of(arrival)
        )

    async def _store_moving(self, batch: Sequence[Pending], *, again: bool) -> None:
        """Stores results under row locks.

        Halves a rejected batch until the rejected result is isolated. Retries while the database is
        unavailable.
        """
        pause = RETRY_FIRST_SECONDS
        while True:
            try:
                await self._store_locked(batch, again=again)
                return
            except Unavailable:
                self._is_away = again = True
                await trio.sleep(pause)
                pause = min(pause * 2, RETRY_LAST_SECONDS)
            except Rejected as error:
                if len(batch) == 1:
                    self._refuse(batch, str(error))
                    return
                middle = len(batch) // 2
                await self._store_moving(batch[:middle], again=again)
                await self._store_moving(batch[middle:], again=again)
                return

    async def _store_locked(
        self, batch: Sequence[Pending], *, again: bool, patient: bool = True
    ) -> None:
        arrivals = [pending.arrival for pending in batch]
        answers, flips = await self._pool.transact(
            "record_results",
            lambda tx: record_results(tx, arrivals, again=again, patient=patient),
        )
        self._is_away = False
        flipped = {(flip.org, flip.monitor, flip.at) for flip in flips}
        for pending, recorded in zip(batch, answers, strict=True):
            arrival = pending.arrival
            if recorded.fate is StoreOutcome.UNDECIDED:
                self._put_off(pending)
                continue
            if recorded.standing is None:
                self._standings.pop(arrival.key, None)
            elif len(self._standings) < STANDINGS_MOST:
                self._standings[arrival.key] = recorded.standing
            changed = (*arrival.key, recorded.ts) in flipped
            self._answer(pending, recorded, changed=changed)

    def _put_off(self, pending: Pending) -> None:
        if pending.undecided_since is None:
            pending.undecided_since = trio.current_time()
        self._undecided.append(pending)
        self._has_undecided.set()

    async def _settle_undecided(self) -> None:
        """Retries pushes whose deadline could not be decided, for a bounded time."""
        while True:
            await self._has_undecided.wait()
            self.on_deadline_waiting()
            await trio.sleep(UNDECIDED_PAUSE_SECONDS)
            self._has_undecided = trio.Event()
            batch, self._undecided = self._undecided, []
            until = trio.current_time() - UNDECIDED_SECONDS
            for patient in (True, False):
                part = [p for p in batch if ((p.undecided_since or 0) > until) is patient]
                if part:
                    try:
                        await self._store_locked(part, again=False, patient=patient)
                    except (Unavailable, Rejected):
                        await self._store_moving(part, again=True)

    def _answer(self, pending: Pending, recorded: StoreResult, *, changed: bool) -> None:
        self._unanswered.discard(pending)
        self._hearing.pop(pending, None)
        pending.answer(recorded)
        event = status_event(pending.arrival, recorded, changed=changed)
        if event is not None:
            self._bus.publish(event)

    def _refuse(self, batch: Sequence[Pending], reason: str) -> None:
        for pending in batch:
            self._unanswered.discard(pending)
            self.lost += self._hearing.pop(pending, None) is not None
            pending.answer(StoreResult(StoreOutcome.REFUSED, pending.arrival.ts, None, reason))

    def _give_up(self) -> None:
        """Answers all remaining results as refused, however `run` ended."""
        self._refuse([*self._unanswered, *self._queue.drain()], RECORDER_STOPPED)


def _settled(
    arrivals: Sequence[IncomingResult], now: Instant, shares: bool
) -> list[IncomingResult]:
    """Decides which results are late at `now` of the transaction, at which it settles windows.

    The first use fixes that instant: a later wait for locks does not make a verdict wrong. With
    `shares`, the row of a result contains the verdict if it can.
    """
    found = []
    for arrival in arrivals:
        late = verdict_of_result(arrival.covered_until, now) is Verdict.COVERED_LATE
        timed = arrival if late is arrival.late else msgspec.structs.replace(arrival, late=late)
        if shares and timed.can_share_row(now):
            timed = msgspec.structs.replace(timed, shares_row=True)
        found.append(timed)
    return found


@contextmanager
def _queueing(until: float) -> Iterator[None]:
    """Raises Unavailable if the queue is still full at the Trio instant `until`."""
    with trio.move_on_at(until) as bound:
        yield
    if bound.cancelled_caught:
        raise Unavailable("the queue of the recorder is full")
