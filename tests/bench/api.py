"""The API as scripts read it, by a token: a page of heartbeats, a list of a thousand monitors."""

import time
from typing import Any

import psycopg

from ..support.processes.daemon_process import Daemon, daemon
from .client import load
from .seed import add_monitors
from .usage import cpu_seconds, per_thousand

MONITORS = 1_000
CONNECTIONS = 8
SECONDS = 10.0

# A day of results at one a minute for each monitor.
_HISTORY = """
insert into heartbeats (org, monitor, ts, latency_ms, code, up)
select m.org, m.id, date_trunc('minute', now()) - n * interval '1 minute', 12, 200, true
from monitors m, generate_series(1, %(count)s) n
on conflict do nothing
"""

Figures = dict[str, Any]


def reads() -> Figures:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        running.sign_in()
        add_monitors(running.dsn, MONITORS, target="http://127.0.0.1:9/", interval_seconds=86_400)
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            connection.execute(_HISTORY, {"count": 200})
            connection.execute("update monitor_states set status = 'up'")
            connection.execute("analyze")
        organization = running.api("GET", "/organizations")[0]["id"]
        project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
        headers = {"Authorization": f"Bearer {_token(running)}"}
        found = running.api("GET", f"/projects/{project}/monitors")
        pages = [f"/api/v1/monitors/{m['id']}/heartbeats?limit=100" for m in found[:200]]
        return {
            "heartbeats_100": _measured(running, pages, headers),
            "monitor_1": _measured(
                running, [f"/api/v1/monitors/{m['id']}" for m in found[:200]], headers
            ),
            "monitors_1000": _measured(
                running, [f"/api/v1/projects/{project}/monitors"], headers, connections=2
            ),
            "healthz": _measured(running, ["/healthz"], {}),
        }


def _token(running: Daemon) -> str:
    organization = running.api("GET", "/organizations")[0]["id"]
    body = {"name": "bench", "role": "viewer"}
    made = running.api("POST", f"/organizations/{organization}/tokens", body)
    token: str = made["token"]
    return token


def _measured(
    running: Daemon, paths: list[str], headers: dict[str, str], connections: int = CONNECTIONS
) -> Figures:
    before = cpu_seconds(running)
    began = time.monotonic()
    figures = load(
        [running.port],
        [("GET", path, headers) for path in paths],
        connections=connections,
        seconds=SECONDS,
    )
    count = int(figures["a_second"] * (time.monotonic() - began))
    return {**figures, "cpu_s_per_1000": per_thousand(before, cpu_seconds(running), count)}
