"""Targets that are costly to read, next to the monitors of another organization.

The figures are those of the other organization: the delay of its starts, its runs without a result,
and the time of /healthz.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import trustme

from ..support.processes.daemon_process import Daemon, daemon
from .rates.checks import LATE_MS
from .target import nginx

HOST = "127.0.0.1"
WATCHED = 60
INTERVAL_SECONDS = 5
SECONDS = 30.0
COUNTS = (1, 17, 200)
Figures = dict[str, Any]

_DELAYS = f"""
select percentile_disc(array[0.5, 0.99, 1]) within group (order by late)::float8[], count(*)
from (select {LATE_MS} as late
  from heartbeats h join monitors m on m.id = h.monitor
  where h.ts > to_timestamp(%(since)s) and m.slug like 'w%%') x
"""
_WINDOWS = """
select count(*) filter (where r.verdict <> 'covered'), count(*),
  array_agg(distinct r.verdict)
from ledger r join monitors m on m.id = r.monitor
where r.due_at > to_timestamp(%(since)s) and r.due_at < to_timestamp(%(until)s)
  and m.slug like 'w%%'
"""


@contextmanager
def _peers(niceness: int = 0) -> Iterator[tuple[dict[str, int], Path]]:
    """Yields the ports of costly targets. With a niceness they only get the CPU that others leave,
    as on a host of their own."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-hostile-"))
    authority = trustme.CA()
    certificate = authority.issue_cert(HOST)
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "long.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    command = [
        "nice",
        "-n",
        str(niceness),
        sys.executable,
        "-m",
        "tests.bench.answers",
        str(folder),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline()), folder / "ca.pem"
        process.kill()


def _worst(ports: dict[str, int]) -> dict[str, dict[str, Any]]:
    """The most costly target of each protocol. mysql and redis end at an unexpected packet."""
    login = {"username": "u", "password": "p"}

    def at(kind: str, peer: str, **config: str) -> dict[str, Any]:
        return {"type": kind, "target": f"{HOST}:{ports[peer]}", "config": config}

    steps = [{"url": f"http://{HOST}:{ports['chunks']}/"}]
    chunks = f"http://{HOST}:{ports['chunks']}/"
    return {
        "http chunks": {"type": "http", "target": chunks, "conditions": ["[BODY] contains y"]},
        "tls records": {"type": "http", "target": f"https://{HOST}:{ports['records']}/"},
        "json": {
            "type": "http",
            "target": f"http://{HOST}:{ports['lists']}/",
            "conditions": [f"[BODY].many[{n}] exists" for n in range(10)],
        },
        "websocket": {
            "type": "websocket",
            "target": f"ws://{HOST}:{ports['pings']}/",
            "config": {"send": "x"},
        },
        "grpc": {"type": "grpc", "target": f"{HOST}:{ports['frames']}"},
        "rabbitmq": at("rabbitmq", "heartbeats", **login),
        "postgres": at("postgres", "notices", **login, sslmode="disable"),
        "ssh": at("ssh", "packets", host_key_sha256="SHA256:" + "A" * 43),
        "dns": {
            "type": "dns",
            "target": "many.example",
            "config": {"resolver": f"{HOST}:{ports['dns']}", "transport": "tcp"},
        },
        "tls starttls": at("tls", "greeting", starttls="smtp"),
        "promql": {
            "type": "promql",
            "target": f"http://{HOST}:{ports['samples']}",
            "config": {"query": "up"},
        },
        "synthetic": {"type": "synthetic", "target": "", "config": {"scenario": {"steps": steps}}},
    }


def _chosen(worst: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the protocols that LEADLINE_HOSTILE names, separated by commas; all by default."""
    names = [name for name in os.environ.get("LEADLINE_HOSTILE", "").split(",") if name]
    return {name: worst[name] for name in names or worst}


def hostile() -> Figures:
    with _peers() as (ports, authority), nginx() as target:
        found: Figures = {}
        for name, worst in _chosen(_worst(ports)).items():
            for count in COUNTS:
                environment = {"LEADLINE_LOG__LEVEL": "error", "SSL_CERT_FILE": str(authority)}
                with daemon(on_disk=True, **environment) as running:
                    running.start()
                    running.sign_in()
                    key = f"{name} x{count}"
                    found[key] = _beside(running, target.plain, worst, count)
                    sys.stderr.write(f"{key}: {found[key]}\n")
        return found


def _beside(running: Daemon, plain: str, worst: dict[str, Any], count: int) -> Figures:
    watched, costly = _project(running, "watched"), _project(running, "costly")
    common = {"interval_seconds": INTERVAL_SECONDS, "timeout_seconds": INTERVAL_SECONDS}
    for number in range(WATCHED):
        monitor = {"name": f"w{number}", "type": "http", "target": plain, **common}
        running.api("POST", f"/projects/{watched}/monitors", monitor)
    for number in range(count):
        running.api(
            "POST", f"/projects/{costly}/monitors", {"name": f"c{number}", **worst, **common}
        )
    time.sleep(2 * INTERVAL_SECONDS)
    since = time.time()
    health = _health(running)
    until = time.time()
    time.sleep(3 * INTERVAL_SECONDS)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        delays = connection.execute(_DELAYS, {"since": since}).fetchone()
        windows = connection.execute(_WINDOWS, {"since": since, "until": until}).fetchone()
        said = connection.execute(
            "select split_part(h.msg, ' ', 1), count(*) from heartbeats h join monitors m"
            " on m.id = h.monitor where m.slug like 'c%%' group by 1 order by 2 desc"
        ).fetchall()
    assert delays is not None
    assert windows is not None
    return {
        "start_late_ms_p50_p99_max": [round(ms, 1) for ms in delays[0] or []],
        "without_a_result": f"{windows[0]} of {windows[1]} {windows[2]}",
        "healthz_ms_p50_p99_max": health,
        "said": dict(said),
    }


def _health(running: Daemon) -> list[float]:
    took: list[float] = []
    ends = time.monotonic() + SECONDS
    with httpx.Client(base_url=running.url, timeout=60) as client:
        while time.monotonic() < ends:
            began = time.perf_counter()
            client.get("/healthz")
            took.append((time.perf_counter() - began) * 1_000)
            time.sleep(0.05)
    took.sort()
    picked = [took[int(len(took) * part)] for part in (0.5, 0.99)]
    return [round(ms, 1) for ms in (*picked, took[-1])]


def _project(running: Daemon, slug: str) -> str:
    """A project of an organization of its own."""
    organization = running.api("POST", "/organizations", {"name": slug, "slug": slug})["id"]
    path = f"/organizations/{organization}/projects"
    made: str = running.api("POST", path, {"name": slug, "slug": slug})["id"]
    return made
