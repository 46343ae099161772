"""Lists of 100 and of 1 000 monitors with a token, by one connection and by sixteen for the same
list, with the transactions of each request."""

from typing import Any

import psycopg

from ..support.processes.daemon_process import Daemon, daemon
from .api import _HISTORY, _token
from .client import load
from .seed import add_monitors
from .usage import cpu_seconds, per_thousand, transactions

SECONDS = 10.0
WARM_SECONDS = 1.0
# Results of each monitor that are not packed.
RESULTS = 50


def lists() -> dict[str, Any]:
    return {f"monitors_{count}": _of(count) for count in (100, 1_000)}


def _of(monitors: int) -> dict[str, Any]:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        running.sign_in()
        add_monitors(running.dsn, monitors, target="http://127.0.0.1:9/", interval_seconds=86_400)
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            connection.execute(_HISTORY, {"count": RESULTS})
            connection.execute("update monitor_states set status = 'up'")
            connection.execute("vacuum analyze")
        organization = running.api("GET", "/organizations")[0]["id"]
        project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
        path = f"/api/v1/projects/{project}/monitors"
        headers = {"Authorization": f"Bearer {_token(running)}"}
        return {
            f"connections_{count}": _measured(running, path, headers, count) for count in (1, 16)
        }


def _measured(running: Daemon, path: str, headers: dict[str, str], count: int) -> dict[str, Any]:
    begun, before = transactions(running), cpu_seconds(running)
    figures = load(
        [running.port],
        [("GET", path, headers)],
        connections=count,
        seconds=SECONDS,
        warm_seconds=WARM_SECONDS,
    )
    answers = int(figures["a_second"] * (SECONDS + WARM_SECONDS))
    made = (transactions(running) - begun).total()
    return {
        **figures,
        "cpu_s_per_1000": per_thousand(before, cpu_seconds(running), answers),
        "transactions_each": round(made / max(answers, 1), 2),
    }
