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
from leadline.storage.results.rules.packed_days import WEEK_US, week_of
from leadline.storage.results.tables.latency_days import put_days_from_rows
from leadline.storage.results.tables.packed_results import merge_pieces, pack_results
from leadline.storage.results.tables.packing import PACKED, select_few_rows

from ..support.processes.daemon_process import daemon
from .seed import add_monitors

_WEEKS_AGO: Final = 6
_RETENTION_DAYS: Final = 90
# Monitors, interval in seconds, days, and the share of failed results.
SHAPES: Final = {
    "10s": (12, 10, 1, 0.0),
    "60s": (70, 60, 1, 0.0),
    "10min": (25, 600, 28, 0.0),
    "1h": (150, 3_600, 28, 0.0),
    "flapping": (70, 60, 1, 0.4),
}
_WEEK_DAYS: Final = 7
TICKS_PER_SECOND: Final = 100
PARTITION: Final = """
create table {0}_bench partition of {0} for values from ('{1}') to ('{2}')
"""
# A delay of the start, four phases, and up to one second until a result is stored. Gaussian numbers
# are made by the method of Box and Muller.
FILL: Final = """
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
select pg_total_relation_size('packed_heartbeats') + pg_total_relation_size('packed_runs')
  + pg_total_relation_size('latency_days')
"""
_EMPTY: Final = "truncate heartbeats, expected_runs, packed_heartbeats, packed_runs, latency_days"

Figures = dict[str, Any]


def packing() -> Figures:
    """About 100 000 results of each shape, scaled to a million.

    Pieces that are merged leave space for those of the next week. The size of a shape of several
    weeks is therefore the growth of its second half.
    """
    figures: Figures = {}
    # The daemon itself packs nothing.
    given = {"LEADLINE_LOG__LEVEL": "warning", "LEADLINE_HISTORY__RETENTION_DAYS": "0"}
    given["LEADLINE_HEARTBEATS__RETENTION_DAYS"] = str(_RETENTION_DAYS)
    with daemon(on_disk=True, **given) as running:
        running.start()
        add_monitors(running.dsn, 150, target="http://127.0.0.1:9/", interval_seconds=86_400)
        from_at = week_of(Instant(time.time_ns() // 1_000 - _WEEKS_AGO * WEEK_US)).from_
        bounds = [to_datetime(Instant(from_at + days * DAY)) for days in (0, 29)]
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            for table in ("heartbeats", "expected_runs"):
                connection.execute(PARTITION.format(table, *bounds).encode())
            for name, shape in SHAPES.items():
                found = _figures(running.dsn, connection, shape, from_at)
                figures |= {f"{name}_{unit}": value for unit, value in found.items()}
    return figures


def _figures(
    dsn: str,
    connection: psycopg.Connection[Any],
    shape: tuple[int, int, int, float],
    from_at: Instant,
) -> Figures:
    monitors, step, days, failed = shape
    connection.execute(_EMPTY.encode())
    given = {"monitors": monitors, "step": step, "days": days, "failed": failed}
    connection.execute(FILL.encode(), {"from_at": from_at, **given})
    connection.execute("analyze heartbeats, expected_runs")
    found = connection.execute(
        "select org, id from monitors order by id limit %s", [monitors]
    ).fetchall()
    keys = [MonitorKey(key) for key in found]
    cpu, wal, sizes = 0.0, 0, [0]
    # As the packer does: a day at a time, and a week when its days are packed.
    for first in range(0, days, _WEEK_DAYS):
        used = trio.run(partial(pack_week, dsn, keys, Instant(from_at + first * DAY), days > 1))
        cpu, wal = cpu + used[0], wal + used[1]
        connection.execute("vacuum packed_heartbeats, packed_runs")
        sizes.append(_value(connection, _SIZE))
    half = len(sizes) // 2 if days > 1 else 0
    count = _value(connection, "select count(*) from heartbeats")
    grown = (sizes[-1] - sizes[half]) * (len(sizes) - 1) / (len(sizes) - 1 - half)
    return {
        "mb": round(grown / count, 1),
        "wal_mb": round(wal / count, 1),
        "cpu_us": round(cpu / count * 1e6, 1),
    }


def _value(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


async def pack_week(
    dsn: str, keys: list[MonitorKey], from_at: Instant, merged: bool
) -> tuple[float, int]:
    """Packs a week of results. Returns the CPU seconds of PostgreSQL and the bytes of WAL."""
    week = week_of(from_at)
    async with (
        open_pool(dsn, name="bench", size=1, clock=lambda: from_at) as pool,
        pool.transaction("bench", statement_timeout_seconds=120) as tx,
    ):
        before = await tx.value("select pg_current_wal_insert_lsn()::text")
        stat = Path(f"/proc/{await tx.value('select pg_backend_pid()')}/stat")
        begin = ticks(stat)
        for day in range(_WEEK_DAYS):
            start = Instant(from_at + day * DAY)
            span = TimeSpan(start, Instant(start + DAY))
            await pack_results(tx, keys, span)
            await put_days_from_rows(tx, keys, span)
        for table in PACKED if merged else ():
            await merge_pieces(tx, table, await select_few_rows(tx, keys, week, table), week)
        cpu = (ticks(stat) - begin) / TICKS_PER_SECOND
        wal = await tx.value(
            "select (pg_current_wal_insert_lsn() - %(before)s::pg_lsn)::bigint", before=before
        )
    return cpu, wal


def ticks(stat: Path) -> int:
    fields = stat.read_text().rsplit(") ", 1)[1].split()
    return int(fields[11]) + int(fields[12])
