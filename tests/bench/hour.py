"""One hour at load: memory, file descriptors, connections, and the size of tables and indexes.

One tenth of the checks fails for a minute out of four, so that outages come and go. Pushes, edits,
lists and screens are requested meanwhile. MINUTES sets another duration."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg

from ..support.processes.daemon_process import Daemon, daemon
from .checks import _one, _seen, _stored
from .pushes import make_tokens
from .seed import add_monitors
from .target import nginx
from .usage import _root, _tree, memory_mib

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
        _failing() as failing,
        daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running,
    ):
        running.start()
        running.sign_in()
        tokens = make_tokens(PUSHED)
        add_monitors(running.dsn, PUSHED, kind="push", tokens=tokens, slug="push-")
        for count, url, slug in ((CHECKED, target.plain, "up-"), (FAILING, failing, "down-")):
            add_monitors(
                running.dsn, count, target=url, interval_seconds=INTERVAL_SECONDS, slug=slug
            )
        ended = threading.Event()
        client = threading.Thread(target=_request, args=(running, tokens, ended))
        client.start()
        began, stored, samples = time.time(), _stored(running.dsn), [_sample(running)]
        for n in range(1, SAMPLES + 1):
            time.sleep(max(began + MINUTES * 60 * n / SAMPLES - time.time(), 0))
            samples.append(_sample(running))
        ended.set()
        client.join()
        return {
            "minutes": MINUTES,
            "stored": _stored(running.dsn) - stored,
            **_seen(running.dsn, began),
            "samples": samples,
        }


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


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_down = time.time() % ROUND_SECONDS < DOWN_SECONDS
        self.send_response(503 if is_down else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _failing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
