"""Lookup of the monitor of a push token."""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rules.push_body import BodyKeywords, keywords_in

_COLUMNS = """
select m.org, m.id, m.uid, m.shard, m.enabled, m.max_run_seconds,
  exists (select from push_runs r where r.org = m.org and r.monitor = m.id),
  coalesce(m.config->>'failure_keywords', ''), coalesce(m.config->>'success_keywords', ''),
  m.config->'keep_bodies' is not distinct from 'true'::jsonb
from monitors m
"""
_BY_TOKEN = f"{_COLUMNS}where m.push_token_hash = %(hash)s and m.type = 'push'"
_BY_SLUG = f"""{_COLUMNS}
where m.org = %(org)s and m.project = %(project)s and m.slug = %(slug)s and m.type = 'push'
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
    failure_keywords: str
    success_keywords: str
    keeps_bodies: bool

    @property
    def keywords(self) -> BodyKeywords:
        return BodyKeywords(keywords_in(self.failure_keywords), keywords_in(self.success_keywords))


async def select_push_target(tx: Tx, token_hash: bytes) -> PushTarget | None:
    return await tx.one(PushTarget, _BY_TOKEN, hash=token_hash)


async def select_named_push_target(tx: Tx, org: int, project: int, slug: str) -> PushTarget | None:
    """Returns the push monitor with this slug in the project."""
    return await tx.one(PushTarget, _BY_SLUG, org=org, project=project, slug=slug)
