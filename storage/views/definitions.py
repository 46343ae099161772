"""What a prober needs to know of a monitor to run it."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ..pools import Tx
from ..rules.instant import Instant

_SELECT = """
select m.org, m.id, m.uid, m.shard, m.type, m.target, m.method, m.interval_seconds,
  m.timeout_seconds, m.retries, m.conditions, m.config::text, m.config_sealed, m.enabled,
  m.revision, m.updated_at
from monitors m
"""
_OF_KEYS = f"""{_SELECT}
where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""
_CHANGED = f"{_SELECT} where m.shard = any(%(shards)s) and m.updated_at >= at(%(since)s)"


class Definition(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    shard: int
    type: str
    target: str
    method: str
    interval_seconds: int
    timeout_seconds: int
    retries: int
    conditions: list[str]
    config: str
    config_sealed: bytes | None
    enabled: bool
    revision: int
    updated_at: Instant


async def select_definitions(
    tx: Tx, keys: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], Definition]:
    """Those of the monitors that are still there."""
    rows = await tx.structs(
        Definition, _OF_KEYS, orgs=[k[0] for k in keys], monitors=[k[1] for k in keys]
    )
    return {(row.org, row.id): row for row in rows}


async def select_changed_definitions(
    tx: Tx, shards: Sequence[int], since: Instant
) -> list[Definition]:
    return await tx.structs(Definition, _CHANGED, shards=list(shards), since=since)
