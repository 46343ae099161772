"""Fixtures of the journeys: a real web server, a real daemon, and bounded waiting."""

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers.real_servers import listens
from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port
from tests.support.run.effort import IS_SOAK


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a soak run the local failures last longer, and the marker selects these tests."""
    for item in items:
        if IS_SOAK and item.path.name == "test_local_failures.py":
            item.add_marker(pytest.mark.soak)


class Nginx:
    """A real web server that can be stopped and started on its port."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.config = folder / "nginx.conf"
        self.config.write_text(
            f"""daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null;
events {{ }}
http {{ access_log off;
client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
server {{ listen 127.0.0.1:{self.port}; location / {{ return 200 "ok"; }} }} }}"""
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server and waits until it listens, because a refused first check is down."""
        program = shutil.which("nginx")
        assert program is not None
        self._process = subprocess.Popen([program, "-c", str(self.config)])
        while not listens(self.port):
            assert self._process.poll() is None, "nginx ended"
            time.sleep(0.005)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None


@pytest.fixture
def nginx() -> Iterator[Nginx]:
    folder = Path(tempfile.mkdtemp(prefix="leadline-nginx-"))
    server = Nginx(folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def leadline() -> Iterator[Daemon]:
    with daemon() as running:
        running.start()
        running.sign_in()
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Daemon]:
    """Provides one daemon to all tests of a file that neither stop nor configure it."""
    with daemon() as running:
        running.start()
        running.sign_in()
        yield running


class Stream:
    """Runs curl on the event stream; a thread collects the lines that it prints."""

    def __init__(self, leadline: Daemon) -> None:
        self.process = subprocess.Popen(
            ["curl", "-sSN", "-H", f"Cookie: {leadline.cookie}", f"{leadline.url}/api/v1/events"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def await_open(self) -> None:
        eventually(lambda: ": connected" in self.lines)

    def has_status(self, word: str) -> bool:
        return any(f'"status":"{word}"' in line for line in self.lines)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


# A busy machine can exceed the documented time by this much: no test asserts a duration.
SLACK_SECONDS = 30.0


def eventually(look: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Returns the first true result of `look`. A timeout names the late function.

    The pauses grow with the wait, to a tenth of it: each look is a request to the daemon.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds + SLACK_SECONDS:
        found = look()
        if found:
            return found
        time.sleep(min(max(0.1, waited / 10), 0.5))
    raise AssertionError(f"not within {seconds} s")


def await_instant(seconds: float) -> None:
    """Waits until a time of the epoch has passed, while no process runs that reports it."""
    eventually(lambda: time.time() > seconds, max(0.0, seconds - time.time()))


def metric(leadline: Daemon, name: str, *labels: str) -> float:
    """Returns the sum of a metric over the series that have any of the labels."""
    lines = leadline.raw("GET", "/metrics")[2].decode().splitlines()
    series = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
    found = [line for line in series if not labels or any(label in line for label in labels)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def await_passes(leadline: Daemon, count: int = 3) -> None:
    """Waits for reads of due work. Each wakes the loops that have some, so after several reads the
    watcher and the leaser have sent all due notifications.
    """
    reads = partial(metric, leadline, "leadline_transactions_total", 'name="due_work"')
    # The count includes a read that had begun before.
    enough = reads() + count
    eventually(lambda: reads() >= enough, 60)


def await_results(leadline: Daemon, monitor: str, count: int = 1) -> float:
    """Waits for results measured from now on, and returns the time of the newest."""
    since = time.time()

    def newest() -> float | None:
        beats = leadline.api("GET", f"/monitors/{monitor}/heartbeats?limit={count}")
        measured = [datetime.fromisoformat(beat["ts"]).timestamp() for beat in beats]
        return measured[0] if len(measured) == count and measured[-1] > since else None

    return float(eventually(newest))


def project_of(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    (project,) = leadline.api("GET", f"/organizations/{organization['id']}/projects")
    return str(project["id"])


def status(leadline: Daemon, monitor: str) -> str:
    return str(leadline.api("GET", f"/monitors/{monitor}")["status"])
