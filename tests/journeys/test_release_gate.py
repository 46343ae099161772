"""A pipeline releases a demo shop through the gate: allowed, warned, blocked while a bad version
uses up its budget, and fixed by a release with an override.

The hours before are generated as late results, like those of an agent that was cut off, and
processed by the loops of the daemon. No clock is changed.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
import trio

from leadline.storage.core.instant import MINUTE, SECOND, Instant, from_datetime
from leadline.storage.engine.pools import open_pool
from leadline.storage.monitors.queries.monitors import select_monitor
from leadline.storage.results.rules.incoming_result import IncomingResult, ResultSource
from leadline.storage.results.transactions.record_results import record_results
from tests.support.processes.daemon_process import LEADLINE, Daemon, daemon

from .conftest import Nginx, eventually, project_of, status

pytestmark = [pytest.mark.needs("nginx", "curl")]

# The script of a pipeline for one release. AT is its time in the generated past; empty means now.
# It prints how the gate check ended, and releases only if allowed.
PIPELINE = """
set -u
at=${AT:+--occurred-at $AT}
of="--project $PROJECT --service $SERVICE"
change="--kind deploy --source pipeline --external-id $VERSION --ref $VERSION"
$LEADLINE change record $of $change --phase started $at || exit 90
$LEADLINE gate check $of
ended=$?
if [ $ended -ne 0 ]; then
  $LEADLINE change record $of $change --phase cancelled $at || exit 91
  exit $ended
fi
"$DEPLOY" "$VERSION" || exit 92
$LEADLINE change record $of $change --phase succeeded $at || exit 93
"""
# The length of the generated past, and the objective: 3 % of it may be bad.
HOURS = 10
OBJECTIVE = 97.0
POLICY = {
    "schema_version": 2,
    "window_mode": "all",
    "clauses": {
        "budget_exhausted": "block",
        "budget_consumed": "warn",
        "page_burn_firing": "ignore",
        "ticket_burn_firing": "ignore",
        "service_incident_open": "block",
    },
    "budget_consumed_percent": 50,
    "max_seal_lag_seconds": 1800,
    "unknown_behavior": "block",
}


@dataclass
class Shop:
    """`noon` is the start of the journey: all hours are counted back from it."""

    noon: datetime
    leadline: Daemon
    nginx: Nginx
    folder: Path
    project: str
    monitor: str
    service: str
    token: str

    @property
    def path(self) -> str:
        return f"/projects/{self.project}/services/{self.service}"

    def ago(self, minutes: float) -> datetime:
        return self.noon - timedelta(minutes=minutes)

    def release(self, version: str, at: datetime | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "LEADLINE": LEADLINE,
            "LEADLINE_URL": self.leadline.url,
            "LEADLINE_TOKEN": self.token,
            "PROJECT": self.project,
            "SERVICE": self.service,
            "VERSION": version,
            "AT": "" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "DEPLOY": str(self.folder / "deploy"),
        }
        return subprocess.run(
            ["bash", "-c", PIPELINE], env=environment, capture_output=True, text=True
        )

    def live(self, from_: float, until: float, *, up: bool) -> None:
        """Records late results, one per minute, between these numbers of minutes ago."""
        first, last = from_datetime(self.ago(from_)), from_datetime(self.ago(until))
        trio.run(_record, self.leadline.dsn, UUID(self.monitor), first, last, up)

    def bad_seconds(self) -> float:
        found = self.leadline.api("GET", f"{self.path}/reliability?window=24h")
        return float(found["durations"]["bad_us"]) / 1e6 if not found["repairing"] else -1.0

    def change(self, version: str) -> Any:
        from_, to = self.ago(60 * (HOURS + 2)), self.ago(-60)
        listed = self.leadline.api(
            "GET", f"{self.path}/changes?from={from_:%Y-%m-%dT%H:%M:%SZ}&to={to:%Y-%m-%dT%H:%M:%SZ}"
        )
        (found,) = [one for one in listed["items"] if one["external_id"] == version]
        return found


async def _record(dsn: str, monitor: UUID, first: Instant, last: Instant, up: bool) -> None:
    now = from_datetime(datetime.now(UTC))
    async with open_pool(dsn, name="past", size=1, clock=lambda: now) as pool:
        async with pool.transaction("past") as tx:
            row = await select_monitor(tx, monitor)
            assert row is not None
            arrivals = [
                IncomingResult(
                    org=row.org,
                    monitor=row.id,
                    shard=row.shard,
                    ts=Instant(at),
                    up=up,
                    source=ResultSource.BACKFILL,
                    reach_us=120 * SECOND,
                )
                for at in range(first, last, MINUTE)
            ]
            await record_results(tx, arrivals)


@pytest.fixture
def shop(nginx: Nginx, tmp_path: Path) -> Iterator[Shop]:
    often = "1000"
    noon = datetime.now(UTC).replace(second=0, microsecond=0)
    with daemon(
        LEADLINE_GATE__EVALUATE_RATE_PRINCIPAL_PER_MINUTE=often,
        LEADLINE_GATE__EVALUATE_RATE_PROCESS_PER_MINUTE=often,
    ) as leadline:
        leadline.start()
        leadline.sign_in()
        project = project_of(leadline)
        monitor = leadline.api(
            "POST",
            f"/projects/{project}/monitors",
            {"name": "Shop", "type": "http", "target": nginx.url, "interval_seconds": 5},
        )["id"]
        eventually(lambda: status(leadline, monitor) == "up", 10)
        # The monitor has existed for hours.
        with psycopg.connect(leadline.dsn, autocommit=True) as connection:
            begun = [noon - timedelta(hours=HOURS)]
            connection.execute("update monitor_terms set from_at = %s", begun)
        service = leadline.api(
            "POST", f"/projects/{project}/services", {"slug": "shop", "name": "Shop"}
        )["id"]
        (organization,) = leadline.api("GET", "/organizations")
        body = {"name": "ci", "role": "editor", "actions": ["gate:evaluate", "change:record"]}
        token = leadline.api("POST", f"/organizations/{organization['id']}/tokens", body)["token"]
        deploy = tmp_path / "deploy"
        deploy.write_text(
            f"""#!/bin/sh -e
