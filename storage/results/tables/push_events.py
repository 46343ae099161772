"""Push events that are not results: start marks and log lines."""

from ...core.instant import Instant
from ...engine.pools import Tx

_INSERT = """
insert into push_events (org, monitor, at, kind, msg)
select %(org)s, %(monitor)s, at(%(at)s), %(kind)s, %(msg)s
-- The cached token may outlive its monitor briefly.
from monitors m where m.org = %(org)s and m.id = %(monitor)s
on conflict do nothing
"""

_DROP = "delete from push_events where at < at(%(before)s)"


async def insert_push_event(
    tx: Tx, org: int, monitor: int, kind: str, msg: str, at: Instant
) -> bool:
    """Returns whether it was inserted.

    False if the instant is taken or the monitor is deleted.
    """
    return bool(await tx.execute(_INSERT, org=org, monitor=monitor, kind=kind, msg=msg, at=at))


async def drop_push_events(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
