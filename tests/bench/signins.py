"""Authentication: reads with a session, a token and a JWT of a client, and 50 concurrent sign-ins
during checks and other reads.

The daemon reports the lag of its event loop itself (`leadline_event_loop_lag_seconds`)."""

import json
import re
import statistics
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie
from typing import Any

from ..support.openid.provider import CLIENT, SECRET, providing
from ..support.processes.daemon_process import Daemon, daemon
from .client import load
from .seed import add_monitors

AT_ONCE = 50
ROUNDS = 6
# Fifty checks per second of a target that refuses connections, so that probing continues.
MONITORS = 3_000
SECONDS = 10.0
CONNECTIONS = 8

Figures = dict[str, Any]


def credentials() -> Figures:
    with (
        daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running,
        providing() as provider,
    ):
        running.start()
        running.sign_in()
        settings = {
            "enabled": True,
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_url": f"{running.url}/auth/callback",
        }
        running.api("PUT", "/settings/oidc", settings)
        ways = {
            "session": {"Cookie": running.cookie},
            "token": {"Authorization": f"Bearer {_token(running)}"},
            "jwt": {"Authorization": f"Bearer {provider.client_token()}"},
        }
        return {
            name: load(
                [running.port],
                [("GET", "/api/v1/me", headers)],
                connections=CONNECTIONS,
                seconds=SECONDS,
            )
            for name, headers in ways.items()
        }


def signins() -> Figures:
    limit = {"LEADLINE_LOCAL__LOGIN_RATE_LIMIT_PER_MINUTE": "600"}
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning", **limit) as running:
        running.start()
        running.sign_in()
        quiet = _lateness(running, lambda: time.sleep(SECONDS))
        add_monitors(running.dsn, MONITORS, target="http://127.0.0.1:9/", interval_seconds=60)
        probing = _lateness(running, lambda: time.sleep(SECONDS))
        took: list[float] = []
        busy = _lateness(running, lambda: took.extend(_rounds(running)))
        return {
            "signed_in": len(took),
            "signin_ms_p50_p99_max": _spread(took),
            "loop_late_up_to_ms": {
                "idle": quiet,
                "probing": probing,
                "while_50_sign_in": busy,
            },
        }


def _rounds(running: Daemon) -> list[float]:
    took: list[float] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(ROUNDS):
            took += pool.map(lambda _: _sign_in(running), range(AT_ONCE))
    return took


def _sign_in(running: Daemon) -> float:
    body = json.dumps({"username": "admin@localhost", "password": running.password}).encode()
    request = urllib.request.Request(f"{running.url}/auth/local/login", body, method="POST")
    request.add_header("Content-Type", "application/json")
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        jar = SimpleCookie(answer.headers.get("set-cookie", ""))
    assert "leadline_session" in jar
    return time.perf_counter() - began


def _lateness(running: Daemon, work: Callable[[], object]) -> dict[str, float]:
    """The share of wake-ups per upper limit of the lag, in percent, during `work`."""
    before = _wakes(running)
    work()
    after = _wakes(running)
    seen = {bound: after[bound] - before[bound] for bound in after}
    whole = seen["+Inf"] or 1
    return {
        bound if bound == "+Inf" else f"{float(bound) * 1000:g}": round(100 * count / whole, 2)
        for bound, count in seen.items()
    }


def _wakes(running: Daemon) -> dict[str, int]:
    _, _, text = running.raw("GET", "/metrics")
    found = re.findall(
        r'leadline_event_loop_lag_seconds_bucket\{le="([^"]+)"\} ([0-9.]+)', text.decode()
    )
    return {bound: int(float(count)) for bound, count in found}


def _spread(took: list[float]) -> list[float]:
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return [round(1000 * each, 1) for each in (cuts[49], cuts[98], max(took))]


def _token(running: Daemon) -> str:
    organization = running.api("GET", "/organizations")[0]["id"]
    body = {"name": "bench", "role": "viewer"}
    made = running.api("POST", f"/organizations/{organization}/tokens", body)
    return str(made["token"])
