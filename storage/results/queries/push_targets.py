"""Lookup of the monitor of a push token."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx

_FIND = """
select m.org, m.id, m.uid, m.shard, m.enabled, m.max_run_seconds,
  exists (select from push_runs r where r.org = m.org and r.monitor = m.id)
from monitors m
where m.push_token_hash = %(hash)s and m.type = 'push'
"""


class PushTarget(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    uid: UUID
    shard: int
    enabled: bool
    max_run_seconds: int
    # Whether the monitor has runs. Others need no look-up of a run for each heartbeat.
    has_runs: bool


async def select_push_target(tx: Tx, token_hash: bytes) -> PushTarget | None:
    return await tx.one(PushTarget, _FIND, hash=token_hash)
