"""Disk and WAL for a million results in full batches, ledger and indexes counted."""

from functools import partial
from typing import Any

import psycopg
import trio

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.engine.pools import open_pool
from leadline.storage.results.rules.incoming_result import IncomingResult
from leadline.storage.results.transactions.record_steady import copy_steady

from ..support.processes.daemon_process import daemon
from .seed import add_monitors

MONITORS = 2_000
ROUNDS = 100
BATCH = 200

_SIZES = """
select regexp_replace(c.relname, '_[0-9].*', ''), sum(pg_total_relation_size(c.oid)),
  sum(pg_indexes_size(c.oid))
from pg_class c join pg_inherits i on i.inhrelid = c.oid
where c.relkind = 'r' group by 1 order by 1
"""

Figures = dict[str, Any]


def million() -> Figures:
    """200 000 results of 2 000 monitors at a minute, scaled."""
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        add_monitors(running.dsn, MONITORS, target="http://127.0.0.1:9/", interval_seconds=86_400)
        # A monitor with an interval of a day adds a result per 43 s to those of the benchmark.
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            keys = connection.execute("select org, id, shard from monitors order by id").fetchall()
            before = connection.execute("select pg_current_wal_insert_lsn()").fetchone()
            stored = trio.run(partial(_store, running.dsn, keys))
            after = connection.execute(
                "select pg_current_wal_insert_lsn() - %s::pg_lsn", before
            ).fetchone()
            sizes = connection.execute(_SIZES).fetchall()
    scale = 1_000_000 / stored / 1e6
    figures: Figures = {"stored": stored, "wal_mb": round(float(after[0]) * scale) if after else 0}
    for name, total, indexes in sizes:
        figures[f"{name}_mb"] = round(float(total) * scale, 1)
        figures[f"{name}_indexes_mb"] = round(float(indexes) * scale, 1)
    return figures


async def _store(dsn: str, keys: list[tuple[int, int, int]]) -> int:
    """Stores results up to the present, so that every instant has a partition and is after the
    fence."""
    stored = 0
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select (extract(epoch from min(sealed_through)) * 1e6)::bigint from shards"
        ).fetchone()
    begin = Instant(row[0] if row else 0)
    now = begin
    async with open_pool(dsn, name="bench", size=2, clock=lambda: now) as pool:
        for n in range(ROUNDS):
            now = Instant(begin + n * 60 * SECOND + SECOND)
            for first in range(0, len(keys), BATCH):
                batch = [
                    _arrival(key, Instant(begin + n * 60 * SECOND + first * 1_000))
                    for key in keys[first : first + BATCH]
                ]
                async with pool.transaction("bench") as tx:
                    stored += sum(await copy_steady(tx, batch))
    return stored


def _arrival(key: tuple[int, int, int], ts: Instant) -> IncomingResult:
    org, monitor, shard = key
    return IncomingResult(
        org=org,
        monitor=monitor,
        shard=shard,
        ts=Instant(ts + monitor),
        up=True,
        latency_ms=12,
        code=200,
        connect_us=310,
        first_byte_us=812,
        dues=(Instant(ts - ts % SECOND),),
        windowed=True,
        shares_row=True,
        version=1,
    )
