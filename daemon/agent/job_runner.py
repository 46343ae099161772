"""Job runner: starts each run at its due instant and buffers its result.

A run takes a permit before it starts. Under local load it waits for the permit, so that the load
does not count as the target's latency. A local failure is counted and not reported. Its window
remains open, and the server may assign it to another worker.
"""

import logging
from heapq import heappop, heappush
from typing import Final
from uuid import UUID

import msgspec
import trio
from msgspec import UNSET, UnsetType

from ...probes.check.monitor_spec import CERTIFIED
from ...probes.check.result import MESSAGE_LONGEST, Result, RunOutcome, UnknownReason
from ...probes.jobs.agent_protocol import AgentFailedCondition, AgentResult
from ...probes.jobs.seen_certificates import SeenCertificates
from ...probes.net.egress import Egress
from ...probes.runner import run
from ..runtime.wake_event import WakeEvent
from .counters import AgentCounters
from .job_parser import AgentJob, moment
from .offline_schedule import OfflineSchedule
from .ring_buffer import RingBuffer
from .server_clock import ServerClock

log = logging.getLogger("leadline.agent.job_runner")

PAUSE_SECONDS: Final = 1.0
# Runs started without a checkpoint. Starting all of them together would distort their latencies.
STARTS_AT_ONCE: Final = 5
LATENCY_MS_MOST: Final = 86_400_000
CODE_MOST: Final = 2**31 - 1


class JobRunner:
    """Queue of jobs in due order. Each waits for its due instant and a permit."""

    def __init__(
        self,
        reach: Egress,
        clock: ServerClock,
        permits: trio.CapacityLimiter,
        known: OfflineSchedule,
        ring: RingBuffer,
        counts: AgentCounters,
    ) -> None:
        self._reach = reach
        self._clock = clock
        self._permits = permits
        self._known = known
        self._ring = ring
        self._counts = counts
        self.seen = SeenCertificates[UUID]()
        self._waiting: list[AgentJob] = []
        self._news = WakeEvent()
        self._is_closed = False
        # Set whenever a permit is released.
        self.freed = WakeEvent()

    def room(self) -> int:
        """Returns how many further jobs could start as soon as they are due."""
        return int(self._permits.available_tokens) - len(self._waiting)

    def put(self, task: AgentJob) -> None:
        heappush(self._waiting, task)
        self._news.set()

    def clear(self) -> int:
        """Removes the jobs that have not begun, and returns their number.

        It also drops the certificates that are not reported, since the clock may have jumped.
        """
        self.seen.forget()
        count = len(self._waiting)
        for task in self._waiting:
            self._known.give_back(task.definition.monitor, task.due)
        self._waiting.clear()
        return count

    def close(self) -> None:
        """Stops starting runs. Running ones finish."""
        self._is_closed = True
        self._news.set()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Starts runs until `close`, and then waits for the last run."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            started = 0
            while not self._is_closed:
                seconds = self._seconds_to_next()
                if seconds > 0:
                    await self._news.wait(seconds)
                    continue
                await self._start(nursery)
                started += 1
                if started % STARTS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def _seconds_to_next(self) -> float:
        """Returns the wait for the next job, bounded because a response may move the clock."""
        if not self._waiting:
            return PAUSE_SECONDS
        return min((self._waiting[0].due - self._clock.now()) / 1e6, PAUSE_SECONDS)

    async def _start(self, nursery: trio.Nursery) -> None:
        permit = object()
        await self._permits.acquire_on_behalf_of(permit)
        # `clear` or `close` may have been called while no permit was free.
        if not self._waiting or self._is_closed:
            self._release(permit)
            return
        task = heappop(self._waiting)
        if self._clock.now() >= task.begin_until:
            self._release(permit)
            self._give_back(task)
            self._counts.refused["late"] += 1
            return
        nursery.start_soon(self._run, task, permit)

    async def _run(self, task: AgentJob, permit: object) -> None:
        era = self._clock.era
        try:
            result = await self._probe(task)
            stalled = result.unknown_reason is UnknownReason.LOOP_STALLED
            if stalled and self._clock.now() < task.begin_until:
                # The window can still be run, so repeat the run.
                result = await self._probe(task)
        finally:
            self._release(permit)
        if result.outcome is RunOutcome.UNKNOWN:
            self._record_unknown(task, result)
        elif self._clock.era != era:
            # After a clock jump, the instant of the observation is known in neither era.
            self._counts.dropped["clock"] += 1
            self._give_back(task)
        else:
            self._ring.keep(encoded(task, result), task.lease_until)
            if task.definition.check.type in CERTIFIED:
                self.seen.see(task.definition.monitor, task.definition.revision, result)
            self._count(task, result)

    async def _probe(self, task: AgentJob) -> Result:
        # A job does not name its organization, so each monitor has a CPU share of its own.
        # `FairQueue` admits the one with the least use first, so a costly target delays no other.
        share = task.definition.monitor.int
        return await run(task.definition.check, self._reach, self._clock.now, share)

    def _release(self, permit: object) -> None:
        self._permits.release_on_behalf_of(permit)
        self.freed.set()

    def _give_back(self, task: AgentJob) -> None:
        if task.is_window:
            self._known.give_back(task.definition.monitor, task.due)

    def _count(self, task: AgentJob, result: Result) -> None:
        if result.outcome is RunOutcome.UP:
            self._counts.up += 1
        else:
            self._counts.down += 1
        if not task.lease_until:
            self._counts.alone += 1

    def _record_unknown(self, task: AgentJob, result: Result) -> None:
        reason = str(result.unknown_reason)
        self._counts.unknown[reason] += 1
        self._give_back(task)
        extra = {"monitor": str(task.definition.monitor), "reason": reason}
        if result.bug:
            log.error("probe raised an exception", extra=extra | {"bug": result.bug})
        else:
            log.warning("run could not be performed", extra=extra)


def encoded(task: AgentJob, result: Result) -> bytes:
    """Returns the result as JSON.

    `ts` is at least the due instant, because a response may have moved the clock slightly.
    """
    code = result.code
    return msgspec.json.encode(
        AgentResult(
            job_id=task.job_id,
            monitor_id=task.definition.monitor,
            due_at=moment(task.due),
            ts=moment(max(result.started_at, task.due)),
            up=result.outcome is RunOutcome.UP,
            latency_ms=min(max(result.latency_ms, 0), LATENCY_MS_MOST),
            code=UNSET if code is None or abs(code) > CODE_MOST else code,
            msg=result.msg[:MESSAGE_LONGEST],
            failed_condition=failed_condition_of(result),
        )
    )


def failed_condition_of(result: Result) -> AgentFailedCondition | UnsetType:
    if result.failed is None:
        return UNSET
    measured = UNSET if result.failed.measured is None else result.failed.measured
    return AgentFailedCondition(condition=result.failed.condition, measured=measured)
