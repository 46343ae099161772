"""Brings the ring to the server, in order: nothing is dropped but what the server acknowledged or
what it refuses alone, and nothing that it refuses keeps back the rest.

A batch that is refused is halved until it is sent one by one. Where the server cannot be reached,
or does not know us, all of it stays.
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
# Results that end together go together.
LINGER_SECONDS: Final = 0.05
REFUSED_SECONDS: Final = 30.0
WAITING_SECONDS: Final = 1.0


class _Named(msgspec.Struct, frozen=True):
    monitor_id: UUID


class ResultUploader:
    """`welcome` asks the server whether it knows us, and is False where it says no or nothing."""

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
        # Ends a pause after trouble: the server is back.
        self.hurry = WakeEvent()

    async def run(self, beat: Callable[[], None]) -> None:
        """Sends until cancelled; after `close` until the ring is empty. `beat` after each look."""
        while not self._is_closed or self._can_send_more():
            if not len(self._ring):
                await self._ring.news.wait(IDLE_SECONDS)
                await trio.sleep(LINGER_SECONDS)
            pause = await self.pass_once()
            beat()
            if pause:
                await self.hurry.wait(LINGER_SECONDS if self._is_closed else pause)

    def close(self) -> None:
        """No more results come: `run` tries to send what the ring holds, without long pauses."""
        self._is_closed = True
        self._ring.news.set()
        self.hurry.set()

    def _can_send_more(self) -> bool:
        """A clock that was never set does not allow to send anything."""
        return len(self._ring) > 0 and self._clock.is_set

    async def pass_once(self) -> float:
        """Sends one batch; how many seconds to wait before another, 0 where all is well."""
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
        """While the server's time is in doubt, nobody can say when these were seen."""
        if not self._clock.is_set or self._clock.is_doubted:
            return False
        return self._standing() is not ConnectionState.REFUSED

    def _batch(self) -> tuple[list[BufferedResult], AgentEndpoint]:
        """The oldest, as far as they go the same way."""
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
        # It may be us whom the server refuses, or our region, and not this result.
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
