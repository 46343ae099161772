"""Push: heartbeats accepted a second, each committed before it is answered; and how late the alarm
of a heartbeat that stayed away is."""

import base64
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from leadline.storage.core.token import TokenKind, token_from

from ..support.processes.daemon_process import STOP_SECONDS, Daemon, daemon
from .client import load
from .seed import add_monitors
from .usage import cpu_seconds, memory_mib, per_thousand

CONNECTIONS = 16
MONITORS = 400
SECONDS = 15.0
# The PostgreSQL of the machine, for processes that share one database.
SHARED = os.environ.get("LEADLINE_BENCH_DSN", "host=/var/run/postgresql user=root")

Figures = dict[str, Any]


def make_tokens(count: int) -> list[str]:
    return [token_from(TokenKind.PUSH, os.urandom(32)) for _ in range(count)]


def _requests(tokens: list[str]) -> list[tuple[str, str, dict[str, str]]]:
    return [("POST", f"/api/v1/public/push/{token}", {}) for token in tokens]


def one_process() -> Figures:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        tokens = make_tokens(MONITORS)
        add_monitors(running.dsn, MONITORS, kind="push", tokens=tokens)
        time.sleep(7)
        before = cpu_seconds(running)
        figures = load([running.port], _requests(tokens), connections=CONNECTIONS, seconds=SECONDS)
        # The first second warms up; its pushes are in the CPU and so in the count.
        count = int(figures["a_second"] * (SECONDS + 1))
        spent = per_thousand(before, cpu_seconds(running), count)
        return {**figures, "cpu_s_per_1000": spent, **memory_mib(running)}


def two_processes() -> Figures:
    """Two processes of role api on one PostgreSQL, and a scheduler, which creates the partitions.
    PostgreSQL is not a child of these processes, so its CPU time is not counted."""
    with _database() as dsn, ExitStack() as stack:
        key = base64.b64encode(os.urandom(32)).decode()
        environment = {
            "LEADLINE_DATABASE__DSN": dsn,
            "LEADLINE_SECURITY__ENCRYPTION_KEY": key,
            "LEADLINE_LOG__LEVEL": "warning",
        }
        stack.enter_context(_process("scheduler", environment))
        running = [stack.enter_context(_process("api", environment)) for _ in range(2)]
        tokens = make_tokens(MONITORS)
        add_monitors(dsn, MONITORS, kind="push", tokens=tokens)
        time.sleep(7)
        before = [cpu_seconds(one)["daemon"] for one in running]
        figures = load(
            [one.port for one in running],
            _requests(tokens),
            connections=CONNECTIONS,
            seconds=SECONDS,
        )
        spent = [cpu_seconds(one)["daemon"] - was for one, was in zip(running, before, strict=True)]
        return {**figures, "cores": [round(s / (SECONDS + 1), 2) for s in spent]}


@contextmanager
def _process(role: str, environment: dict[str, str]) -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="leadline-") as name:
        running = Daemon(Path(name) / "data", **environment)
        running.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{running.port}"
        running.start(role=role)
        try:
            yield running
        finally:
            assert running.process is not None
            running.process.terminate()
            running.process.wait(STOP_SECONDS)


@contextmanager
def _database() -> Iterator[str]:
    name = f"leadline_bench_{os.getpid()}"
    with psycopg.connect(f"{SHARED} dbname=postgres", autocommit=True) as connection:
        vacuums = connection.execute("show autovacuum").fetchone()
        assert vacuums == ("on",), "set autovacuum = on: without statistics the plans are others"
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    try:
        yield f"{SHARED} dbname={name}"
    finally:
        with psycopg.connect(f"{SHARED} dbname=postgres", autocommit=True) as connection:
            drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            connection.execute(drop)


def alarms(count: int = 100, interval_seconds: int = 20) -> Figures:
    """Each monitor gets one push and then no more. Measures the time until its outage is
    announced."""
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        tokens = make_tokens(count)
        add_monitors(
            running.dsn,
            count,
            kind="push",
            tokens=tokens,
            interval_seconds=interval_seconds,
            grace_seconds=0,
        )
        time.sleep(7)
        for token in tokens:
            running.raw("POST", f"/api/v1/public/push/{token}")
        late = _lateness(running.dsn, count, interval_seconds * 2.0 + 10)
    late.sort()
    return {
        "alarms": len(late),
        "late_ms_p50_p99_max": [
            round(statistics.median(late), 1),
            round(late[min(int(len(late) * 0.99), len(late) - 1)], 1),
            round(late[-1], 1),
        ]
        if late
        else [],
    }


def _lateness(dsn: str, count: int, most_seconds: float) -> list[float]:
    until = time.monotonic() + most_seconds
    late: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        while len(late) < count and time.monotonic() < until:
            time.sleep(0.5)
            rows = connection.execute(
                "select extract(epoch from announced_at - began_at) * 1000 from outages"
                " where announced_at is not null"
            ).fetchall()
            late = [float(row[0]) for row in rows]
    return late
