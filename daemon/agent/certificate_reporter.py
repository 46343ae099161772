"""Reports of the certificates that the checks of this agent saw.

They are in memory: after a restart, the next checks see them again. A server of an earlier version
does not accept them, and they are dropped.
"""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

import trio
from msgspec import UNSET

from ...probes.jobs.agent_protocol import CERTIFICATES, CERTIFICATES_MOST, AgentCertificate
from ...probes.jobs.seen_certificates import SeenCertificates, SeenNote
from .connection_state import ConnectionState
from .job_parser import moment
from .server_client import NoAnswer, RequestRefused, ServerClient
from .server_clock import ServerClock

log = logging.getLogger("leadline.agent.certificate_reporter")

PAUSE_SECONDS: Final = 5.0


class CertificateReporter:
    def __init__(
        self,
        server: ServerClient,
        seen: SeenCertificates[UUID],
        clock: ServerClock,
        standing: Callable[[], ConnectionState],
    ) -> None:
        self._server = server
        self._seen = seen
        self._clock = clock
        self._standing = standing

    async def run(self, beat: Callable[[], None]) -> None:
        while True:
            await self.pass_once()
            beat()
            await trio.sleep(PAUSE_SECONDS)

    async def pass_once(self) -> None:
        """Sends what waits. While the server's time is in doubt or it is not reached, all wait."""
        if self._standing() is not ConnectionState.CONNECTED or self._clock.is_doubted:
            return
        while notes := self._seen.take(CERTIFICATES_MOST):
            if CERTIFICATES not in self._server.accepts:
                continue
            try:
                await self._server.report_certificates([_wire(one) for one in notes])
            except NoAnswer as error:
                self._seen.give_back(notes)
                log.debug("certificates wait", extra={"cause": str(error)})
                return
            except RequestRefused as error:
                # Those that are still seen are reported again later.
                log.warning("server refused certificates", extra={"cause": str(error)})
                return


def _wire(note: SeenNote[UUID]) -> AgentCertificate:
    return AgentCertificate(
        monitor_id=note.key,
        revision=note.revision,
        ends_at=UNSET if note.ends_at is None else moment(note.ends_at),
        seen_at=moment(note.seen_at),
    )
