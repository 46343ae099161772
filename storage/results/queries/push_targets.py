"""Lookup of the monitor of a push token."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx

_FIND = """
select m.org, m.id, m.uid, m.shard, m.enabled from monitors m
where m.push_token_hash = %(hash)s and m.type = 'push'
"""


class PushTarget(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    uid: UUID
    shard: int
    enabled: bool


async def select_push_target(tx: Tx, token_hash: bytes) -> PushTarget | None:
    return await tx.one(PushTarget, _FIND, hash=token_hash)
