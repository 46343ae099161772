"""Roles as processes of their own: the check rate of one, two and three workers, the cost of a
claim, and the cost of idle agents.

All of them run on one machine with PostgreSQL and a local nginx, so the ratios mean more than the
figures."""

import base64
import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import trio

from ...support.processes.daemon_process import Daemon
from ..pushes import _database, _process
from ..seed import add_monitors
from ..target import nginx
from ..usage import cpu_seconds
from .checks import _first_round, _seen, _stored

TOKEN = "token-of-the-bench-1234"
Figures = dict[str, Any]


def _environment(dsn: str) -> dict[str, str]:
    return {
        "LEADLINE_DATABASE__DSN": dsn,
        "LEADLINE_SECURITY__ENCRYPTION_KEY": base64.b64encode(b"k" * 32).decode(),
        "LEADLINE_LOG__LEVEL": "warning",
        "LEADLINE_PULL__TOKEN": TOKEN,
        "LEADLINE_PROBER__CONCURRENCY": "200",
    }


def with_workers(workers: int, monitors: int, interval_seconds: int = 60) -> Callable[[], Figures]:
    """A scheduler and `workers` workers."""

    def bench() -> Figures:
        with nginx() as target, _database() as dsn, ExitStack() as stack:
            environment = _environment(dsn)
            everybody = [stack.enter_context(_process("scheduler", environment))]
            everybody += [
                stack.enter_context(_process("worker", environment)) for _ in range(workers)
            ]
            add_monitors(dsn, monitors, target=target.plain, interval_seconds=interval_seconds)
            first = _first_round(dsn, monitors, interval_seconds * 1.2)
            time.sleep(5)
            began, before = time.time(), [_own(one) for one in everybody]
            stored = _stored(dsn)
            time.sleep(45)
            took, stored = time.time() - began, _stored(dsn) - stored
            spent = [_own(one) - was for one, was in zip(everybody, before, strict=True)]
            return {
                "workers": workers,
                "due_a_second": round(monitors / interval_seconds, 1),
                "stored_a_second": round(stored / took, 1),
                "cores_scheduler_workers": [round(one / took, 2) for one in spent],
                "first_round_s": first,
                **_seen(dsn, began),
            }

    return bench


def _own(running: Daemon) -> float:
    return cpu_seconds(running)["daemon"]


def claims() -> Figures:
    """A client that claims fifty at a time of 3 000 monitors at 30 s; and how early it has them."""
    with _database() as dsn, ExitStack() as stack:
        environment = _environment(dsn)
        stack.enter_context(_process("scheduler", environment))
        api = stack.enter_context(_process("api", environment))
        add_monitors(dsn, 3_000, target="http://127.0.0.1:1/", interval_seconds=30)
        time.sleep(5)
        took, early, given = [], [], 0
        until = time.monotonic() + 20
        while time.monotonic() < until:
            began = time.perf_counter()
            jobs = _claim(api, 50)
            if jobs:
                took.append(time.perf_counter() - began)
                given += len(jobs)
                now = time.time()
                early += [_instant(job["due_at"]) - now for job in jobs]
        return {
            "jobs_a_second": round(given / 20, 1),
            "claim_ms_p50_p99": _percentiles(took),
            "early_ms_p50_p1": [round(_part(early, part) * 1000) for part in (0.5, 0.01)],
        }


def _claim(api: Daemon, most: int) -> list[dict[str, Any]]:
    url = f"{api.url}/api/v1/agent/jobs?region=core&wait=5&max={most}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())["jobs"]
    return found


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _part(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def _percentiles(seconds: list[float]) -> list[float]:
    return [round(_part(seconds, part) * 1000, 1) for part in (0.5, 0.99)]


def idle_agents(agents: int = 200, seconds: float = 30.0) -> Figures:
    """Measures `agents` agents that wait for work in one region without monitors."""
    with _database() as dsn, ExitStack() as stack:
        environment = _environment(dsn)
        stack.enter_context(_process("scheduler", environment))
        api = stack.enter_context(_process("api", environment))
        add_monitors(dsn, 1, target="http://127.0.0.1:1/", interval_seconds=86_400)
        alone = _spent_by(api, seconds, 0)
        crowd = _spent_by(api, seconds, agents)
        return {
            "agents": agents,
            "cores_without": alone,
            "cores_with": crowd,
            "cpu_ms_a_second_and_agent": round((crowd - alone) * 1000 / agents, 3),
        }


def _spent_by(api: Daemon, seconds: float, agents: int) -> float:
    async def wait(number: int) -> None:
        head = (
            f"GET /api/v1/agent/jobs?region=core&wait=20 HTTP/1.1\r\nhost: x\r\n"
            f"authorization: Bearer {TOKEN}\r\n"
            f"x-leadline-agent: 00000000-0000-4000-8000-{number:012d}\r\n\r\n"
        )
        while True:
            stream = await trio.open_tcp_stream("127.0.0.1", api.port)
            async with stream:
                await stream.send_all(head.encode())
                await stream.receive_some()

    async def all_wait() -> float:
        async with trio.open_nursery() as nursery:
            for number in range(agents):
                nursery.start_soon(wait, number)
            await trio.sleep(3)
            before = _own(api)
            await trio.sleep(seconds)
            spent = _own(api) - before
            nursery.cancel_scope.cancel()
        return spent

    return round(trio.run(all_wait) / seconds, 3)
