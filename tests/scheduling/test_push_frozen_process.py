"""A process that is frozen reads pushes late, and reports no silence of their senders."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.processes.daemon_process import Daemon, daemon

pytestmark = pytest.mark.soak
PUSHED, INTERVAL_SECONDS = 5, 5
# Around the stalls after which pushes get an earlier instant, and those that end the presence.
FREEZE_SECONDS = (1.5, 2.5, 4.0, 7.0, 13.0)
_MISSED = "select count(*) from heartbeats where not up"


def test_pushes_to_a_frozen_process_are_not_missed() -> None:
    with daemon() as running, ThreadPoolExecutor(PUSHED) as pool:
        running.start()
        running.sign_in()
        ended = threading.Event()
        senders = [
            pool.submit(_push, running, token, ended, number)
            for number, token in enumerate(_tokens(running))
        ]
        try:
            time.sleep(2 * INTERVAL_SECONDS)
            assert running.process is not None
            for seconds in FREEZE_SECONDS:
                os.kill(running.process.pid, signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(running.process.pid, signal.SIGCONT)
                time.sleep(3 * INTERVAL_SECONDS)
            with psycopg.connect(running.dsn) as connection:
                assert connection.execute(_MISSED).fetchone() == (0,)
        finally:
            ended.set()
        for sender in senders:
            sender.result()
        # Now the senders are silent.
        latest = time.monotonic() + 60
        missed = 0
        while missed < PUSHED:
            assert time.monotonic() < latest
            time.sleep(0.5)
            with psycopg.connect(running.dsn) as connection:
                missed = (connection.execute(_MISSED).fetchone() or (0,))[0]


def _tokens(running: Daemon) -> list[str]:
    organization = running.api("GET", "/organizations")[0]["id"]
    project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    path = f"/projects/{project}/monitors"
    timing = {"interval_seconds": INTERVAL_SECONDS, "grace_seconds": 2}
    for number in range(PUSHED):
        running.api("POST", path, {"name": f"push {number}", "type": "push", **timing})
    return [monitor["push_token"] for monitor in running.api("GET", path)]


def _push(running: Daemon, token: str, ended: threading.Event, number: int) -> None:
    """Pushes at fixed instants. A push that waits for an answer delays no later one."""
    at = time.monotonic() + number
    while not ended.wait(max(at - time.monotonic(), 0)):
        status, _, _ = running.raw("POST", f"/api/v1/public/push/{token}")
        assert status == 200
        at += INTERVAL_SECONDS
