"""Construction of the loops that keep the store and the installation: retention, packing and
self-monitoring.
"""

import platform
import socket
from typing import Final
from uuid import UUID

from ...probes.senders.send_result import SendContext
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.engine.product_clock import ProductClock
from ..config.config_schema import Settings
from ..config.roles import PARTS, DaemonPart, ProcessRole
from ..loops.alert_processor import AlertProcessor
from ..loops.janitor import Janitor
from ..loops.key_checker import KeyChecker
from ..loops.metric_samplers import InstallationSampler
from ..loops.result_packer import ResultPacker
from ..loops.result_recorder import Recorder
from ..loops.self_monitor import SelfMonitor

# Results in the queue of the recorder above which packing waits.
PACKING_QUEUE_MOST: Final = 1_000


def janitor_of(settings: Settings, pool: Pool, clock: ProductClock) -> Janitor:
    """Returns the janitor. A process that stores results needs it also without its loop."""
    return Janitor(
        pool,
        clock.now,
        heartbeat_days=settings.heartbeats.retention_days,
        ledger_days=settings.ledger.retention_days,
        gate_days=settings.gate.decision_retention_days,
        history_days=settings.history.retention_days,
    )


def may_share_rows(settings: Settings) -> bool:
    """Returns whether the row of a result is stored as long as the verdict of its window.

    Packing keeps both. Without it, each table is deleted by its own retention.
    """
    kept = settings.heartbeats.retention_days >= settings.ledger.retention_days
    return kept or settings.history.retention_days > 0


def packer_of(
    settings: Settings,
    role: ProcessRole,
    pool: Pool,
    clock: ProductClock,
    recorder: Recorder,
    version: str,
) -> ResultPacker | None:
    """Returns the packer, None in a role without it or if no history is kept."""
    if DaemonPart.PACKER not in PARTS[role] or not settings.history.retention_days:
        return None
    return ResultPacker(pool, clock.now, version, lambda: recorder.waiting > PACKING_QUEUE_MOST)


def sampler_of(settings: Settings, pool: Pool, clock: ProductClock) -> InstallationSampler:
    return InstallationSampler(pool, clock.now, settings.metrics.monitors)


def host_name() -> str:
    """Returns the name of this host, as in presences."""
    return socket.gethostname() or platform.node()


def key_checker_of(
    role: ProcessRole, pool: Pool, clock: ProductClock, keyring: Keyring, process: UUID
) -> KeyChecker | None:
    """Returns the key checker of a process without a self-monitor, which checks the keys itself."""
    if DaemonPart.WATCHER in PARTS[role]:
        return None
    return KeyChecker(pool, clock.now, keyring, process)


def self_monitor_of(
    settings: Settings,
    pool: Pool,
    clock: ProductClock,
    keyring: Keyring,
    means: SendContext,
    watcher: AlertProcessor | None,
) -> SelfMonitor | None:
    """Returns the self-monitor of a process that can page."""
    if watcher is None:
        return None
    own = settings.self_monitoring
    return SelfMonitor(
        pool,
        clock.now,
        keyring,
        host_name(),
        own.project,
        # The operator names the URL, like the mail server.
        means.to_mail_server or means.reach,
        own.heartbeat_url,
        watcher.wake.set,
    )
