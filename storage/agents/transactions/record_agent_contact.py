"""Contacts and heartbeats of agents."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rows import ProbeErrorReason
from ...monitors.tables import probe_errors
from ..rows import AgentRow
from ..tables import agents


async def hear(tx: Tx, credential: str, region: str, instance: UUID, name: str) -> AgentRow:
    """Records a contact of an agent and returns its row, see `agents.hear`."""
    return await agents.hear(tx, credential, region, instance, name)


async def record_heartbeat(
    tx: Tx, holder: UUID, version: str, kinds: Sequence[str], carrier: int
) -> None:
    """Records the declarations of a heartbeat."""
    await agents.record_heartbeat(tx, holder, version, kinds, carrier)


async def record_probe_errors(
    tx: Tx, found: Mapping[MonitorKey, tuple[ProbeErrorReason, Instant]]
) -> None:
    await probe_errors.record_probe_errors(tx, found)
