"""A status page of 50 components with 90 days of data: cached, rebuilt, and the first request after
a start."""

import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import psycopg
import trio

from ..support.processes.daemon_process import Daemon, daemon
from .api import CONNECTIONS, SECONDS
from .client import _at, load
from .seed import add_monitors
from .services import MEMBERS, SERVICES, _fill
from .usage import cpu_seconds, per_thousand

COMPONENTS = 50
READS = 200
STARTS = 5

_DAYS = """
insert into monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total)
select m.org, m.id, date_trunc('day', now(), 'UTC') - n * interval '1 day', 86400000000 - bad.us,
  bad.us, 0, 0, 1440 - bad.us / 60000000, 1440
from monitors m, generate_series(1, 89) n,
  lateral (select case when (m.id * 7 + n) %% 30 = 0 then 300000000 else 0 end) as bad(us)
where m.id <= %(count)s
"""
_OLD = "update monitor_terms set from_at = from_at - interval '100 days'"
_COMPONENTS = """
insert into status_components (org, uid, page, name, position, source, monitor, service, created_at,
  updated_at)
select g.org, gen_random_uuid(), g.id, 'Part ' || n, n,
  case when n %% 2 = 0 then 'service' else 'monitor' end,
  case when n %% 2 = 1 then n end, case when n %% 2 = 0 then n end, now(), now()
from status_pages g, generate_series(1, %(count)s) n
"""

Figures = dict[str, Any]


def pages() -> Figures:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="error") as running:
        page = _filled(running)
        forms = {
            "json": f"/api/v1/public/status-pages/{page['slug']}",
            "html": f"/status/{page['slug']}",
        }
        return {
            name: {
                "kept": _kept(running, path, {}),
                # As browsers and caches ask.
                "kept_gzip": _kept(running, path, {"Accept-Encoding": "gzip"}),
                "bytes": len(_get(running, path)),
                "anew_ms_p50_p99_max": _renewed(running, page, path),
                "first_ms": _first(running, path),
            }
            for name, path in forms.items()
        }


def _filled(running: Daemon) -> Any:
    running.start()
    running.sign_in()
    target = "http://127.0.0.1:9/"
    add_monitors(running.dsn, SERVICES * MEMBERS, target=target, interval_seconds=86_400)
    trio.run(_fill, running.dsn)
    organization = running.api("GET", "/organizations")[0]["id"]
    body = {"slug": "bench", "title": "Bench"}
    page = running.api("POST", f"/organizations/{organization}/status-pages", body)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        connection.execute(_DAYS, {"count": COMPONENTS})
        connection.execute(_OLD)
        connection.execute(_COMPONENTS, {"count": COMPONENTS})
        connection.execute("vacuum analyze")
    return page


def _kept(running: Daemon, path: str, headers: dict[str, str]) -> Figures:
    before, began = cpu_seconds(running), time.monotonic()
    asked = [("GET", path, headers)]
    figures = load([running.port], asked, connections=CONNECTIONS, seconds=SECONDS)
    count = int(figures["a_second"] * (time.monotonic() - began))
    return {**figures, "cpu_s_per_1000": per_thousand(before, cpu_seconds(running), count)}


def _renewed(running: Daemon, page: Any, path: str) -> list[float]:
    """After an edit, which drops all that is kept."""
    took = []
    for n in range(READS):
        running.api("PATCH", f"/status-pages/{page['id']}", {"title": f"Bench {n}"})
        took.append(_timed(running, path))
    return _quantiles(took)


def _first(running: Daemon, path: str) -> list[float]:
    """The first response after each start, once the daemon is ready."""
    took = []
    for _ in range(STARTS):
        running.stop()
        running.start()
        took.append(_timed(running, path))
    return [round(ms, 1) for ms in took]


def _timed(running: Daemon, path: str) -> float:
    began = time.perf_counter()
    _get(running, path)
    return (time.perf_counter() - began) * 1_000


def _get(running: Daemon, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}{path}", timeout=10) as answer:
        body: bytes = answer.read()
    return body


def _quantiles(took: Sequence[float]) -> list[float]:
    ordered = sorted(took)
    return [round(_at(ordered, q), 1) for q in (0.5, 0.99, 1.0)]
