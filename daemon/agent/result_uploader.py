"""Upload of the ring buffer to the server, in order.

A result is removed only when the server has acknowledged it, or refuses it in a batch of one. A
refused batch is halved until its results are sent one by one, so that a refused result does not
block others. If the server is unreachable or refuses the agent, all results remain.
"""

import logging
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import Final
from uuid import UUID

import msgspec
import trio

from ...probes.jobs.agent_protocol import RESULTS_MOST
from ..runtime.wake_event import WakeEvent
from .backoff import Backoff
from .connection_state import ConnectionState
from .counters import AgentCounters
from .ring_buffer import BufferedResult, RingBuffer
from .server_client import AgentEndpoint, NoAnswer, RequestRefused, ServerClient
from .server_clock import ServerClock

log = logging.getLogger("leadline.agent.result_uploader")

IDLE_SECONDS: Final = 10.0
# Results that end within this time are sent together.
LINGER_SECONDS: Final = 0.05
REFUSED_SECONDS: Final = 30.0
WAITING_SECONDS: Final = 1.0


class _Named(msgspec.Struct, frozen=True):
    monitor_id: UUID


class ResultUploader:
    """Uploader. `welcome` returns whether the server currently accepts this agent."""

    def __init__(
        self,
        server: ServerClient,
        ring: RingBuffer,
        clock: ServerClock,
        counts: AgentCounters,
        standing: Callable[[], ConnectionState],
        welcome: Callable[[], Awaitable[bool]],
    ) -> None:
        self._server = server
        self._ring = ring
        self._clock = clock
        self._counts = counts
        self._standing = standing
        self._welcome = welcome
        self._most = RESULTS_MOST
        self._backoff = Backoff()
        self._is_closed = False
        # Ends a pause after a failure, when the server is reachable again.
        self.hurry = WakeEvent()

    async def run(self, beat: Callable[[], None]) -> None:
        """Sends until cancelled. After `close`, sends until the buffer is empty.

        `beat` is called after each pass.
        """
        while not self._is_closed or self._can_send_more():
            if not len(self._ring):
                await self._ring.news.wait(IDLE_SECONDS)
                await trio.sleep(LINGER_SECONDS)
            pause = await self.pass_once()
            beat()
            if pause:
                await self.hurry.wait(LINGER_SECONDS if self._is_closed else pause)

    def close(self) -> None:
        """Ends the input: `run` then sends the remaining results without long pauses."""
        self._is_closed = True
        self._ring.news.set()
        self.hurry.set()

    def _can_send_more(self) -> bool:
        """Returns whether `run` can still send. It cannot if the clock was never set."""
        return len(self._ring) > 0 and self._clock.is_set

    async def pass_once(self) -> float:
        """Sends one batch. Returns the seconds to wait before the next one."""
        if not len(self._ring):
            return 0.0
        if not self._may_send():
            return WAITING_SECONDS
        rows, route = self._batch()
        try:
            accounted = await self._server.report(route, [row.body for row in rows])
        except NoAnswer as error:
            log.debug("results wait", extra={"cause": str(error)})
            return self._backoff.seconds()
        except RequestRefused as error:
            return await self._refused(rows, error)
        self._ring.drop(rows)
        self._backoff.reset()
        self._most = min(self._most * 2, RESULTS_MOST)
        self._counts.accepted += accounted.accepted
        self._counts.duplicate += accounted.duplicate
        self._counts.ignored += accounted.ignored
        for item in accounted.refused or ():
            self._counts.dropped["unstorable"] += 1
            log.warning(
                "server cannot store a result",
                extra={"monitor": _monitor(rows[item.index]), "reason": item.reason},
            )
        return 0.0

    def _may_send(self) -> bool:
        """Returns whether results can be sent.

        While the server's time is in doubt, their instants are uncertain.
        """
        if not self._clock.is_set or self._clock.is_doubted:
            return False
        return self._standing() is not ConnectionState.REFUSED

    def _batch(self) -> tuple[list[BufferedResult], AgentEndpoint]:
        """Returns the oldest results that share one endpoint."""
        rows, now = self._ring.oldest(self._most), self._clock.now()
        waited_for = rows[0].lease_until > now
        alike = takewhile(lambda row: (row.lease_until > now) is waited_for, rows)
        return list(alike), AgentEndpoint.RESULTS if waited_for else AgentEndpoint.BACKFILL

    async def _refused(self, rows: list[BufferedResult], error: RequestRefused) -> float:
        if error.status == 401:
            return REFUSED_SECONDS
        if len(rows) > 1:
            self._most = len(rows) // 2
            return 0.0
        # The server may refuse the agent or its region rather than this result.
        if not await self._welcome():
            return REFUSED_SECONDS
        self._ring.drop(rows)
        self._counts.dropped[f"refused_{error.status}"] += 1
        log.warning(
            "server refused a result",
            extra={"monitor": _monitor(rows[0]), "status": error.status, "said": error.said},
        )
        return 0.0


def _monitor(row: BufferedResult) -> str:
    try:
        return str(msgspec.json.decode(row.body, type=_Named).monitor_id)
    except msgspec.DecodeError:
        return ""
