"""The clock of the host of PostgreSQL is set: no run is lost or repeated, and nothing is down.

Leadline follows that clock, so a step concerns all processes at once.
"""

import base64
import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.bench.target import QuietHandler, serve
from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port

from .installation import clock_environment, set_clock
from .patroni_cluster import AS_POSTGRES, postgres_ids, server_programs, wait

pytestmark = [
    pytest.mark.soak,
    pytest.mark.needs("pg_createcluster"),
    pytest.mark.needs("faketime"),
    pytest.mark.needs("root"),
]
# Offsets of the clock, one after the other: steps of 1, 10 and 90 s and of an hour, and back.
OFFSETS = (1, 0, 10, 100, 10, 3610, 10)
# Longer than the time between two readings of the clock.
HOLD_SECONDS = 8.0
MONITORS, INTERVAL_SECONDS, PUSH_SECONDS = 6, 5, 2.0
KEY = base64.b64encode(b"k" * 32).decode()

# A window without a run is missed after at most three minutes, in the time of Leadline.
_VERDICTS = """
with sealed as (select max(through_at) - interval '3 minutes' as at from presences)
select m.slug, count(*), count(distinct r.due_at),
  floor(extract(epoch from s.at - min(r.due_at)) / %(interval)s)::int + 1,
  count(*) filter (where r.verdict in ('covered', 'covered_late'))
from ledger r join monitors m on m.org = r.org and m.id = r.monitor, sealed s
where m.type = 'http' and r.due_at <= s.at
group by m.slug, s.at
"""
_RESULTS = """
select m.slug, count(*), count(*) filter (where not h.up)
from heartbeats h join monitors m on m.org = h.org and m.id = h.monitor group by m.slug
"""
# How far the shards are settled behind the time of Leadline.
_UNSETTLED_SECONDS = """
select extract(epoch from (select max(through_at) from presences) - min(settled_through))::float8
from shards
"""


class _Target(ThreadingHTTPServer):
    """Counts the requests of each path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: Counter[str] = Counter()


class _Answer(QuietHandler):
    server: _Target

    def do_GET(self) -> None:
        self.server.asked[self.path.strip("/")] += 1
        self.answer(200)


@contextmanager
def _postgres() -> Iterator[tuple[str, Path]]:
    """Yields the DSN of a server and the file with the offset of its wall clock."""
    programs = server_programs()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="leadline-clock-") as name:
        folder = Path(name)
        os.chown(folder, *postgres_ids())
        folder.chmod(0o755)
        clock, port = folder / "clock", free_port()
        set_clock(clock, 0)
        data = str(folder / "data")
        subprocess.run(
            [*AS_POSTGRES, str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "postgres"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )
        server = [str(programs / "postgres"), "-D", data, "-p", str(port), "-k", name]
        server += ["-c", "fsync=off", "-c", "listen_addresses="]
        # Its semaphore belongs to the user that loads the library first.
        stepped = ["env", *(f"{name}={value}" for name, value in clock_environment(clock).items())]
        with subprocess.Popen([*AS_POSTGRES, *stepped, *server], cwd=folder) as process:
            try:
                yield f"host={name} port={port} user=postgres dbname=postgres", clock
            finally:
                process.terminate()


class _Sender:
    """Pushes until `ended` is set, and counts the accepted pushes."""

    def __init__(self, running: Daemon, path: str) -> None:
        self._running = running
        self._path = path
        self.ended = threading.Event()
        self.accepted = 0

    def send(self) -> None:
        while not self.ended.wait(PUSH_SECONDS):
            status, _, _ = self._running.raw("POST", self._path)
            self.accepted += status == 200


def _statuses(running: Daemon, project: str) -> set[str]:
    found = running.api("GET", f"/projects/{project}/monitors")
    return {monitor["status"] for monitor in found}


def _rows(dsn: str, query: str, **given: Any) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query, given).fetchall()


def test_steps_of_the_clock_of_the_database_harm_no_history() -> None:
    with (
        serve(_Target()) as target,
        _postgres() as (dsn, clock),
        daemon(LEADLINE_DATABASE__DSN=dsn, LEADLINE_SECURITY__ENCRYPTION_KEY=KEY) as running,
    ):
        wait(lambda: _accepts(dsn), 20, "server")
        running.start()
        running.sign_in()
        project = _declare(running, target.server_port)
        sender = _Sender(running, _push_path(running, project))
        seen: set[str] = set()
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(sender.send)
            try:
                for offset in (0, *OFFSETS):
                    set_clock(clock, offset)
                    before = target.asked.total()
                    ends = time.monotonic() + HOLD_SECONDS
                    while time.monotonic() < ends:
                        seen |= _statuses(running, project)
                        time.sleep(0.2)
                    assert target.asked.total() > before, "checks go on"
            finally:
                sender.ended.set()
            sending.result()
        wait(lambda: _rows(dsn, _UNSETTLED_SECONDS)[0][0] < 30, 60, "settled windows")
        _assert_history(dsn, target, sender.accepted)
    assert seen <= {"up", "pending"}


def _assert_history(dsn: str, target: _Target, accepted: int) -> None:
    found = _rows(dsn, _VERDICTS, interval=INTERVAL_SECONDS)
    assert len(found) == MONITORS
    for slug, verdicts, windows, due, covered in found:
        # Those of the hour that was skipped too.
        assert verdicts == windows == due, slug
        assert due > 3_000 // INTERVAL_SECONDS
        assert covered <= target.asked[slug], slug
    results = {slug: (count, down) for slug, count, down in _rows(dsn, _RESULTS)}
    assert results.pop("push") == (accepted, 0)
    assert len(results) == MONITORS
    for slug, (count, down) in results.items():
        # A run can be in progress.
        assert target.asked[slug] - count in (0, 1), slug
        assert down == 0


def _declare(running: Daemon, port: int) -> str:
    organization = running.api("GET", "/organizations")[0]["id"]
    project: str = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    path = f"/projects/{project}/monitors"
    timing = {"interval_seconds": INTERVAL_SECONDS, "timeout_seconds": INTERVAL_SECONDS}
    for number in range(MONITORS):
        slug = f"up-{number}"
        address = f"http://127.0.0.1:{port}/{slug}"
        running.api("POST", path, {"name": slug, "type": "http", "target": address, **timing})
    push = {"name": "push", "type": "push", "interval_seconds": 5, "grace_seconds": 5}
    running.api("POST", path, push)
    return project


def _push_path(running: Daemon, project: str) -> str:
    monitors = running.api("GET", f"/projects/{project}/monitors")
    token = next(one["push_token"] for one in monitors if one["slug"] == "push")
    return f"/api/v1/public/push/{token}"


def _accepts(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True
