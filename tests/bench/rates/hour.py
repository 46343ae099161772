"""One hour at load: memory, file descriptors, connections, and the size of tables and indexes.

One tenth of the checks fails for a minute out of four, so that outages come and go. Pushes, edits,
lists and screens are requested meanwhile. MINUTES sets another duration."""

import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg

from ...support.processes.daemon_process import Daemon, daemon
from ..pushes import make_tokens
from ..seed import add_monitors
from ..target import QuietHandler, nginx, serve
from ..usage import _root, _tree, memory_mib
from .checks import _one, _stored, _verdicts

MINUTES = float(os.environ.get("MINUTES", "60"))
SAMPLES = 12
CHECKED, FAILING, PUSHED = 2_700, 300, 300
INTERVAL_SECONDS = 30
DOWN_SECONDS, ROUND_SECONDS = 60, 240
REQUESTS_A_SECOND = 10
Figures = dict[str, Any]

# Tables that rows leave again, or that are updated in place: their size must not follow the number
# of checks.
_TABLES = """
select c.relname, pg_total_relation_size(c.oid), pg_indexes_size(c.oid), s.n_dead_tup
from pg_class c join pg_stat_user_tables s on s.relid = c.oid
where c.relname in ('run_batches', 'jobs', 'monitor_states', 'presences', 'outbox', 'shards',
  'status_changes', 'push_runs', 'schedule_edits', 'repairs', 'incidents', 'monitors')
order by c.relname
"""


def hour() -> Figures:
    with (
        nginx() as target,
        serve(ThreadingHTTPServer(("127.0.0.1", 0), _Answer)) as server,
        daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running,
    ):
        running.start()
        running.sign_in()
        tokens = make_tokens(PUSHED)
        add_monitors(running.dsn, PUSHED, kind="push", tokens=tokens, slug="push-")
        failing = f"http://127.0.0.1:{server.server_port}/"
        for count, url, slug in ((CHECKED, target.plain, "up-"), (FAILING, failing, "down-")):
            add_monitors(
                running.dsn, count, target=url, interval_seconds=INTERVAL_SECONDS, slug=slug
            )
        began, stored = time.time(), _stored(running.dsn)
        samples = _samples(running, tokens, began)
        return {
            "minutes": MINUTES,
            "stored": _stored(running.dsn) - stored,
            "verdicts": _verdicts(running.dsn, began),
            "samples": samples,
        }


def _samples(running: Daemon, tokens: list[str], began: float) -> list[Figures]:
    """Samples while a client sends requests. A request that fails ends the measurement."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        client: Future[None] = pool.submit(_request, running, tokens, ended)
        try:
            samples = [_sample(running)]
            for n in range(1, SAMPLES + 1):
                wait_for([client], max(began + MINUTES * 60 * n / SAMPLES - time.time(), 0))
                if client.done():
                    client.result()
                samples.append(_sample(running))
        finally:
            ended.set()
        client.result()
    return samples


def _sample(running: Daemon) -> Figures:
    own = [pid for pid, name in _tree(_root(running)) if name != "postgres"]
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        tables = connection.execute(_TABLES).fetchall()
        counted = connection.execute(
            "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        ).fetchone()
    return {
        "minute": round(time.time() / 60, 1),
        **memory_mib(running),
        "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in own),
        "threads": sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in own),
        "connections": counted[0] - 1 if counted else None,
        "kib_indexes_dead": {
            name: [size // 1024, indexes // 1024, dead] for name, size, indexes, dead in tables
        },
    }


def _request(running: Daemon, tokens: list[str], ended: threading.Event) -> None:
    """Pushes, and between them edits of a monitor, lists and screens, until the end."""
    here = f"/projects/{_one(running.dsn, 'select uid from projects order by id limit 1')}"
    monitor = running.api("GET", f"{here}/monitors?limit=1")[0]["id"]
    number = 0
    while not ended.wait(1 / REQUESTS_A_SECOND):
        number += 1
        if number % 20 == 0:
            running.api("PATCH", f"/monitors/{monitor}", {"name": f"Edited {number}"})
        elif number % 7 == 0:
            running.api("GET", f"{here}/monitors?limit=100")
        elif number % 11 == 0:
            running.raw("GET", here)
        else:
            running.raw("POST", f"/api/v1/public/push/{tokens[number % len(tokens)]}")


class _Answer(QuietHandler):
    def do_GET(self) -> None:
        self.answer(503 if time.time() % ROUND_SECONDS < DOWN_SECONDS else 200)
