"""Monitors that agents report results for."""

from collections.abc import Sequence
from uuid import UUID

from ...engine.pools import Tx
from ..rules import AgentMonitor

_OF = """
select m.org, m.id, m.uid, m.shard, s.region, m.type, m.revision, m.interval_seconds,
  m.timeout_seconds, m.show_values
from monitors m join shards s on s.id = m.shard
where m.uid = any(%(uids)s::uuid[])
"""


async def select_watched(tx: Tx, uids: Sequence[UUID]) -> dict[UUID, AgentMonitor]:
    """Returns the monitors that still exist."""
    rows = await tx.structs(AgentMonitor, _OF, uids=list(uids))
    return {row.uid: row for row in rows}
