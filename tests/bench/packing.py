"""Disk, WAL and CPU of packed results, for results of a TLS check with all phases."""

import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import trio

from leadline.storage.core.instant import DAY, Instant, to_datetime
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import open_pool
from leadline.storage.results.tables.packed_results import pack_results

from ..support.processes.daemon_process import daemon
from .seed import add_monitors

# The janitor keeps partitions of this age.
_DAYS_AGO: Final = 20
# Monitors, interval in seconds, days, and the share of failed results.
SHAPES: Final = {
    "10s": (12, 10, 1, 0.0),
    "60s": (70, 60, 1, 0.0),
    "1h": (600, 3_600, 7, 0.0),
    "flapping": (70, 60, 1, 0.4),
}
_TICKS_PER_SECOND: Final = 100
_PARTITION: Final = """
create table {0}_bench partition of {0} for values from ('{1}') to ('{2}')
"""
# A delay of the start, four phases, and up to one second until a result is stored. Gaussian numbers
# are made by the method of Box and Muller.
_FILL: Final = """
with due as (
  select m.org, m.id,
    at(%(from_at)s) + (n * %(step)s + m.id %% %(step)s) * interval '1 second' as due,
    random() < %(failed)s as down, random() < 0.5 as slow,
    exp(0.15 * sqrt(-2 * ln(1 - random())) * cos(6.283 * random())) as a,
    exp(0.35 * sqrt(-2 * ln(1 - random())) * cos(6.283 * random())) as b,
    exp(0.9 * sqrt(-2 * ln(1 - random())) * cos(6.283 * random())) as c
  from (select org, id from monitors order by id limit %(monitors)s) m,
    generate_series(0, %(days)s * 86400 / %(step)s - 1) n
  order by m.org, m.id, n),
phase as materialized (
  select *, due + (200 + 600 * c)::int * interval '1 microsecond' as ts,
    (40 + 600 * random() ^ 4)::int as dns, (8000 * a)::int as tcp,
    (16000 * a * (0.9 + 0.2 * random()))::int as tls,
    (35000 * b + case when random() < 0.003 then 900000 * random() else 0 end)::int as answer
  from due),
stored as (
  insert into heartbeats
  select org, id, ts, case when down and slow then 10000 else (dns + tcp + tls + answer) / 1000 end,
    case when down and slow then null when down then 503 else 200 end, dns, tcp,
    case when not (down and slow) then tls end, case when not (down and slow) then answer end,
    not down, case when down and slow then 'timeout in first_byte' when down then 'status' end,
    case when down and not slow then 17 end, case when down and not slow then '503' end
  from phase)
insert into expected_runs
select org, id, due, ts + (dns + tcp + tls + answer + (1000000 * random())::int)
  * interval '1 microsecond', 'covered', null
from phase
"""
_SIZE: Final = """
select pg_total_relation_size('packed_heartbeats') + pg_total_relation_size('packed_runs'),
  (select count(*) from heartbeats)
"""

Figures = dict[str, Any]


def packing() -> Figures:
    """About 100 000 results of each shape, scaled to a million."""
    figures: Figures = {}
    # The daemon itself packs nothing.
    given = {"LEADLINE_LOG__LEVEL": "warning", "LEADLINE_HISTORY__RETENTION_DAYS": "0"}
    with daemon(on_disk=True, **given) as running:
        running.start()
        add_monitors(running.dsn, 600, target="http://127.0.0.1:9/", interval_seconds=86_400)
        from_at = Instant((time.time_ns() // 1_000 // DAY - _DAYS_AGO) * DAY)
        bounds = [to_datetime(Instant(from_at + days * DAY)) for days in (0, 9)]
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            for table in ("heartbeats", "expected_runs"):
                connection.execute(_PARTITION.format(table, *bounds).encode())
            for name, (monitors, step, days, failed) in SHAPES.items():
                connection.execute(
                    "truncate heartbeats, expected_runs, packed_heartbeats, packed_runs"
                )
                shape = {"monitors": monitors, "step": step, "days": days, "failed": failed}
                connection.execute(_FILL.encode(), {"from_at": from_at, **shape})
                connection.execute("analyze heartbeats, expected_runs")
                keys = connection.execute(
                    "select org, id from monitors order by id limit %s", [monitors]
                ).fetchall()
                cpu, wal = trio.run(
                    partial(_pack, running.dsn, [MonitorKey(k) for k in keys], from_at)
                )
                row = connection.execute(_SIZE.encode()).fetchone()
                size, count = row or (0, 1)
                figures[f"{name}_mb"] = round(size / count, 1)
                figures[f"{name}_wal_mb"] = round(wal / count, 1)
                figures[f"{name}_cpu_us"] = round(cpu / count * 1e6, 1)
    return figures


async def _pack(dsn: str, keys: list[MonitorKey], from_at: Instant) -> tuple[float, int]:
    """Returns the CPU seconds of PostgreSQL and the bytes of WAL of packing and verifying."""
    async with (
        open_pool(dsn, name="bench", size=1, clock=lambda: from_at) as pool,
        pool.transaction("bench", statement_timeout_seconds=120) as tx,
    ):
        before = await tx.value("select pg_current_wal_insert_lsn()::text")
        stat = Path(f"/proc/{await tx.value('select pg_backend_pid()')}/stat")
        begin = _ticks(stat)
        # As the packer does: a day at a time.
        for day in range(9):
            start = Instant(from_at + day * DAY)
            await pack_results(tx, keys, TimeSpan(start, Instant(start + DAY)))
        cpu = (_ticks(stat) - begin) / _TICKS_PER_SECOND
        wal = await tx.value(
            "select (pg_current_wal_insert_lsn() - %(before)s::pg_lsn)::bigint", before=before
        )
    return cpu, wal


def _ticks(stat: Path) -> int:
    fields = stat.read_text().rsplit(") ", 1)[1].split()
    return int(fields[11]) + int(fields[12])
