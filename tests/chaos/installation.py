"""Leadline on a cluster of PostgreSQL: two api, two schedulers, three workers, and their target."""

import base64
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port

KEY = base64.b64encode(b"k" * 32).decode()
PASSWORD = "correct-horse"
# The schedulers create the partitions that the others write to.
NAMES = ("scheduler1", "scheduler2", "api1", "api2", "worker1", "worker2", "worker3")
INTERVAL_SECONDS, TIMEOUT_SECONDS = 5, 2


@dataclass
class Target:
    """The process of tests/chaos/target.py."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path

    def set(self, number: int, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number} {word}\n")
        self.process.stdin.flush()


@dataclass
class Installation:
    processes: dict[str, Daemon]
    target: Target
    project: str = ""
    # Identifiers by the number in the path of the target.
    monitors: dict[int, str] = field(default_factory=dict)
    jobs: dict[int, str] = field(default_factory=dict)
    cookie: str = ""

    def named(self, role: str) -> list[Daemon]:
        return [process for name, process in self.processes.items() if name.startswith(role)]

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Calls a route at the first api process that answers."""
        failure: Exception | None = None
        for process in self.named("api"):
            process.cookie = self.cookie
            try:
                return process.api(method, path, body)
            except OSError as error:
                failure = error
        assert failure is not None
        raise failure

    def declare(self, monitors: int, jobs: int) -> None:
        """Creates a project with http monitors of the target, and push monitors."""
        first = self.named("api")[0]
        first.password = PASSWORD
        first.sign_in()
        self.cookie = first.cookie
        organization = self.api("POST", "/organizations", {"name": "Chaos", "slug": "chaos"})["id"]
        path = f"/organizations/{organization}/projects"
        self.project = self.api("POST", path, {"name": "Chaos", "slug": "chaos"})["id"]
        for number in range(monitors):
            made = self.api(
                "POST",
                f"/projects/{self.project}/monitors",
                {
                    "name": f"m{number}",
                    "type": "http",
                    "target": f"http://127.0.0.1:{self.target.port}/{number}",
                    "interval_seconds": INTERVAL_SECONDS,
                    "timeout_seconds": TIMEOUT_SECONDS,
                },
            )
            self.monitors[number] = made["id"]
        for number in range(jobs):
            body = {"name": f"j{number}", "type": "push", "interval_seconds": 60}
            made = self.api("POST", f"/projects/{self.project}/monitors", body)
            self.jobs[number] = made["id"]
            self.push_path[number] = urlsplit(made["push_url"]).path

    push_path: dict[int, str] = field(default_factory=dict)


@contextmanager
def installation(dsn: str, folder: Path) -> Iterator[Installation]:
    """Yields an installation that is ready, without monitors."""
    with ExitStack() as stack:
        processes: dict[str, Daemon] = {}
        for name in NAMES:
            process = stack.enter_context(
                daemon(
                    LEADLINE_DATABASE__DSN=dsn,
                    LEADLINE_DATABASE__POOL_SIZE="6",
                    LEADLINE_SECURITY__ENCRYPTION_KEY=KEY,
                    LEADLINE_SECURITY__ADMIN_EMAIL="admin@localhost",
                    LEADLINE_SECURITY__ADMIN_PASSWORD=PASSWORD,
                    LEADLINE_PROBER__ALLOW_PRIVATE_IPS="true",
                )
            )
            if not name.startswith("api"):
                process.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{process.port}"
                process.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
            processes[name] = process
        for name, process in processes.items():
            process.start(role=name.rstrip("123"))
        log = folder / "target.log"
        command = [sys.executable, "-m", "tests.chaos.target", str(log)]
        target = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert target.stdout is not None
        port = int(target.stdout.readline())
        try:
            yield Installation(processes, Target(target, port, log))
        finally:
            target.kill()
            for name, process in processes.items():
                shutil.copy(process.log, folder / f"{name}.log")


def stored_since(found: Installation, since: float) -> int:
    """Returns how many monitors have a result since an instant."""
    count = 0
    for identifier in found.monitors.values():
        beats = found.api("GET", f"/monitors/{identifier}/heartbeats?limit=1")
        count += bool(beats) and instant(beats[0]["ts"]) >= since
    return count


def instant(text: str) -> float:
    """Returns seconds since the epoch of an instant of the API."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))
