"""Screens of the console with 2 000 monitors, 200 services and 90 days of data: time of the answer,
compressed size and requests of the first load.

The monitors are checked every 30 s during the measurement, as in use."""

import gzip
import http.client
import re
import time
from typing import Any

import psycopg
import trio

from ..support.processes.daemon_process import Daemon, daemon
from .client import _at
from .pages import _DAYS
from .seed import add_monitors
from .services import MEMBERS, SERVICES, _fill
from .target import nginx

READS = 200
INTERVAL_SECONDS = 30
WARM_SECONDS = 40
_REFERENCE = re.compile(rb'(?:src|href)="(/static/[^"]+)"')
Figures = dict[str, Any]


def console() -> Figures:
    with nginx() as target, daemon(on_disk=True, LEADLINE_LOG__LEVEL="error") as running:
        running.start()
        running.sign_in()
        count = SERVICES * MEMBERS
        add_monitors(running.dsn, count, target=target.plain, interval_seconds=INTERVAL_SECONDS)
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            connection.execute(_DAYS, {"count": count})
        trio.run(_fill, running.dsn)
        screens = _screens(running)
        time.sleep(WARM_SECONDS)
        return {name: _measured(running, path) for name, path in screens.items()}


def _screens(running: Daemon) -> dict[str, str]:
    organization = running.api("GET", "/organizations")[0]["id"]
    project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    monitor = running.api("GET", f"/projects/{project}/monitors?limit=1")[0]["id"]
    found = running.api("GET", f"/projects/{project}/services")[0]
    service = found["service"]["id"]
    incident = {"title": "Slow payments", "status": "identified", "body": "We look into it."}
    open_one = running.api("POST", f"/projects/{project}/incidents", incident)["id"]
    here = f"/projects/{project}"
    return {
        "overview": here,
        "monitors": f"{here}/monitors",
        "monitors by uptime": f"{here}/monitors?sort=uptime",
        "monitors found by text": f"{here}/monitors?q=bench+19",
        "services": f"{here}/services",
        "incidents": f"{here}/incidents",
        "search": f"{here}/search?q=bench+19",
        "monitor": f"/monitors/{monitor}",
        "service": f"/services/{service}",
        "incident": f"/incidents/{open_one}",
    }


def _measured(running: Daemon, path: str) -> Figures:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    took, page = [], b""
    for _ in range(READS):
        began = time.perf_counter()
        page = _get(connection, running, path)
        took.append((time.perf_counter() - began) * 1_000)
    ordered = sorted(took)
    files = set(_REFERENCE.findall(gzip.decompress(page)))
    return {
        "ms_p50_p99_max": [round(_at(ordered, q), 1) for q in (0.5, 0.99, 1.0)],
        "bytes": len(page),
        "requests": 1 + len(files),
        "bytes_of_all": len(page)
        + sum(len(_get(connection, running, file.decode())) for file in files),
    }


def _get(connection: http.client.HTTPConnection, running: Daemon, path: str) -> bytes:
    headers = {"Cookie": running.cookie, "Accept-Encoding": "gzip"}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status)
    return body
