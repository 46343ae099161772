"""Checks kept on rate, all of it counted: scheduling, probing, storing, PostgreSQL.

A daemon of its own checks a local nginx. CPU is that of the daemon and of every PostgreSQL process
under it, from /proc; start deviation comes from the stored instants.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from ..daemon_process import Daemon, daemon, free_port

TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def nginx() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="leadline-nginx-"))
    port = free_port()
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_timeout 0;
client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 "ok"; }} }} }}"""
    )
    process = subprocess.Popen([shutil.which("nginx") or "nginx", "-c", f"{folder}/nginx.conf"])
    time.sleep(0.3)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def cpu_seconds(running: Daemon) -> dict[str, float]:
    """CPU of the daemon and of its PostgreSQL, children that ended included."""
    assert running.process is not None
    spent = {"daemon": 0.0, "postgres": 0.0}
    for pid, name in _tree(running.process.pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(int(fields[n]) for n in (11, 12))
        if name == "postgres":
            ticks += sum(int(fields[n]) for n in (13, 14))
        spent["postgres" if name == "postgres" else "daemon"] += ticks / TICKS
    return spent


def rss_mib(running: Daemon) -> dict[str, float]:
    assert running.process is not None
    found = {"daemon": 0.0, "postgres": 0.0}
    for pid, name in _tree(running.process.pid):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                found["postgres" if name == "postgres" else "daemon"] += int(line.split()[1]) / 1024
    return found


def _tree(root: int) -> list[tuple[int, str]]:
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = (int(tail.split()[1]), head.partition("(")[2])
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in parents:
            found.append((pid, parents[pid][1]))
        waiting += [child for child, (parent, _) in parents.items() if parent == pid]
    return found


def make_monitors(running: Daemon, target: str, count: int, interval_seconds: int) -> None:
    """Straight into the tables: ten thousand requests would measure something else."""
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        org, project = connection.execute("select org, id from projects").fetchone() or (0, 0)
        connection.execute(
            "insert into shards (org, region, reserved_through, sealed_through, finished_through,"
            " figured_through) values (0, 'core', now(), now(), now(),"
            " date_trunc('hour', now())) on conflict do nothing"
        )
        uids = [uuid7() for _ in range(count)]
        with connection.transaction():
            connection.execute(
                "with made as (insert into monitors (org, uid, project, shard, slug, name, type,"
                " target, interval_seconds, timeout_seconds, created_at, updated_at)"
                " select %s, u, %s, s.id, 'bench-' || n, 'Bench ' || n, 'http', %s, %s, 5, now(),"
                " now() from unnest(%s::uuid[]) with ordinality as t(u, n), shards s"
                " returning org, id, shard, created_at),"
                " states as (insert into monitor_states (org, monitor, since)"
                " select org, id, created_at from made),"
                " raised as (update shards set generation = generation + 1"
                " returning greatest(reserved_through, now()) as from_at)"
                " insert into monitor_terms select made.org, made.id, raised.from_at, made.shard,"
                " raised.from_at + (row_number() over () * %s * interval '1 microsecond'),"
                " %s, 5, 60, true from made, raised",
                (
                    org,
                    project,
                    target,
                    interval_seconds,
                    uids,
                    interval_seconds * 1_000_000 // count,
                    interval_seconds,
                ),
            )


def on_rate(count: int, interval_seconds: int, seconds: float) -> dict[str, Any]:
    """Watches so many monitors at an interval, after a first round."""
    with nginx() as target, daemon(LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        make_monitors(running, target, count, interval_seconds)
        first = _first_round(running, count, interval_seconds * 3.0)
        began, before = time.time(), cpu_seconds(running)
        stored_before = _stored(running)
        time.sleep(seconds)
        after, took = cpu_seconds(running), time.time() - began
        stored = _stored(running) - stored_before
        report = _deviation(running, began)
        spent = {name: after[name] - before[name] for name in after}
        return {
            "monitors": count,
            "interval_s": interval_seconds,
            "stored_a_second": round(stored / took, 1),
            "due_a_second": round(count / interval_seconds, 1),
            "cpu_ms_a_check": {k: round(v * 1000 / max(stored, 1), 3) for k, v in spent.items()},
            "cores": {k: round(v / took, 2) for k, v in spent.items()},
            "first_round_s": first,
            "pss_mib": {k: round(v, 1) for k, v in rss_mib(running).items()},
            **report,
        }


def _stored(running: Daemon) -> int:
    with psycopg.connect(running.dsn) as connection:
        row = connection.execute("select count(*) from heartbeats").fetchone()
    return int(row[0]) if row else 0


def _first_round(running: Daemon, count: int, most_seconds: float) -> float:
    began = time.monotonic()
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        while time.monotonic() - began < most_seconds:
            row = connection.execute(
                "select count(*) from monitor_states where status <> 'pending'"
            ).fetchone()
            if row and row[0] >= count:
                break
            time.sleep(0.5)
    return round(time.monotonic() - began, 1)


def _deviation(running: Daemon, since: float) -> dict[str, Any]:
    """How late runs begin: the stored instant against the newest due instant before it."""
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        row = connection.execute(
            "select percentile_disc(array[0.5, 0.99, 1]) within group (order by late) from ("
            " select extract(epoch from h.ts - (select max(r.due_at) from expected_runs r"
            "   where r.monitor = h.monitor and r.due_at <= h.ts)) * 1000 as late"
            " from heartbeats h where h.ts > to_timestamp(%s) and h.monitor %% 10 = 1) x",
            (since,),
        ).fetchone()
        latency = connection.execute(
            "select percentile_disc(array[0.5, 0.99]) within group (order by latency_ms)"
            " from heartbeats where ts > to_timestamp(%s)",
            (since,),
        ).fetchone()
        verdicts = connection.execute(
            "select verdict::text, count(*) from expected_runs where due_at > to_timestamp(%s)"
            " group by 1",
            (since,),
        ).fetchall()
    late = [round(float(v), 1) for v in row[0]] if row and row[0] else []
    return {
        "start_late_ms_p50_p99_max": late,
        "latency_ms_p50_p99": list(latency[0]) if latency and latency[0] else [],
        "verdicts": dict(verdicts),
    }
