"""Reads of a year of packed results of one monitor."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import trio

from leadline.storage.core.instant import DAY, HOUR, Instant, to_datetime
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Pool, Tx, open_pool
from leadline.storage.results.queries.latency import select_latency
from leadline.storage.results.queries.results import select_heartbeats
from leadline.storage.results.tables.latency_days import put_days_from_rows
from leadline.storage.results.tables.packed_results import pack_results

from ..support.processes.daemon_process import daemon
from .packing import FILL, PARTITION
from .seed import add_monitors

DAYS: Final = 365
READS: Final = 200
DAYS_AT_ONCE: Final = 5
SHAPE: Final = {"monitors": 1, "step": 60, "days": DAYS_AT_ONCE, "failed": 0.01}

Figures = dict[str, Any]


def history() -> Figures:
    """The time and the CPU of reads in ms, in one connection.

    A page is 100 heartbeats anywhere in the year.
    """
    given = {"LEADLINE_LOG__LEVEL": "warning", "LEADLINE_HISTORY__RETENTION_DAYS": "0"}
    given["LEADLINE_HEARTBEATS__RETENTION_DAYS"] = str(DAYS + 30)
    with daemon(on_disk=True, **given) as running:
        running.start()
        add_monitors(running.dsn, 1, target="http://127.0.0.1:9/", interval_seconds=86_400)
        today = Instant(time.time_ns() // 1_000 // DAY * DAY)
        from_at = Instant(today - (DAYS + 2) * DAY)
        bounds = [to_datetime(at) for at in (from_at, Instant(today - 2 * DAY))]
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            (row,) = connection.execute("select org, id from monitors").fetchall()
            for table in ("heartbeats", "expected_runs"):
                connection.execute(PARTITION.format(table, *bounds).encode())
            connection.execute("update packing set packed_through = %s", [bounds[0]])
            for days in range(0, DAYS, DAYS_AT_ONCE):
                begin = Instant(from_at + days * DAY)
                connection.execute(FILL.encode(), {"from_at": begin, **SHAPE})
                trio.run(_pack, running.dsn, MonitorKey(row), begin)
                connection.execute("truncate heartbeats, expected_runs")
            connection.execute("update packing set packed_through = %s", [bounds[1]])
            connection.execute("vacuum analyze")
        return trio.run(_read, running.dsn, MonitorKey(row), from_at)


async def _pack(dsn: str, key: MonitorKey, begin: Instant) -> None:
    async with open_pool(dsn, name="bench", size=1, clock=lambda: begin) as pool:
        for day in range(DAYS_AT_ONCE):
            start = Instant(begin + day * DAY)
            span = TimeSpan(start, Instant(start + DAY))
            async with pool.transaction("bench", statement_timeout_seconds=120) as tx:
                await pack_results(tx, [key], span)
                await put_days_from_rows(tx, [key], span)


async def _read(dsn: str, key: MonitorKey, from_at: Instant) -> Figures:
    begin = Instant(from_at + 5 * HOUR)
    year = TimeSpan(begin, Instant(begin + (DAYS - 1) * DAY))
    days = [_day(begin, n) for n in range(READS)]
    figures: Figures = {}
    async with open_pool(dsn, name="bench", size=1, clock=lambda: from_at) as pool:
        reads: dict[str, Sequence[Callable[[Tx], Awaitable[object]]]] = {
            "year": [partial(select_latency, key=key, span=year, step_us=DAY)] * READS,
            "day": [partial(select_latency, key=key, span=day, step_us=HOUR) for day in days],
            "page": [partial(select_heartbeats, key=key, most=100, before=d.until) for d in days],
        }
        for name, work in reads.items():
            found = await _timed(pool, work)
            figures |= {f"{name}_{unit}": value for unit, value in found.items()}
    return figures


def _day(begin: Instant, n: int) -> TimeSpan:
    start = Instant(begin + n * (DAYS - 2) * DAY // READS)
    return TimeSpan(start, Instant(start + DAY))


async def _timed(pool: Pool, reads: Sequence[Callable[[Tx], Awaitable[object]]]) -> Figures:
    """Returns percentiles of the time, and of the CPU of this process and of PostgreSQL."""
    times, cpus = [], []
    async with pool.transaction("bench", read_only=True) as tx:
        server = Path(f"/proc/{await tx.value('select pg_backend_pid()')}/schedstat")
    for read in reads:
        used, began = _cpu_ms(server), time.perf_counter()
        async with pool.transaction("bench", read_only=True) as tx:
            assert await read(tx)
        times.append((time.perf_counter() - began) * 1e3)
        cpus.append(_cpu_ms(server) - used)
    return {
        f"{what}_{name}": round(sorted(found)[len(found) * percent // 100], 1)
        for what, found in (("ms", times), ("cpu_ms", cpus))
        for name, percent in (("p50", 50), ("p99", 99))
    }


def _cpu_ms(server: Path) -> float:
    return time.process_time() * 1e3 + int(server.read_text().split()[0]) / 1e6
