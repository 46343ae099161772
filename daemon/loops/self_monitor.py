"""Self-monitor: opens incidents about conditions of Leadline, and sends the external heartbeat.

Every process of the roles all, api and scheduler runs it; a row lock orders the passes. The
heartbeat follows a successful pass, so that it stops with the database, and in conditions in which
Leadline may be unable to page.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

import trio

from ...probes.check.failure import LocalFailure, TargetFailure
from ...probes.net.egress import Egress
from ...probes.senders.heartbeat import HEARTBEAT_SECONDS, send_heartbeat
from ...probes.senders.send_result import NotDelivered
from ...storage.alerting.queries.self_monitoring import opens_nothing
from ...storage.alerting.transactions.monitor_itself import Observer, monitor_itself
from ...storage.core.instant import MINUTE, Instant
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool, Rejected

log = logging.getLogger("leadline.self_monitor")

# Less than half of the gap that ends a streak of observations.
PAUSE_SECONDS: Final = 15.0
# The check of the keys reads every table with encrypted values.
KEYS_EVERY_US: Final = 5 * MINUTE
# Age after which the conditions of the last pass are not reported as metrics.
CURRENT_US: Final = 2 * MINUTE


class SelfMonitor:
    """`project` and `heartbeat_url` are the settings, empty for none.

    `on_opened` is called after an incident was opened or resolved.
    """

    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        keyring: Keyring,
        host: str,
        project: str,
        reach: Egress,
        heartbeat_url: str,
        on_opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._keyring = keyring
        self._host = host
        organization, _, name = project.partition("/")
        self._project = (organization, name) if project else None
        self._reach = reach
        self._heartbeat_url = heartbeat_url
        self._on_opened = on_opened
        self._keys_at: Instant | None = None
        self._opens_nothing = False
        self._is_lost = False
        # For metrics: incidents by kind of condition and action; reported conditions by kind, as of
        # the last successful pass; heartbeats that were sent, and that failed.
        self.changes: Counter[tuple[str, str]] = Counter()
        self.reported: Counter[str] = Counter()
        self.passed_at: Instant | None = None
        # The process start, so that passes that never succeed are seen.
        self.began_at = clock()
        self.beats = 0
        self.failed_beats = 0
        self.beat_at: Instant | None = None

    @property
    def is_current(self) -> bool:
        """Returns whether the reported conditions are those of now."""
        return self.passed_at is not None and self._clock() - self.passed_at <= CURRENT_US

    @property
    def sends_heartbeats(self) -> bool:
        return bool(self._heartbeat_url)

    async def pass_once(self) -> None:
        await self._check_keys()
        beats = bool(self._heartbeat_url)
        observer = Observer(self._host, self._project, self._opens_nothing, beats)
        try:
            report = await self._pool.transact(
                "monitor_itself", lambda tx: monitor_itself(tx, observer)
            )
        except Rejected as error:
            # A project can be deleted meanwhile.
            log.warning("self-monitoring failed", extra={"cause": str(error)})
            return
        if report.is_lost and not self._is_lost:
            extra = {"project": self._project}
            log.warning("self_monitoring.project names no project", extra=extra)
        self._is_lost = report.is_lost
        self.changes.update({(kind, "opened"): n for kind, n in report.opened.items()})
        self.changes.update({(kind, "resolved"): n for kind, n in report.resolved.items()})
        self.reported, self.passed_at = report.reported, self._clock()
        if report.opened or report.resolved:
            self._on_opened()
        if report.beats:
            await self._beat()

    async def _check_keys(self) -> None:
        now = self._clock()
        if self._keys_at is not None and now - self._keys_at < KEYS_EVERY_US:
            return
        async with self._pool.transaction("check_keys", read_only=True) as tx:
            self._opens_nothing = await opens_nothing(tx, self._keyring)
        self._keys_at = now

    async def _beat(self) -> None:
        """Sends one heartbeat. The external monitor tolerates the loss of a single one."""
        reason = "timeout"
        with trio.move_on_after(HEARTBEAT_SECONDS):
            try:
                await send_heartbeat(self._reach, self._heartbeat_url)
            except NotDelivered as failed:
                reason = failed.reason
            except (TargetFailure, LocalFailure) as failure:
                reason = type(failure).__name__
            else:
                self.beats += 1
                self.beat_at = self._clock()
                return
        self.failed_beats += 1
        log.warning("heartbeat not sent", extra={"reason": reason})
