"""Requests to the server: heartbeats for its time, and claims for jobs.

Updates the clock, the connection state and the offline schedule from the responses. A claim asks
only for as many jobs as can start as soon as they are due.
"""

import logging
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import trio

from ...probes.check.loop_lag import LoopLag
from ...probes.jobs.agent_protocol import JOBS_MOST
from ..runtime.wake_event import WakeEvent
from .backoff import Backoff
from .check_tester import CheckTester
from .connection_state import ALONE_US_MOST, ConnectionState, ConnectionTracker, Question
from .counters import AgentCounters
from .job_parser import CARRIER, AgentJob, RefusedJob, own_task, read_task
from .job_runner import JobRunner
from .offline_schedule import OfflineSchedule
from .ring_buffer import RingBuffer
from .server_client import NoAnswer, RequestRefused, ResponseTooLarge, ServerClient
from .server_clock import ServerClock, TimeReading

log = logging.getLogger("leadline.agent.puller")

HEARTBEAT_PAUSE_SECONDS: Final = 10.0
# A doubted or vague time is decided by the next responses, so ask soon.
DOUBT_SECONDS: Final = 1.0
CLAIM_WAIT_SECONDS: Final = 20
REFUSED_SECONDS: Final = 30.0
WAITING_SECONDS: Final = 1.0
# Minimum interval between two scans of the offline schedule.
PACE_SECONDS: Final = 0.25

_UNWELCOME: Final = frozenset({401, 403})


