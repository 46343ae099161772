"""The gate with 200 services and 90 days of data, with all four windows.

Measures a decision with its ledger row, a refusal, a page of a long ledger, and the replay of a
policy over 30 days."""

import json
import os
import signal
import time
from typing import Any

import psycopg
import trio

from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.pools import Isolation
from leadline.storage.gate.queries.gate_evidence import select_facts
from leadline.storage.services.tables.services import select_services

from ..support.processes.daemon_process import Daemon, daemon
from .api import _token
from .client import load
from .seed import add_monitors
from .services import MEMBERS, SERVICES, _clock, _fill, _pool, _timed

MANY = "1000000"
_OTHER_WINDOWS = """
insert into service_targets (org, service, "window", uid, objective, burn_enabled, created_at,
  updated_at)
select org, id, w, gen_random_uuid(), 999000, true, now(), now()
from services, unnest(array['24h', '7d', '90d']) as w
"""
_OTHER_RULES = """
insert into burn_rules (org, uid, service, "window", place, long_seconds, short_seconds, threshold,
  severity)
select org, gen_random_uuid(), service, w, place, long_seconds, short_seconds, threshold, severity
from burn_rules, unnest(array['24h', '7d', '90d']) as w
"""
_SEEN = "update burn_rules set last_verdict = 'clear', evaluated_at = now(), lease_until = now()"
POLICY = {
    "expected_revision": None,
    "schema_version": 2,
    "window_mode": "all",
    "clauses": {
        "budget_exhausted": "block",
        "budget_consumed": "warn",
        "page_burn_firing": "block",
        "ticket_burn_firing": "warn",
        "service_incident_open": "ignore",
    },
    "budget_consumed_percent": 75,
    "max_seal_lag_seconds": 86_400,
    "unknown_behavior": "warn",
}


def gate_90_days() -> dict[str, Any]:
    open_wide = {
        f"LEADLINE_GATE__EVALUATE_{bound}": MANY[:5]
        for bound in (
            "INFLIGHT_PROCESS",
            "INFLIGHT_PRINCIPAL",
            "RATE_PRINCIPAL_PER_MINUTE",
            "RATE_PROCESS_PER_MINUTE",
        )
    }
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="error", **open_wide) as running:
        project, ids = _filled(running)
        base = f"/api/v1/projects/{project}/services"
        headers = {"Authorization": f"Bearer {_token(running)}"}
        asked = [("POST", f"{base}/{uid}/gate", headers) for uid in ids]
        one, three = (
            load([running.port], asked, connections=many, seconds=15.0) for many in (1, 3)
        )
        now = time.time()
        ends = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + s)) for s in (-86_400, 3_600)]
        ranged = f"from={ends[0]}&to={ends[1]}"
        ledger = f"/api/v1/projects/{project}/gate/decisions?{ranged}&limit=50"
        blocks = f"{ledger}&state=BLOCK"
        listed = load([running.port], [("GET", ledger, headers)], connections=1, seconds=5.0)
        filtered = load([running.port], [("GET", blocks, headers)], connections=1, seconds=5.0)
        figures = {
            "asked_by_one": one,
            "asked_by_three": three,
            "ledger_of_50": listed,
            "ledger_of_one_state": filtered,
            "rows": _count(running),
            "replay_30_days_ms": _replayed(running, project, ids[:5]),
        }
        assert running.process is not None
        os.kill(running.process.pid, signal.SIGSTOP)
        try:
            return {**figures, "facts_of_one_ms": trio.run(_facts, running.dsn)}
        finally:
            os.kill(running.process.pid, signal.SIGCONT)


def gate_refused() -> dict[str, Any]:
    """With the bounds of the interface: almost all are turned away."""
    with daemon(LEADLINE_LOG__LEVEL="error") as running:
        running.start()
        running.sign_in()
        organization = running.api("GET", "/organizations")[0]["id"]
        project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
        there = f"/projects/{project}/services"
        uid = running.api("POST", there, {"slug": "shop", "name": "Shop"})["id"]
        headers = {"Authorization": f"Bearer {_token(running)}"}
        asked = [("POST", f"/api/v1{there}/{uid}/gate", headers)]
        return {"refused": load([running.port], asked, connections=1, seconds=5.0)}


def _filled(running: Daemon) -> tuple[str, list[str]]:
    running.start()
    running.sign_in()
    target = "http://127.0.0.1:9/"
    add_monitors(running.dsn, SERVICES * MEMBERS, target=target, interval_seconds=86_400)
    trio.run(_fill, running.dsn)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        for query in (_OTHER_WINDOWS, _OTHER_RULES, _SEEN):
            connection.execute(query)
        connection.execute("vacuum analyze")
    organization = running.api("GET", "/organizations")[0]["id"]
    project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    running.api("PUT", f"/projects/{project}/gate/policy", POLICY)
    listed = running.api("GET", f"/projects/{project}/services")
    return project, [one["service"]["id"] for one in listed]


def _replayed(running: Daemon, project: str, ids: list[str]) -> list[float]:
    found = []
    for uid in ids:
        began = time.perf_counter()
        path = f"/projects/{project}/services/{uid}/gate/policy/replay"
        body = {**POLICY, "budget_consumed_percent": 30}
        said = running.api("POST", path, body)
        assert said["draft"], json.dumps(said)
        found.append(round(1_000 * (time.perf_counter() - began), 1))
    return found


def _count(running: Daemon) -> int:
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        row = connection.execute("select count(*) from gate_decisions").fetchone()
    return row[0] if row else 0


async def _facts(dsn: str) -> dict[str, float]:
    """The part of a decision that reads the database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute("select org, id from services order by id limit 1")
        keys = [ServiceKey((org, service)) for org, service in found]
    async with _pool(dsn) as pool:

        async def once() -> None:
            async with pool.transaction("facts", isolation=Isolation.REPEATABLE_READ) as tx:
                rows = await select_services(tx, keys)
                await select_facts(tx, rows[keys[0]], _clock())

        return await _timed(200, once)
