"""Edits during checks: the time that monitors of another organization wait for their next run."""

import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from ..support.processes.daemon_process import Daemon, daemon
from .target import QuietHandler, serve

WATCHED = 20
INTERVAL_SECONDS = 5
CLIENTS = 8
SECONDS = 30.0
BUNDLE = 5_000

Figures = dict[str, Any]


class _Target(ThreadingHTTPServer):
    """Notes when each path was asked for."""

    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: dict[str, list[float]] = {}


class _Answer(QuietHandler):
    server: _Target

    def do_GET(self) -> None:
        self.server.asked.setdefault(self.path, []).append(time.monotonic())
        self.answer(200)


class _Watch:
    """The longest time without a check of a watched monitor, in seconds, over a stretch of time."""

    def __init__(self, target: _Target) -> None:
        self._target = target

    def during(self, work: Callable[[], Any]) -> Figures:
        began = time.monotonic()
        found = work()
        ended = time.monotonic()
        # A delayed run shows in the first interval after the work.
        time.sleep(2 * INTERVAL_SECONDS)
        figures = {"seconds": round(ended - began, 1), "longest_gap_s": self._gap(began)}
        return figures if found is None else {**figures, "made": found}

    def _gap(self, began: float) -> float:
        """Also of a monitor that was not asked any more, and from the last run before the work."""
        until = time.monotonic()
        longest = 0.0
        for times in self._target.asked.values():
            before = [at for at in times if at <= began][-1:]
            seen = [*before, *(at for at in times if at > began), until]
            longest = max(longest, *(b - a for a, b in pairwise(seen)))
        return round(longest, 2)


def edits() -> Figures:
    """The target is 5.3 s: an interval of 5 s and 0.3 s."""
    with serve(_Target()) as target, daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        running.sign_in()
        port = target.server_address[1]
        other = _project(running, "other")
        for number in range(WATCHED):
            running.api(
                "POST",
                f"/projects/{other}/monitors",
                {
                    "name": f"w{number}",
                    "type": "http",
                    "target": f"http://127.0.0.1:{port}/{number}",
                    "interval_seconds": INTERVAL_SECONDS,
                    "timeout_seconds": INTERVAL_SECONDS,
                },
            )
        time.sleep(3 * INTERVAL_SECONDS)
        watch = _Watch(target)
        busy = _project(running, "busy")
        bundle = _bundle(running, busy)
        nothing = {**bundle, "monitors": {}}
        return {
            "idle": watch.during(lambda: time.sleep(SECONDS)),
            "edits_40": watch.during(lambda: _create(running, busy, 40)),
            "edits_400": watch.during(lambda: _create(running, busy, 400)),
            "patches_40": watch.during(lambda: _patch(running, busy, 40)),
            "patches_400": watch.during(lambda: _patch(running, busy, 400)),
            "plan_5000": watch.during(lambda: _post(running, busy, "plan", bundle)),
            "apply_5000": watch.during(lambda: _post(running, busy, "apply", bundle)),
            "export_5000": watch.during(lambda: _export(running, busy)),
            "orphan_5000": watch.during(lambda: _post(running, busy, "apply", nothing)),
            "delete_project": watch.during(lambda: _delete_project(running, busy)),
        }


def _project(running: Daemon, slug: str) -> str:
    """A project of an organization of its own."""
    organization = running.api("POST", "/organizations", {"name": slug, "slug": slug})["id"]
    path = f"/organizations/{organization}/projects"
    made: str = running.api("POST", path, {"name": slug, "slug": slug})["id"]
    return made


def _monitor(number: int) -> dict[str, Any]:
    return {
        "name": f"m{number}",
        "type": "http",
        "target": "http://127.0.0.1:9/",
        "interval_seconds": 86_400,
    }


def _create(running: Daemon, project: str, a_second: int) -> int:
    """Creates monitors with CLIENTS clients, at `a_second` or as fast as the server allows. Returns
    the number."""
    began = time.monotonic()
    counts = [0] * CLIENTS

    def client(number: int) -> None:
        while (now := time.monotonic() - began) < SECONDS:
            if counts[number] * CLIENTS > now * a_second:
                time.sleep(0.002)
                continue
            running.api("POST", f"/projects/{project}/monitors", _monitor(counts[number]))
            counts[number] += 1

    _in_threads(client)
    return sum(counts)


def _in_threads(client: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _bundle(running: Daemon, project: str) -> dict[str, Any]:
    found = running.api("GET", f"/projects/{project}/bundle")
    monitors = {f"b{number}": _monitor(number) for number in range(BUNDLE)}
    return {**found, "format": 2, "monitors": monitors, "services": {}}


def _post(running: Daemon, project: str, verb: str, bundle: dict[str, Any]) -> None:
    running.api("POST", f"/projects/{project}/bundle/{verb}", bundle)


def _export(running: Daemon, project: str) -> None:
    running.api("GET", f"/projects/{project}/bundle")


def _delete_project(running: Daemon, project: str) -> int:
    """Waits until the operation has ended. Returns how many objects it deleted."""
    operation = running.api("DELETE", f"/projects/{project}")
    while operation["state"] == "running":
        time.sleep(0.2)
        operation = running.api("GET", f"/operations/{operation['id']}")
    deleted: int = operation["done"]
    return deleted


def _patch(running: Daemon, project: str, a_second: int) -> int:
    """Changes the interval of existing monitors, as `_create`. Returns how many were changed."""
    began = time.monotonic()
    monitors = [one["id"] for one in running.api("GET", f"/projects/{project}/monitors")]
    counts = [0] * CLIENTS

    def client(number: int) -> None:
        while (now := time.monotonic() - began) < SECONDS:
            if counts[number] * CLIENTS > now * a_second:
                time.sleep(0.002)
                continue
            monitor = monitors[(counts[number] * CLIENTS + number) % len(monitors)]
            body = {"interval_seconds": 86_000 + counts[number] % 400}
            running.api("PATCH", f"/monitors/{monitor}", body)
            counts[number] += 1

    _in_threads(client)
    return sum(counts)
