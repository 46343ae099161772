"""Reads of a year of packed results of one monitor."""

import time
from functools import partial
from typing import Any, Final

import psycopg
import trio

from leadline.storage.core.instant import DAY, HOUR, Instant, to_datetime
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.results.queries.latency import select_latency
from leadline.storage.results.queries.results import select_heartbeats
from leadline.storage.results.tables.latency_days import put_days_from_rows
from leadline.storage.results.tables.packed_results import pack_results

from ..support.processes.daemon_process import daemon
from .packing import FILL, PARTITION
from .seed import add_monitors

DAYS: Final = 365
READS: Final = 40
STEPS: Final = {"60s": 60, "10s": 10}

Figures = dict[str, Any]


def history() -> Figures:
    """The 50th and 99th percentile of the time of each read in ms, in one connection."""
    figures: Figures = {}
    given = {"LEADLINE_LOG__LEVEL": "warning", "LEADLINE_HISTORY__RETENTION_DAYS": "0"}
    given["LEADLINE_HEARTBEATS__RETENTION_DAYS"] = str(DAYS + 30)
    with daemon(on_disk=True, **given) as running:
        running.start()
        add_monitors(running.dsn, len(STEPS), target="http://127.0.0.1:9/", interval_seconds=86_400)
        today = Instant(time.time_ns() // 1_000 // DAY * DAY)
        from_at = Instant(today - (DAYS + 2) * DAY)
        bounds = [to_datetime(at) for at in (from_at, Instant(today - 2 * DAY))]
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            keys = connection.execute("select org, id from monitors order by id").fetchall()
            for table in ("heartbeats", "expected_runs"):
                connection.execute(PARTITION.format(table, *bounds).encode())
            connection.execute("update packing set packed_through = %s", [bounds[0]])
            for days in range(0, DAYS, 5):
                begin = Instant(from_at + days * DAY)
                # The last monitor has the shortest interval, and no other one has rows of it.
                for place, step in enumerate(STEPS.values(), 1):
                    shape = {"monitors": 1, "step": step, "days": 5, "failed": 0.01}
                    fill = FILL.replace(
                        "order by id limit", f"order by id offset {place - 1} limit"
                    )
                    connection.execute(fill.encode(), {"from_at": begin, **shape})
                trio.run(partial(_pack, running.dsn, [MonitorKey(key) for key in keys], begin))
                connection.execute("truncate heartbeats, expected_runs")
            connection.execute("update packing set packed_through = %s", [bounds[1]])
            connection.execute("vacuum analyze")
        for name, key in zip(STEPS, keys, strict=True):
            found = trio.run(partial(_read, running.dsn, MonitorKey(key), from_at))
            figures |= {f"{name}_{what}": value for what, value in found.items()}
    return figures


async def _pack(dsn: str, keys: list[MonitorKey], begin: Instant) -> None:
    async with open_pool(dsn, name="bench", size=1, clock=lambda: begin) as pool:
        for day in range(5):
            start = Instant(begin + day * DAY)
            span = TimeSpan(start, Instant(start + DAY))
            async with pool.transaction("bench", statement_timeout_seconds=120) as tx:
                await pack_results(tx, keys, span)
                await put_days_from_rows(tx, keys, span)


async def _read(dsn: str, key: MonitorKey, from_at: Instant) -> Figures:
    begin = Instant(from_at + 5 * HOUR)
    year = TimeSpan(begin, Instant(begin + (DAYS - 1) * DAY))
    figures: Figures = {}
    async with open_pool(dsn, name="bench", size=1, clock=lambda: from_at) as pool:
        for name, span, step in (("year", year, DAY), ("day", None, HOUR)):
            spans = [span or _day(begin, n) for n in range(READS)]
            times = [await _timed(pool, key, one, step) for one in spans]
            figures |= {
                f"{name}_p50_ms": times_at(times, 0.5),
                f"{name}_p99_ms": times_at(times, 1),
            }
        times = []
        for n in range(READS):
            began = time.perf_counter()
            async with pool.transaction("bench", read_only=True) as tx:
                await select_heartbeats(tx, key, 100, _day(begin, n).until)
            times.append(time.perf_counter() - began)
    return figures | {"page_p50_ms": times_at(times, 0.5), "page_p99_ms": times_at(times, 1)}


def _day(begin: Instant, n: int) -> TimeSpan:
    start = Instant(begin + 9 * n * DAY)
    return TimeSpan(start, Instant(start + DAY))


async def _timed(pool: Pool, key: MonitorKey, span: TimeSpan, step_us: int) -> float:
    began = time.perf_counter()
    async with pool.transaction("bench", read_only=True) as tx:
        assert await select_latency(tx, key, span, step_us) is not None
    return time.perf_counter() - began


def times_at(times: list[float], fraction: float) -> float:
    """Returns the time in ms that this fraction of the reads does not exceed."""
    return round(sorted(times)[max(round(fraction * len(times)) - 1, 0)] * 1e3, 1)
