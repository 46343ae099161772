"""The time from the stop of a target to the webhook, and the share of it that is the wait for the
check."""

import random
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from ...support.peers.json_receiver import json_receiver
from ...support.processes.daemon_process import Daemon, daemon

TARGETS = 20
INTERVAL_SECONDS = 20

Figures = dict[str, Any]


class Target:
    """A port that accepts, until it is closed."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def receiver() -> Iterator[tuple[str, dict[str, float]]]:
    """The URL of the receiver, and the time of the first notification per monitor."""
    heard: dict[str, float] = {}

    def take(_: str, document: Any) -> None:
        heard.setdefault(document["incident"]["monitor_id"], time.time())

    with json_receiver(take) as url:
        yield f"{url}/", heard


def time_to_notify() -> Figures:
    chance = random.Random(1)
    with (
        receiver() as (url, heard),
        daemon(
            on_disk=True,
            LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
            LEADLINE_LOG__LEVEL="warning",
        ) as running,
    ):
        running.start()
        running.sign_in()
        targets = {_monitor(running, target): target for target in _targets(running, url)}
        time.sleep(INTERVAL_SECONDS + 2)
        stopped: dict[str, float] = {}
        for uid, target in targets.items():
            time.sleep(chance.uniform(0, 1.5))
            stopped[uid] = time.time()
            target.close()
        until = time.monotonic() + INTERVAL_SECONDS + 10
        while len(heard) < TARGETS and time.monotonic() < until:
            time.sleep(0.2)
        return {
            "told_of": len(heard),
            "after_the_stop_s": _spread([heard[uid] - stopped[uid] for uid in heard]),
            "after_the_failing_check_ms": _spread(
                [1_000 * (heard[uid] - at) for uid, at in _failed(running).items() if uid in heard]
            ),
        }


def _targets(running: Daemon, url: str) -> list[Target]:
    (organization,) = running.api("GET", "/organizations")
    running.api("POST", f"/organizations/{organization['id']}/webhooks", {"url": url})
    return [Target() for _ in range(TARGETS)]


def _monitor(running: Daemon, target: Target) -> str:
    (organization,) = running.api("GET", "/organizations")
    (project,) = running.api("GET", f"/organizations/{organization['id']}/projects")
    body = {
        "name": f"port {target.port}",
        "type": "tcp",
        "target": f"127.0.0.1:{target.port}",
        "interval_seconds": INTERVAL_SECONDS,
        "timeout_seconds": 5,
    }
    return str(running.api("POST", f"/projects/{project['id']}/monitors", body)["id"])


def _failed(running: Daemon) -> dict[str, float]:
    """When the check that failed first had ended, by monitor."""
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        rows = connection.execute(
            "select m.uid::text, extract(epoch from o.began_at) + h.latency_ms / 1000.0"
            " from outages o join monitors m on m.id = o.monitor"
            " join heartbeats h on h.monitor = o.monitor and h.ts = o.began_at"
        ).fetchall()
    return {uid: float(at) for uid, at in rows}


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 2), "worst": round(max(values), 2)}
