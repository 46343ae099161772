"""What journeys share: a real web server, a real daemon, and patience with a bound."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import Daemon, daemon
from tests.effort import IS_SOAK
from tests.ports import free_port


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under soak our own trouble lasts longer, and its marker selects it."""
    for item in items:
        if IS_SOAK and item.path.name == "test_our_own_trouble.py":
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
        program = shutil.which("nginx")
        assert program is not None
        self._process = subprocess.Popen([program, "-c", str(self.config)])

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


# So much later than promised may what a busy machine does come: no test asserts a time.
SLACK_SECONDS = 30.0


def eventually(look: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What `look` answers once it answers something; a time-out names the promise that was late."""
    until = time.monotonic() + seconds + SLACK_SECONDS
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


def project_of(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    (project,) = leadline.api("GET", f"/organizations/{organization['id']}/projects")
    return str(project["id"])


def status(leadline: Daemon, monitor: str) -> str:
    return str(leadline.api("GET", f"/monitors/{monitor}")["status"])
