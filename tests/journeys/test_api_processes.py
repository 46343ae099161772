"""Several API processes on one address: each answers, and none outlives the first."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.daemon_process import Daemon, daemon

from .conftest import eventually, project_of


@pytest.fixture
def two() -> Iterator[Daemon]:
    with daemon(LEADLINE_SERVER__PROCESSES="2") as running:
        running.start()
        running.sign_in()
        eventually(lambda: answers_alone(running), 30)
        yield running


def pid_of(running: Daemon) -> int:
    assert running.process is not None
    return running.process.pid


def further_of(parent: int) -> list[int]:
    """Returns the further API processes below a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(status[1]) == parent and "api_process_main" in command:
            found.append(int(entry.name))
    return found


def answers_alone(running: Daemon) -> bool:
    """Returns whether a further process answers while the first one is frozen."""
    os.kill(pid_of(running), signal.SIGSTOP)
    try:
        return running.is_ready()
    finally:
        os.kill(pid_of(running), signal.SIGCONT)


def test_each_process_answers_and_a_killed_one_is_replaced(two: Daemon) -> None:
    project = project_of(two)
    body = {"name": "Backup", "type": "push", "interval_seconds": 3600}
    made = two.api("POST", f"/projects/{project}/monitors", body)
    os.kill(pid_of(two), signal.SIGSTOP)
    # The further process has the sign-in, the pushes and the key of the first.
    two.api("POST", f"/public/push/{made['push_token']}?msg=first")
    two.api("POST", f"/projects/{project}/secrets", {"name": "key", "value": "hidden"})
    os.kill(pid_of(two), signal.SIGCONT)
    assert two.api("GET", f"/monitors/{made['id']}/heartbeats")[0]["msg"] == "first"
    (before,) = further_of(pid_of(two))
    os.kill(before, signal.SIGKILL)
    two.api("POST", f"/public/push/{made['push_token']}?msg=second")
    eventually(lambda: further_of(pid_of(two)) not in ([], [before]), 30)
    eventually(lambda: answers_alone(two), 30)
    assert "api process ended" in two.log.read_text()


@pytest.mark.soak
def test_a_stop_ends_all_processes(two: Daemon) -> None:
    (further,) = further_of(pid_of(two))
    two.stop()
    assert two.process is not None
    assert two.process.returncode == 0
    assert not Path(f"/proc/{further}").exists()


@pytest.mark.soak
def test_no_process_outlives_the_first_one(two: Daemon) -> None:
    (further,) = further_of(pid_of(two))
    two.kill()
    eventually(lambda: not Path(f"/proc/{further}").exists(), 40)
    assert "the parent process ended" in two.log.read_text()
