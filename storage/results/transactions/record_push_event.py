"""Recording of push events."""

from ...core.instant import Instant
from ...engine.pools import Tx
from ..tables import push_events


async def insert_push_event(
    tx: Tx, org: int, monitor: int, kind: str, msg: str, *, at: Instant
) -> bool:
    """Returns whether it was inserted.

    False if the instant is taken or the monitor is deleted.
    """
    return await push_events.insert_push_event(tx, org, monitor, kind, msg, at)