class Puller:
    """Three loops that share the connection state. Each runs until it is cancelled."""

    def __init__(
        self,
        server: ServerClient,
        token: str,
        version: str,
        clock: ServerClock,
        link: ConnectionTracker,
        known: OfflineSchedule,
        runs: JobRunner,
        tests: CheckTester,
        ring: RingBuffer,
        counts: AgentCounters,
        count_us: Callable[[], int] = LoopLag.now_us,
    ) -> None:
        self._server = server
        self._token = token
        self._version = version
        self._clock = clock
        self._link = link
        self._known = known
        self._runs = runs
        self._tests = tests
        self._ring = ring
        self._counts = counts
        # Monotonic clock for the connection state. It also counts time in suspend.
        self._count_us = count_us
        self._numbers = count()
        self._most = JOBS_MOST
        self._backoff = Backoff()
        # Results up to this number have reliable instants.
        self._sure_through = ring.last
        self._heard_at = 0
        self._told = ConnectionState.NEW
        self._claiming = trio.CancelScope()
        self._claim_soon = WakeEvent()
        self.on_back: Callable[[], None] = lambda: None

    # Heartbeat.

    async def heartbeat_loop(self, beat: Callable[[], None]) -> None:
        backoff = Backoff()
        while True:
            if await self.greet():
                backoff.reset()
                is_sure = self._clock.is_set and not self._clock.is_doubted
                pause = HEARTBEAT_PAUSE_SECONDS if is_sure else DOUBT_SECONDS
            elif self.standing() is ConnectionState.REFUSED:
                pause = REFUSED_SECONDS
            else:
                pause = min(backoff.seconds(), HEARTBEAT_PAUSE_SECONDS)
            beat()
            await trio.sleep(pause)

    async def greet(self) -> bool:
        """Sends one heartbeat. Returns False if it was refused or had no response."""
        before, asked_at = self.standing(), self._clock.count()
        try:
            server_now = await self._server.heartbeat(CARRIER, self._version)
        except (NoAnswer, RequestRefused) as error:
            self._failed(Question.HEARTBEAT, error)
            return False
        answered_at = self._clock.count()
        self._hear(self._clock.hear(server_now, asked_at, answered_at))
        now = self._count_us()
        self._link.answered(Question.HEARTBEAT, now)
        if before is ConnectionState.CONNECTED:
            self._known.pass_connected(now - self._heard_at)
        else:
            # A claim from before the interruption could wait on the dead connection without end.
            self._claiming.cancel()
            self._claim_soon.set()
            self.on_back()
        self._heard_at = now
        return True

    def _hear(self, heard: TimeReading) -> None:
        if heard is TimeReading.DOUBTED:
            log.warning("server clock differs from the carried time: results wait")
            return
        if heard is TimeReading.LEAPT:
            dropped = self._ring.delete_after(self._sure_through)
            self._counts.dropped["clock"] += dropped
            # Instants of the old era are invalid, also due instants of windows.
            self._runs.clear()
            self._known.clear()
            log.error("server clock jumped", extra={"dropped": dropped})
        if heard is TimeReading.FIRST:
            self._claim_soon.set()
        self._sure_through = self._ring.last

    # Claim.

    async def claim_loop(self, beat: Callable[[], None]) -> None:
        while True:
            beat()
            pause = await self.claim_once()
            if pause:
                await self._claim_soon.wait(pause)

    async def claim_once(self) -> float:
        """Claims jobs. Returns the seconds to wait before the next claim."""
        if not self._clock.is_set or self._clock.is_doubted:
            return WAITING_SECONDS
        if self.standing() is ConnectionState.REFUSED:
            return REFUSED_SECONDS
        most = min(self._most, self._runs.room())
        if most <= 0:
            await self._runs.freed.wait(WAITING_SECONDS)
            return 0.0
        # After a failure, ask without waiting: a response matters more than a job.
        wait = 0 if self._link.has_failed(Question.CLAIM) else CLAIM_WAIT_SECONDS
        try:
            with trio.CancelScope() as self._claiming:
                claimed = await self._server.claim(most, wait)
        except (NoAnswer, RequestRefused) as error:
            if isinstance(error, ResponseTooLarge):
                self._most = max(most // 2, 1)
            self._failed(Question.CLAIM, error)
            return (
                REFUSED_SECONDS
                if self.standing() is ConnectionState.REFUSED
                else self._backoff.seconds()
            )
        if self._claiming.cancelled_caught:
            return 0.0
        self._backoff.reset()
        self._most = min(self._most * 2, JOBS_MOST)
        self._link.answered(Question.CLAIM, self._count_us())
        for raw in claimed.tests:
            self._tests.put(raw)
        for raw in claimed.jobs[:most]:
            self._admit(raw)
        self._counts.refused["surplus"] += max(len(claimed.jobs) - most, 0)
        return 0.0

    def _admit(self, raw: dict[str, Any]) -> None:
        try:
            task = read_task(raw, self._token, next(self._numbers))
        except RefusedJob as error:
            self._counts.refused[error.reason] += 1
            log.warning(
                "job cannot be run",
                extra={"reason": error.reason, "said": str(error), "monitor": _monitor(raw)},
            )
            return
        self._known.learn(task.definition)
        if self._is_new(task):
            self._runs.put(task)
        else:
            self._counts.refused["in_hand"] += 1

    def _is_new(self, task: AgentJob) -> bool:
        if not task.is_window:
            return True
        return self._known.take(task.definition, task.due, self._clock.now())

    # Offline.

    async def offline_loop(self, beat: Callable[[], None]) -> None:
        """Runs due windows of known monitors while the server is unreachable."""
        while True:
            beat()
            await trio.sleep(self.look_once())

    def look_once(self) -> float:
        """Queues due windows while disconnected. Returns the seconds until the next pass."""
        standing = self._log_connection()
        if standing is not ConnectionState.CUT_OFF or not self._clock.is_set:
            return WAITING_SECONDS / 2
        if self._link.silent_us(self._count_us()) > ALONE_US_MOST:
            if self._known.clear():
                log.error("disconnected for too long: offline schedule cleared")
            return WAITING_SECONDS
        now = self._clock.now()
        for definition, due in self._known.claim_due(now):
            self._runs.put(own_task(definition, due, next(self._numbers)))
        next_due = self._known.next_due(now)
        left = WAITING_SECONDS if next_due is None else (next_due - self._clock.now()) / 1e6
        return min(max(left, PACE_SECONDS), WAITING_SECONDS)

    def _log_connection(self) -> ConnectionState:
        standing = self.standing()
        if standing is not self._told:
            level = logging.INFO if standing is ConnectionState.CONNECTED else logging.WARNING
            extra = {"was": self._told.value, "is": standing.value, "results": len(self._ring)}
            log.log(level, "connection state changed", extra=extra)
            self._told = standing
        return standing

    # Connection state.

    def silent_seconds(self) -> int:
        """Returns the seconds since the last response of the server."""
        return self._link.silent_us(self._count_us()) // 1_000_000

    def standing(self) -> ConnectionState:
        return self._link.standing(self._count_us())

    def _failed(self, question: Question, error: NoAnswer | RequestRefused) -> None:
        log.debug("request failed", extra={"question": question.value, "cause": str(error)})
        if isinstance(error, RequestRefused) and error.status in _UNWELCOME:
            self._link.refused()
            forgotten = self._known.clear() + self._runs.clear()
            if forgotten or self._told is not ConnectionState.REFUSED:
                log.error("server refused the agent", extra={"cause": str(error)})
                self._told = ConnectionState.REFUSED
            return
        self._link.failed(question)


def _monitor(raw: dict[str, Any]) -> str:
    return str(raw.get("monitor_id", ""))[:36]
