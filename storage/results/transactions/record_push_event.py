"""Transactions of results: record push event."""

from ...engine.pools import Tx
from ..tables import push_events


async def insert_push_event(tx: Tx, org: int, monitor: int, kind: str, msg: str) -> bool:
    """False where the very microsecond is taken, or the monitor is gone."""
    return await push_events.insert_push_event(tx, org, monitor, kind, msg)
