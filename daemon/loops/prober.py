"""Prober: leases batches and jobs, performs the runs and hands over the results.

A permit is acquired before a run starts, so that local load delays the start and is not measured as
latency of the target. A local failure is not stored as a result: the window stays open, and the
ledger records that its run did not finish.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final
from uuid import UUID

import trio

from ...probes.check.monitor_spec import CERTIFIED
from ...probes.check.result import Result, RunOutcome, UnknownReason
from ...probes.jobs.seen_certificates import SeenCertificates
from ...probes.net.egress import Egress
from ...probes.runner import run
from ...storage.core.instant import LATEST, Instant
from ...storage.core.key import MonitorKey
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool
from ...storage.monitors.rows import CertificateReport, ProbeErrorReason
from ...storage.monitors.tables.certificates import record_certificates
from ...storage.monitors.tables.probe_errors import record_probe_errors
from ...storage.results.rules.incoming_result import IncomingResult, StoreOutcome, StoreResult
from ...storage.scheduling.queries import shards
from ...storage.scheduling.rows import LeasedBatch, LeasedJob
from ...storage.scheduling.rules.run_batch import RunBatch
from ...storage.scheduling.rules.run_schedule import LATE_ARRIVAL_US, claimable_until
from ...storage.scheduling.tables import work_queues as queues
from ..runtime.wake_event import WakeEvent, staggered
from .check_cache import CachedCheck, CheckCache
from .check_test_worker import CheckTestWorker
from .due_reader import LOOP_REST_SECONDS
from .result_recorder import Recorder
from .run_queue import ActiveBatch, QueuedRun, RunQueue

log = logging.getLogger("leadline.prober")

PAUSE_SECONDS: Final = 1.0
# Longest time between two passes of a process that has checks.
REST_SECONDS: Final = 5.0
# Leases of batches in one pass.
LEASES_A_PASS: Final = 5
# Runs that start before other tasks get a turn: simultaneous starts would distort the latencies.
STARTS_AT_ONCE: Final = 5
JOBS_AT_ONCE: Final = 20
# An organization that has its share of the permits runs one job beyond it for each 10 permits.
PERMITS_A_JOB: Final = 10
# Certificates that one transaction records.
CERTIFICATES_AT_ONCE: Final = 500


_TROUBLES = frozenset(trouble.value for trouble in ProbeErrorReason)


@dataclass(slots=True)
class ProbeCounters:
    started: int = 0
    stored: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    late_start_us: int = 0


class Prober:
    """Runs the batches of this process's ticker and the batches that it leases.

    Leased batches come from other tickers, from dead processes, and from failed handovers.
    """

    def __init__(
        self,
        pool: Pool,
        process: UUID,
        regions: tuple[str, ...],
        catalogue: CheckCache,
        recorder: Recorder,
        reach: Egress,
        permits: trio.CapacityLimiter,
        clock: Callable[[], Instant],
        trials: CheckTestWorker | None = None,
    ) -> None:
        self._pool = pool
        self._trials = trials
        self._process = process
        self._regions = regions
        self._catalogue = catalogue
        self._recorder = recorder
        self._reach = reach
        self._permits = permits
        self._clock = clock
        self._queue = RunQueue()
        self._numbers = count()
        self._is_closed = False
        # True if the last lease left work behind because this process had no capacity.
        self._wants_more = False
        # Runs that started since the last pass.
        self._started = 0
        # Set by a new window, by new capacity, or by `close`.
        self._news = WakeEvent()
        self._room = WakeEvent()
        self._in_hand: dict[int, ActiveBatch] = {}
        self._done: list[int] = []
        self._shards: tuple[int, ...] = ()
        # Probe errors of monitors without a usable check; the next pass stores them.
        self._troubles: dict[MonitorKey, tuple[ProbeErrorReason, Instant]] = {}
        self._certificates = SeenCertificates[MonitorKey]()
        self._running: trio.Nursery | None = None
        self.wake = WakeEvent()
        self.counts = ProbeCounters()

    async def hand_out(self, key: int, shard: int, item: RunBatch) -> None:
        """Accepts a batch from the ticker of this process; waits while the queue is full."""
        await self._take(
            LeasedBatch(key, shard, item.orgs, item.monitors, item.due_ats, item.claim_untils)
        )

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Starts each window when it is due and a permit is free.

        After `close` it ends with the last run in progress.
        """
        async with trio.open_nursery() as nursery:
            self._running = nursery
            task_status.started()
            try:
                await self._start_what_is_due(nursery)
            finally:
                # A running pass must not start tasks: the nursery accepts none after its last task.
                self._running = None

    async def _start_what_is_due(self, nursery: trio.Nursery) -> None:
        while not self._is_closed:
            now = self._clock()
            for late in self._queue.remove_expired(now):
                # Another process can run it, or the sealer settles it.
                self._settle(late.batch, stored=False)
            window = self._queue.start(now, self._free())
            if window is None:
                await self._news.wait(self._queue.seconds_to_next(now, PAUSE_SECONDS))
                continue
            permit = object()
            self._permits.acquire_on_behalf_of_nowait(permit)
            self._room.set()
            if self._wants_more and self._needs_more(now):
                # Waiting for the next timed pass would leave permits idle.
                self._wants_more = False
                self.wake.set()
            if not await self._start(nursery, window, permit):
                self._end(window, permit)
            self._started += 1
            if self._started % STARTS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()

    def _free(self) -> int:
        """Returns the permits that no run has, and none that has begun waits for."""
        total = int(self._permits.total_tokens)
        return min(int(self._permits.available_tokens), total - self._queue.runs)

    def _needs_more(self, now: Instant) -> bool:
        most, free = self._permits.total_tokens, self._free()
        return len(self._queue) < most or (free > 0 and self._queue.servable(now, free) < most)

    def _end(self, window: QueuedRun, permit: object) -> None:
        self._permits.release_on_behalf_of(permit)
        self._queue.end(window)
        if self._queue.has_due:
            self._news.set()

    def close(self) -> None:
        """Stops accepting work; runs in progress finish."""
        self._is_closed = True
        self._news.set()

    def rest_seconds(self) -> float:
        is_idle = not (self._in_hand or self._done or self._troubles or len(self._catalogue))
        return staggered(LOOP_REST_SECONDS if is_idle else REST_SECONDS)

    async def pass_once(self) -> None:
        """Refreshes the checks, leases jobs and batches, and deletes finished batches."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            found = await shards.select_shards(tx, self._regions)
        self._shards = tuple(shard.id for shard in found)
        await self._catalogue.refresh(self._shards)
        await self._forget_done()
        await self._record_probe_errors()
        await self._lease_jobs()
        await self._lease_check_tests()
        await self._lease()
        # A wait for a lock must delay no lease.
        await self._record_certificates()

    async def _lease_check_tests(self) -> None:
        if self._trials is None or self._running is None or self._is_closed:
            return
        for trial in await self._trials.lease():
            if self._running is not None and not self._is_closed:
                self._running.start_soon(self._trials.answer, trial)

    async def _lease(self) -> None:
        """Leases batches while more exist and no due run waits for a permit.

        A window that is not due yet occupies no permit, but other processes can run it too.
        """
        started, self._started = self._started, 0
        for _ in range(LEASES_A_PASS):
            most = self._queue.batches_wanted(self._clock(), self._free(), started)
            if not most or not self._shards or self._queue.is_full():
                self._wants_more = True
                return
            async with self._pool.transaction("lease_batches") as tx:
                leased = await queues.lease_batches(
                    tx, self._process, self._shards, [*self._in_hand, *self._done], most
                )
                settled = await queues.select_settled(tx, [item.id for item in leased])
            for item in leased:
                await self._take(_without(item, settled))
            if len(leased) < most:
                return
        self._wants_more = True

    async def _take(self, leased: LeasedBatch) -> None:
        batch = ActiveBatch(leased.id, leased.shard, len(leased.due_ats))
        self._in_hand[leased.id] = batch
        while self._queue.is_full():
            await self._room.wait(PAUSE_SECONDS)
        if not leased.due_ats:
            self._finish(batch)
        for n, due in enumerate(leased.due_ats):
            key = MonitorKey((leased.orgs[n], leased.monitors[n]))
            claim_until = leased.claim_untils[n]
            if self._queue.is_full_for(key):
                self._settle(batch, stored=False)
                continue
            self._enqueue(QueuedRun(due, next(self._numbers), batch, key, claim_until))

    def _enqueue(self, item: QueuedRun) -> None:
        self._queue.push(item)
        self._news.set()

    async def _start(self, nursery: trio.Nursery, window: QueuedRun, permit: object) -> bool:
        """Starts the run in the nursery, which ends the permit. Returns False without a run."""
        try:
            entry = (await self._catalogue.find([window.key])).get(window.key)
        except Unavailable:
            # The database failed before the run began: the window is leased again, or sealed.
            self._settle(window.batch, stored=False)
            return False
        if entry is None or self._clock() >= window.claim_until:
            # The monitor was deleted, or the run is too late: then the sealer settles the window.
            self._settle(window.batch, stored=entry is None)
        elif entry.check is None:
            self._record_unready(window.key, entry)
            self._settle(window.batch, stored=False)
        else:
            nursery.start_soon(self._run_window, permit, window, entry)
            return True
        return False

    async def _run_window(self, permit: object, window: QueuedRun, entry: CachedCheck) -> None:
        batch, key, due = window.batch, window.key, window.due
        try:
            self.counts.late_start_us = max(self.counts.late_start_us, self._clock() - due)
            result = await self._probe(key, entry)
            if _stalled(result) and self._clock() < claimable_until(due, entry.interval_us):
                # The window can be claimed again, and a run that starts now still counts for it.
                result = await self._probe(key, entry)
        finally:
            self._end(window, permit)
        if result.outcome is RunOutcome.UNKNOWN:
            self._record_unknown(key, entry, result)
            self._settle(batch, stored=False)
            return
        arrival = arrival_of(key, batch.shard, entry, result, due)

        def answered(recorded: StoreResult) -> None:
            if recorded.fate is StoreOutcome.OUTDATED:
                self._catalogue.forget(key)
                claim_until = claimable_until(due, entry.interval_us)
                self._enqueue(QueuedRun(due, next(self._numbers), batch, key, claim_until))
                return
            self._settle(batch, stored=recorded.fate is not StoreOutcome.REFUSED)
            self._record_stored(entry, recorded)

        await self._recorder.hand_over(arrival, answered, may_wait=True)

    async def _probe(self, key: MonitorKey, entry: CachedCheck) -> Result:
        self.counts.started += 1
        assert entry.check is not None, "entries without a check are not started"
        result = await run(entry.check, self._reach, self._clock, key[0])
        self._queue.record_cpu(key, result.cpu_us, self._clock())
        if entry.check.type in CERTIFIED:
            self._certificates.see(key, entry.revision, result)
        return result

    async def _lease_jobs(self) -> None:
        if not self._shards or self._running is None or self._is_closed:
            return
        free, beyond = self._free(), int(self._permits.total_tokens) // PERMITS_A_JOB
        most = max(0, min(JOBS_AT_ONCE, free))
        limits = self._queue.job_limits(self._clock(), free, max(1, beyond))
        async with self._pool.transaction("lease_jobs") as tx:
            jobs = await queues.lease_jobs(tx, self._process, self._shards, most, limits)
        # The edit that caused a job can commit after the last refresh: the cached monitor would
        # still be paused. Jobs are few, so their monitors are read again.
        keys = [MonitorKey((job.org, job.monitor)) for job in jobs]
        for key in keys:
            self._catalogue.forget(key)
        entries = await self._catalogue.find(keys)
        if self._running is None or self._is_closed:
            # Leased and not started: the lease expires.
            return
        for job in jobs:
            self._queue.begin_beside(MonitorKey((job.org, job.monitor)))
            self._running.start_soon(
                self._run_job, job, entries.get(MonitorKey((job.org, job.monitor)))
            )

    async def _run_job(self, job: LeasedJob, entry: CachedCheck | None) -> None:
        key = MonitorKey((job.org, job.monitor))
        try:
            if not await self._run_beside(job, entry):
                self._catalogue.forget(key)
                await self._run_beside(job, (await self._catalogue.find([key])).get(key))
            async with self._pool.transaction("finish_job") as tx:
                await queues.delete_jobs(tx, [job])
        except Unavailable:
            log.warning("job stays leased until its lease expires")
        finally:
            self._queue.end_beside(key)

    async def _run_beside(self, job: LeasedJob, entry: CachedCheck | None) -> bool:
        """Performs a run without a window; returns False if its definition was outdated."""
        if entry is None or not entry.enabled:
            return True
        if entry.check is None:
            self._record_unready(MonitorKey((job.org, job.monitor)), entry)
            return True
        # Acquired in this task, so that the pass can refresh checks while no permit is free.
        permit = object()
        await self._permits.acquire_on_behalf_of(permit)
        key = MonitorKey((job.org, job.monitor))
        try:
            result = await self._probe(key, entry)
        finally:
            self._permits.release_on_behalf_of(permit)
            self._news.set()
        if result.outcome is RunOutcome.UNKNOWN:
            self._record_unknown(key, entry, result)
            return True
        arrival = arrival_of(key, job.shard, entry, result, None)
        recorded = await self._recorder.record(arrival)
        if recorded.fate is not StoreOutcome.OUTDATED:
            self._record_stored(entry, recorded)
        return recorded.fate is not StoreOutcome.OUTDATED

    def _settle(self, batch: ActiveBatch, *, stored: bool) -> None:
        batch.outstanding -= 1
        batch.is_clean = batch.is_clean and stored
        if not batch.outstanding:
            self._finish(batch)

    def _finish(self, batch: ActiveBatch) -> None:
        self._in_hand.pop(batch.key, None)
        if batch.is_clean:
            self._done.append(batch.key)

    async def _forget_done(self) -> None:
        done, self._done = self._done, []
        if not done:
            return
        try:
            async with self._pool.transaction("delete_run_batches") as tx:
                await queues.delete_batches(tx, done)
        except Unavailable:
            self._done += done
            raise

    def _record_stored(self, entry: CachedCheck, recorded: StoreResult) -> None:
        if recorded.fate is StoreOutcome.REFUSED:
            log.error(
                "result not stored",
                extra={"monitor": str(entry.uid), "cause": recorded.reason},
            )
        else:
            self.counts.stored += 1

    def _count_unknown(self, reason: str) -> None:
        self.counts.unknown[reason] = self.counts.unknown.get(reason, 0) + 1

    def _record_unready(self, key: MonitorKey, entry: CachedCheck) -> None:
        reason = entry.trouble.partition(":")[0]
        self._count_unknown(reason)
        self._record_probe_error(key, reason)

    def _record_probe_error(self, key: MonitorKey, reason: str) -> None:
        if reason in _TROUBLES:
            self._troubles[key] = ProbeErrorReason(reason), self._clock()

    async def _record_probe_errors(self) -> None:
        if not self._troubles:
            return
        troubles, self._troubles = self._troubles, {}
        try:
            async with self._pool.transaction("record_probe_errors") as tx:
                await record_probe_errors(tx, troubles)
        except BaseException:
            # Keep the errors: the next run that would find them can be a day away.
            self._troubles = troubles | self._troubles
            raise

    async def _record_certificates(self) -> None:
        while notes := self._certificates.take(CERTIFICATES_AT_ONCE):
            reports = [
                CertificateReport(
                    one.key,
                    one.revision,
                    None if one.ends_at is None else Instant(one.ends_at),
                    Instant(one.seen_at),
                )
                for one in notes
            ]
            try:
                work = partial(record_certificates, reports=reports)
                await self._pool.transact("record_certificates", work)
            except BaseException:
                self._certificates.give_back(notes)
                raise

    def _record_unknown(self, key: MonitorKey, entry: CachedCheck, result: Result) -> None:
        reason = str(result.unknown_reason)
        self._count_unknown(reason)
        self._record_probe_error(key, reason)
        extra = {"monitor": str(entry.uid), "reason": reason}
        if result.bug:
            log.error("probe raised an exception", extra=extra | {"bug": result.bug})
        else:
            log.warning("run could not be performed", extra=extra)


def _stalled(result: Result) -> bool:
    return result.unknown_reason is UnknownReason.LOOP_STALLED


def arrival_of(
    key: MonitorKey, shard: int, entry: CachedCheck, result: Result, due: Instant | None
) -> IncomingResult:
    instant = Instant(result.started_at)
    phases = result.phases
    windowed = due is not None
    until = LATEST
    if due is not None:
        # A run never begins before it is due, although the clock can return an earlier instant.
        instant = max(instant, due)
        until = min(
            Instant(due + entry.interval_us), Instant(due + entry.timeout_us + LATE_ARRIVAL_US)
        )
    return IncomingResult(
        org=key[0],
        monitor=key[1],
        shard=shard,
        ts=instant,
        up=result.outcome is RunOutcome.UP,
        latency_ms=result.latency_ms,
        code=result.code,
        msg=result.msg,
        dns_us=phases.dns_us,
        connect_us=phases.connect_us,
        tls_us=phases.tls_us,
        first_byte_us=phases.first_byte_us,
        dues=(due,) if due is not None else (),
        windowed=windowed,
        covered_until=until,
        reach_us=entry.timeout_us + LATE_ARRIVAL_US,
        revision=entry.revision,
        condition=result.failed.condition if result.failed else None,
        measured=result.failed.measured if result.failed else None,
    )


def _without(leased: LeasedBatch, settled: set[tuple[int, int, Instant]]) -> LeasedBatch:
    """Returns the batch without the windows that are already settled."""
    keep = [
        n
        for n, window in enumerate(zip(leased.orgs, leased.monitors, leased.due_ats, strict=True))
        if window not in settled
    ]
    return LeasedBatch(
        leased.id,
        leased.shard,
        [leased.orgs[n] for n in keep],
        [leased.monitors[n] for n in keep],
        [leased.due_ats[n] for n in keep],
        [leased.claim_untils[n] for n in keep],
    )
