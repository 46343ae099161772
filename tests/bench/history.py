"""Reads of a year of packed results of one monitor, at several intervals and for a flapping one."""

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
from leadline.storage.results.rules.packed_days import week_of

from ..support.processes.daemon_process import daemon
from .packing import FILL, PARTITION, pack_week
from .seed import add_monitors

WEEKS: Final = 52
DAYS: Final = 7 * WEEKS
READS: Final = 200
# The interval in seconds, the share of failed results, and whether the pieces of a week are merged.
SHAPES: Final = {
    "10s": (10, 0.01, False),
    "60s": (60, 0.01, False),
    "1h": (3_600, 0.01, True),
    "flapping": (60, 0.4, False),
}
_EMPTY: Final = "truncate packed_heartbeats, packed_runs, latency_days"

Figures = dict[str, Any]


def history() -> Figures:
    """The time and the CPU of reads in ms, in one connection, for each shape.

    A page is 100 heartbeats anywhere in the year.
    """
    figures: Figures = {}
    given = {"LEADLINE_LOG__LEVEL": "warning", "LEADLINE_HISTORY__RETENTION_DAYS": "0"}
    given["LEADLINE_HEARTBEATS__RETENTION_DAYS"] = str(DAYS + 30)
    with daemon(on_disk=True, **given) as running:
        running.start()
        add_monitors(running.dsn, 1, target="http://127.0.0.1:9/", interval_seconds=86_400)
        until = week_of(Instant(time.time_ns() // 1_000 - 2 * DAY)).from_
        from_at = Instant(until - DAYS * DAY)
        bounds = [to_datetime(at) for at in (from_at, until)]
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            (row,) = connection.execute("select org, id from monitors").fetchall()
            for table in ("heartbeats", "expected_runs"):
                connection.execute(PARTITION.format(table, *bounds).encode())
            for name, (step, failed, merged) in SHAPES.items():
                connection.execute(_EMPTY.encode())
                connection.execute("update packing set packed_through = %s", [bounds[0]])
                shape = {"monitors": 1, "step": step, "days": 7, "failed": failed}
                for week in range(WEEKS):
                    begin = Instant(from_at + 7 * week * DAY)
                    connection.execute(FILL.encode(), {"from_at": begin, **shape})
                    trio.run(pack_week, running.dsn, [MonitorKey(row)], begin, merged)
                    connection.execute("truncate heartbeats, expected_runs")
                connection.execute("update packing set packed_through = %s", [bounds[1]])
                connection.execute("vacuum analyze")
                read = trio.run(_read, running.dsn, MonitorKey(row), from_at)
                figures |= {f"{name}_{unit}": value for unit, value in read.items()}
    return figures


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
