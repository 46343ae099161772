"""Tests of checks before they are saved: each runs once, and its result is sent at once.

A person waits for the result, so it is not stored: if the server does not answer, it is sent again,
at most SENDS_MOST times in total, and then dropped.
"""

import logging
from typing import Any, Final
from uuid import UUID

import trio
from msgspec import UNSET

from ...probes.check.result import (
    MESSAGE_LONGEST,
    Phases,
    Result,
    RunOutcome,
    UnknownReason,
    unobtained,
)
from ...probes.jobs.agent_protocol import AgentTestPhases, AgentTestResult
from ...probes.net.egress import Egress
from ...probes.runner import run
from .counters import AgentCounters
from .job_parser import AgentTest, RefusedJob, moment, read_test
from .job_runner import CODE_MOST, LATENCY_MS_MOST, failed_condition_of
from .server_client import NoAnswer, RequestRefused, ServerClient
from .server_clock import ServerClock

log = logging.getLogger("leadline.agent.check_tester")

RETRY_SECONDS: Final = 1.0
SENDS_MOST: Final = 3
WAITING_MOST: Final = 20
# Reasons of the result by those of the parser.
_REASONS: Final = {
    "carrier_unknown": UnknownReason.CARRIER_TOO_OLD,
    "envelope": UnknownReason.DECRYPT_FAILED,
}


class CheckTester:
    """Runs claimed tests under the permits of all runs."""

    def __init__(
        self,
        server: ServerClient,
        token: str,
        reach: Egress,
        clock: ServerClock,
        permits: trio.CapacityLimiter,
        counts: AgentCounters,
    ) -> None:
        self._server = server
        self._token = token
        self._reach = reach
        self._clock = clock
        self._permits = permits
        self._counts = counts
        self._send, self._receive = trio.open_memory_channel[dict[str, Any]](WAITING_MOST)

    def put(self, raw: dict[str, Any]) -> None:
        """Queues a test as received. It is dropped if too many wait or after `close`."""
        try:
            self._send.send_nowait(raw)
        except (trio.WouldBlock, trio.ClosedResourceError):
            self._counts.refused["surplus"] += 1

    def close(self) -> None:
        """Starts no further tests. Running ones finish."""
        self._send.close()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Runs tests until `close`, and then waits for the last one."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for raw in self._receive:
                nursery.start_soon(self._answer, raw)

    async def _answer(self, raw: dict[str, Any]) -> None:
        try:
            test = read_test(raw, self._token)
        except RefusedJob as error:
            self._counts.refused[error.reason] += 1
            log.warning("test cannot be run", extra={"reason": error.reason, "said": str(error)})
            test_id = _id_of(raw)
            if test_id is not None:
                reason = _REASONS.get(error.reason, UnknownReason.BAD_DEFINITION)
                await self._report(test_id, unobtained(self._clock.now(), "", reason))
            return
        async with self._permits:
            if self._clock.now() >= test.until:
                self._counts.refused["late"] += 1
                return
            result = await self._run(test)
        if result.bug:
            log.error("probe raised an exception", extra={"bug": result.bug})
        await self._report(test.test_id, result)

    async def _run(self, test: AgentTest) -> Result:
        return await run(test.check, self._reach, self._clock.now)

    async def _report(self, test_id: UUID, result: Result) -> None:
        body = _body(test_id, result)
        for attempt in range(SENDS_MOST):
            try:
                await self._server.answer_test(body)
            except RequestRefused as error:
                self._counts.dropped[f"refused_{error.status}"] += 1
                return
            except NoAnswer:
                if attempt + 1 < SENDS_MOST:
                    await trio.sleep(RETRY_SECONDS)
            else:
                return
        self._counts.dropped["test"] += 1


def _id_of(raw: dict[str, Any]) -> UUID | None:
    try:
        return UUID(str(raw.get("job_id")))
    except ValueError:
        return None


def _body(test_id: UUID, result: Result) -> AgentTestResult:
    code, reason = result.code, result.unknown_reason
    return AgentTestResult(
        test_id=test_id,
        ts=moment(result.started_at),
        outcome=RunOutcome(result.outcome),
        latency_ms=min(max(result.latency_ms, 0), LATENCY_MS_MOST),
        code=UNSET if code is None or abs(code) > CODE_MOST else code,
        msg=result.msg[:MESSAGE_LONGEST],
        reason=UNSET if reason is None else reason,
        phases=_phases(result.phases),
        failed_condition=failed_condition_of(result),
    )


def _phases(phases: Phases) -> AgentTestPhases:
    known = {
        name: value
        for name in ("dns_us", "connect_us", "tls_us", "first_byte_us", "unfinished")
        if (value := getattr(phases, name)) is not None
    }
    return AgentTestPhases(total_us=phases.total_us, **known)
