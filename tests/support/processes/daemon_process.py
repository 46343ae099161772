"""Runs the whole daemon like its users do: in its own process, on its own data directory."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

from tests.support.processes.forked_daemon import ForkedDaemon, can_fork
from tests.support.processes.memory import in_memory
from tests.support.processes.ports import free_port
from tests.support.processes.prepared_cluster import copy_prepared

LEADLINE = str(Path(sys.executable).with_name("leadline"))
READY_SECONDS = 60.0
STOP_SECONDS = 40.0
# The logs of ended daemons, for the report of a failure.
LOG_LINES_KEPT = 20


# The daemons of this test process, and the logs of those that ended during the current test.
_running: list["Daemon"] = []
logs_of_ended: list[tuple[str, str]] = []


def last_log_lines(count: int) -> list[tuple[str, str]]:
    """Returns for each daemon of the test the name of its folder and the last `count` lines of its
    log.
    """
    running = [(one.data_dir.parent.name, one.last_log_lines(count)) for one in _running]
    ended = [(name, "\n".join(text.splitlines()[-count:])) for name, text in logs_of_ended]
    return ended + running


class Refusal(Exception):
    """An answer with an error status."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.headers = headers


class Daemon:
    """A daemon on `data_dir`, which `copy_prepared` makes unless it exists, or the test runs the
    real command."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("LEADLINE_")},
            "LEADLINE_DATA_DIR": str(data_dir),
            "LEADLINE_SERVER__LISTEN": f"127.0.0.1:{self.port}",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | ForkedDaemon | None = None
        self.password = ""
        self.cookie = ""

    def start(self, *, role: str = "all", program: tuple[str, ...] = ()) -> float:
        """Starts the daemon as `begin`, waits until it is ready, and returns the seconds."""
        began = time.monotonic()
        offset = self.begin(role, *program)
        while not self.is_ready():
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-4_000:]
            assert time.monotonic() - began < READY_SECONDS, self.log.read_text()[-4_000:]
            time.sleep(0.02)
        took = time.monotonic() - began
        found = re.search(r"with the password (\S+)", self.log.read_text()[offset:])
        if found:
            self.password = found[1]
        return took

    def begin(self, role: str, *program: str) -> int:
        """Starts the daemon without waiting, and returns the position in its log.

        `program` replaces the command, for a daemon on another host.
        """
        has_own_database = "LEADLINE_DATABASE__DSN" not in self.environment
        if can_fork() and has_own_database and not self.data_dir.exists():
            copy_prepared(self.data_dir)
        with self.log.open("ab") as log:
            offset = log.tell()
            if can_fork() and not program:
                arguments = ["run", "--role", role]
                self.process = ForkedDaemon(arguments, self.environment, self.log)
                return offset
            self.process = subprocess.Popen(
                [*(program or (LEADLINE,)), "run", "--role", role],
                env=self.environment,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        return offset

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def stop(self) -> float:
        """Stops the daemon with SIGTERM and waits. Returns the seconds."""
        assert self.process is not None
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(STOP_SECONDS)
        return time.monotonic() - began

    def kill(self) -> None:
        """Sends SIGKILL, like a machine that loses power."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def sign_in(self, email: str = "admin@localhost") -> None:
        body = {"username": email, "password": self.password}
        answer = self.raw("POST", "/auth/local/login", body)
        jar = SimpleCookie(answer[1].get("set-cookie", ""))
        self.cookie = f"leadline_session={jar['leadline_session'].value}"

    def raw(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                named = {k.lower(): v for k, v in answer.headers.items()}
                return answer.status, named, answer.read()
        except urllib.error.HTTPError as error:
            named = {k.lower(): v for k, v in error.headers.items()}
            raise Refusal(error.code, error.read(), named) from error

    def api(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Calls a route below /api/v1 and returns the decoded body."""
        _, _, data = self.raw(method, f"/api/v1{path}", body, **headers)
        return json.loads(data) if data else None

    def last_log_lines(self, count: int) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-count:])

    @property
    def dsn(self) -> str:
        """Returns the DSN of the embedded PostgreSQL, for checks of the database."""
        return f"host={self.data_dir / 'run'} user=leadline dbname=leadline"


@contextmanager
def daemon(*, on_disk: bool = False, **environment: str) -> Iterator[Daemon]:
    """Yields a daemon on a data directory that other users can access, because PostgreSQL does not
    run as root. It is in memory, unless the test measures writes.
    """
    folder = Path(tempfile.mkdtemp(prefix="leadline-", dir=None if on_disk else in_memory()))
    folder.chmod(0o755)
    running = Daemon(folder / "data", **environment)
    _running.append(running)
    try:
        yield running
    finally:
        _running.remove(running)
        logs_of_ended.append((folder.name, running.last_log_lines(LOG_LINES_KEPT)))
        if running.process is not None and running.process.poll() is None:
            running.process.terminate()
            try:
                running.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                running.process.kill()
        subprocess.run(["rm", "-rf", str(folder)], check=False)