code=200; case $1 in *bad*) code=500;; esac
sed -i "s/return [0-9]* [^;]*;/return $code $1;/" {nginx.config}
kill -HUP $(cat {nginx.config.parent}/pid)
"""
        )
        deploy.chmod(0o755)
        yield Shop(noon, leadline, nginx, tmp_path, project, monitor, service, token)


def test_releases_are_allowed_warned_blocked_and_fixed(shop: Shop) -> None:
    leadline = shop.leadline
    unasked = shop.release("v0")
    assert unasked.returncode == 4, "without a policy the gate does not allow"
    shop.live(60 * HOURS, 44, up=True)
    declare(shop)
    eventually(lambda: leadline.api("GET", f"{shop.path}/reliability?window=24h").get("budget"), 60)
    eventually(lambda: shop.bad_seconds() >= 0, 60)

    for number, hours in enumerate((8, 2), start=1):
        done = shop.release(f"v{number}", shop.ago(60 * hours))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("ALLOW") >= 1

    # The next release is bad. It uses a third of an hour of the budget, which becomes known in two
    # halves.
    assert shop.release("v6-bad", shop.ago(45)).returncode == 0
    eventually(lambda: status(leadline, shop.monitor) == "down", 20)
    shop.live(44, 34, up=False)
    eventually(lambda: shop.bad_seconds() >= 600, 60)
    incident = eventually(lambda: open_incident(shop), 90)
    blocked = shop.release("v7")
    assert blocked.returncode == 2
    assert "incident" in blocked.stdout
    # The incident is resolved by a person: only the budget is left as a reason.
    body = {"status": "resolved", "body": "We know, and mend it."}
    leadline.api("POST", f"/incidents/{incident}/updates", body)
    warned = shop.release("v6b-bad", shop.ago(34))
    assert warned.returncode == 0, warned.stdout + warned.stderr
    assert "WARN" in warned.stdout
    shop.live(34, 24, up=False)
    eventually(lambda: shop.bad_seconds() >= 1200, 60)
    blocked = shop.release("v8")
    assert blocked.returncode == 2
    assert "BLOCK" in blocked.stdout

    override(shop)
    mended = shop.release("v9")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert "The release is the fix." in mended.stdout
    eventually(lambda: status(leadline, shop.monitor) == "up", 20)

    check_records(shop, incident)


def declare(shop: Shop) -> None:
    """Sets the declaration, the objective, the paging target and the gate policy."""
    leadline = shop.leadline
    declaration = {
        "expected_revision": 0,
        "monitors": [shop.monitor],
        "sli": [shop.monitor],
        "backfill_from": f"{shop.ago(60 * HOURS):%Y-%m-%dT%H:%M:%SZ}",
    }
    leadline.api("PUT", f"{shop.path}/declaration", declaration)
    # The declaration is moved some minutes into the past: a service has its first figure after that
    # much is sealed.
    with psycopg.connect(leadline.dsn) as connection:
        at = {"at": shop.ago(5)}
        connection.execute("update service_revisions set effective_at = %(at)s", at)
        connection.execute("delete from service_epochs")
        connection.execute(
            "update services set materialization_start = %(at)s, sealed_through = %(at)s", at
        )
    aim = {"window": "24h", "objective": OBJECTIVE}
    leadline.api("PUT", f"{shop.path}/sla-target", aim)
    channel = {"type": "webhook", "name": "Ops", "config": {"url": "https://ops.example.com/"}}
    there = f"/projects/{shop.project}"
    told = leadline.api("POST", f"{there}/notification-channels", channel)["id"]
    steps = [{"after_seconds": 0, "targets": [{"type": "channel", "id": told}]}]
    ladder = {"name": "Ops", "repeat_last": False, "steps": steps}
    policy = leadline.api("POST", f"{there}/escalation-policies", ladder)["id"]
    leadline.api("PUT", f"{shop.path}/escalation-policy", {"escalation_policy_id": policy})
    speaks = {"owns_paging": True, "page_on": ["down"], "confirm_evaluations": 1}
    leadline.api("PATCH", f"{shop.path}/alerting", speaks)
    leadline.api("PUT", f"{shop.path}/gate/policy", {"expected_revision": None, **POLICY})


def open_incident(shop: Shop) -> str | None:
    listed = shop.leadline.api("GET", f"/projects/{shop.project}/incidents")
    mine = [one for one in listed if one.get("service_id") == shop.service]
    return next((one["id"] for one in mine if one["status"] != "resolved"), None)


def override(shop: Shop) -> None:
    body = {
        "policy_revision": 1,
        "reason": "The release is the fix.",
        "expires_at": (datetime.now(UTC) + timedelta(hours=4)).isoformat(),
    }
    shop.leadline.api("POST", f"{shop.path}/gate/override", body)


def check_records(shop: Shop, incident: str) -> None:
    """Checks the comparison, the incident and the decisions after the journey."""
    leadline = shop.leadline
    compared = leadline.api(
        "GET", f"{shop.path}/changes/compare?source=pipeline&external_id=v6-bad&horizon=15m"
    )
    assert compared["before"]["availability"] == 100
    assert compared["after"]["availability"] < 20
    assert compared["delta"] < -80
    preceding = leadline.api("GET", f"/projects/{shop.project}/incidents/{incident}/changes")
    found = {one["change"]["external_id"]: one for one in preceding["items"]}
    assert found["v6-bad"]["role"] == "own_service"
    assert found["v6-bad"]["lag_seconds"] >= 44 * 60
    assert [one["lag_seconds"] for one in preceding["items"]] == sorted(
        one["lag_seconds"] for one in preceding["items"]
    )
    assert "v9" not in found, "the change began after the incident"
    bad = shop.change("v6-bad")
    assert [link["incident_id"] for link in bad["incidents"]] == [incident]
    said = json.dumps([compared, preceding, bad]).lower()
    assert "cause" not in said
    ledger = leadline.api(
        "GET",
        f"/projects/{shop.project}/gate/decisions"
        f"?from={shop.ago(60):%Y-%m-%dT%H:%M:%SZ}&to={shop.ago(-60):%Y-%m-%dT%H:%M:%SZ}",
    )["items"]
    states = [one["state"] for one in reversed(ledger)]
    assert states == ["NOT_CONFIGURED", *["ALLOW"] * 3, "BLOCK", "WARN", "BLOCK", "BLOCK"]
    assert ledger[0]["action"] == "ALLOW"
    assert ledger[0]["override_id"]
