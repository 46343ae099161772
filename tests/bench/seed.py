"""Inserts many monitors directly into the tables, because API requests would dominate the
measurement."""

import hashlib
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from leadline.storage.scheduling.tables.schedule_edits import LOCK_CLASS

_FOUND_SHARD = """
insert into shards (org, region, reserved_through, sealed_through, settled_through,
  rolled_up_through)
values (0, 'core', now(), now(), now(), date_trunc('hour', now())) on conflict do nothing
"""

_LOCK_EDITS = "select pg_advisory_xact_lock_shared(%(class)s, id) from shards order by id"

# First runs are spread over one interval, as those of monitors that were made one by one are.
_MONITORS = """
with made as (
  insert into monitors (org, uid, project, shard, slug, name, type, target, interval_seconds,
    timeout_seconds, grace_seconds, push_token_hash, created_at, updated_at)
  select %(org)s, t.uid, %(project)s, s.id, %(slug)s || n, 'Bench ' || n, %(type)s, %(target)s,
    %(interval)s, 5, %(grace)s, t.hash, now(), now()
  from unnest(%(uids)s::uuid[], %(hashes)s::bytea[]) with ordinality as t(uid, hash, n), shards s
  returning org, id, shard, created_at),
states as (
  insert into monitor_states (org, monitor, since) select org, id, created_at from made),
logged as (
  insert into schedule_edits (shard, at, orgs, monitors)
  select shard, now(), array_agg(org), array_agg(id) from made group by shard)
insert into monitor_terms
select made.org, made.id, greatest(s.reserved_through, now()), made.shard,
  greatest(s.reserved_through, now())
    + (row_number() over () * %(step_us)s * interval '1 microsecond'),
  %(interval)s, 5, %(grace)s, true
from made join shards s on s.id = made.shard
"""


def add_monitors(
    dsn: str,
    count: int,
    *,
    kind: str = "http",
    target: str = "",
    interval_seconds: int = 30,
    grace_seconds: int = 60,
    slug: str = "bench-",
    tokens: list[str] | None = None,
    project: str = "",
) -> None:
    """With `tokens` each monitor is pushed to under one of them.

    `project` is the id of a project, by default the first one.
    """
    hashes = [hashlib.sha256(t.encode()).digest() for t in tokens] if tokens else [None] * count
    with psycopg.connect(dsn, autocommit=True) as connection:
        org, key = _keys_of(connection, project) if project else first_project(connection)
        connection.execute(_FOUND_SHARD)
        parameters: dict[str, Any] = {
            "org": org,
            "project": key,
            "slug": slug,
            "type": kind,
            "target": target,
            "interval": interval_seconds,
            "grace": grace_seconds,
            "uids": [uuid7() for _ in range(count)],
            "hashes": hashes,
            "step_us": interval_seconds * 1_000_000 // count,
        }
        with connection.transaction():
            connection.execute(_LOCK_EDITS, {"class": LOCK_CLASS})
            connection.execute(_MONITORS, parameters)


def _keys_of(connection: "psycopg.Connection[Any]", project: str) -> tuple[int, int]:
    row = connection.execute("select org, id from projects where uid = %s", (project,)).fetchone()
    assert row is not None, "the API has made the project"
    return row[0], row[1]


def first_project(connection: "psycopg.Connection[Any]") -> tuple[int, int]:
    row = connection.execute("select org, id from projects order by id limit 1").fetchone()
    assert row is not None, "an empty database is founded with one project"
    return row[0], row[1]
