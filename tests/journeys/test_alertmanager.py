"""A real Alertmanager, and a Prometheus behind it, open and end incidents of a running Leadline."""

import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import Daemon
from tests.ports import free_port
from tests.probes.real_servers import HOST, listens, open_folder, running

from .conftest import eventually, project_of

pytestmark = [pytest.mark.needs("prometheus-alertmanager")]

_CONFIG = """
global: {{resolve_timeout: 1s}}
route: {{receiver: leadline, group_by: [team], group_wait: 0s, group_interval: 1s,
  repeat_interval: 1s}}
receivers:
- name: leadline
  webhook_configs:
  - url: "{url}/api/v1/projects/{project}/alerts/alertmanager"
    send_resolved: true
    max_alerts: {most}
    http_config: {{authorization: {{credentials: "{token}"}}}}
"""


def program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None
    return found


def token_of(leadline: Daemon) -> str:
    org = leadline.api("GET", "/organizations")[0]["id"]
    body = {"name": "alerts", "role": "editor", "project_id": project_of(leadline)}
    return str(leadline.api("POST", f"/organizations/{org}/tokens", body)["token"])


@contextmanager
def alertmanager(leadline: Daemon, most: int = 0) -> Iterator[int]:
    """The port of one that tells Leadline; `most` of a group, 0 for all."""
    port = free_port()
    with open_folder() as folder:
        config = folder / "alertmanager.yml"
        config.write_text(
            _CONFIG.format(
                url=leadline.url, project=project_of(leadline), token=token_of(leadline), most=most
            )
        )
        command = [
            program("prometheus-alertmanager"),
            f"--config.file={config}",
            f"--storage.path={folder}/data",
            f"--web.listen-address={HOST}:{port}",
            "--cluster.listen-address=",
        ]
        with running(command, folder / "log", lambda: listens(port)):
            yield port


def post(port: int, *alerts: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"http://{HOST}:{port}/api/v2/alerts",
        json.dumps(alerts).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


# When every alert of this file began; Alertmanager keeps milliseconds.
BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)


def alert(name: str, *, minutes: int = 10, ended: bool = False) -> dict[str, Any]:
    now = datetime.now(UTC)
    ends = now if ended else now + timedelta(minutes=minutes)
    return {
        "labels": {"alertname": name, "severity": "critical", "team": "shop"},
        "annotations": {"summary": f"{name} is high", "description": "See the graph."},
        "startsAt": BEGAN.isoformat(),
        "endsAt": ends.isoformat(),
    }


def incidents(leadline: Daemon) -> Any:
    return leadline.api("GET", f"/projects/{project_of(leadline)}/incidents")


def statuses(leadline: Daemon) -> dict[str, str]:
    return {i["title"]: i["status"] for i in incidents(leadline)}


def test_an_alert_fires_and_resolves_and_repeating_it_opens_nothing(leadline: Daemon) -> None:
    with alertmanager(leadline) as port:
        post(port, alert("Latency"), alert("Errors"))
        firing = {"Latency is high": "investigating", "Errors is high": "investigating"}
        eventually(lambda: statuses(leadline) == firing)
        found = {i["title"]: i for i in incidents(leadline)}["Errors is high"]
        assert (found["impact"], found["source"]) == ("critical", "api")
        assert len(found["external_key"]) == 16
        assert datetime.fromisoformat(found["started_at"]) == BEGAN
        # Alertmanager tells the group again and again meanwhile.
        post(port, alert("Errors", ended=True))
        eventually(lambda: statuses(leadline)["Errors is high"] == "resolved")
        assert statuses(leadline)["Latency is high"] == "investigating"
        assert len(incidents(leadline)) == 2
    org = leadline.api("GET", "/organizations")[0]["id"]
    written = leadline.api("GET", f"/organizations/{org}/audit")
    acts = [(e["action"], e["actor_name"]) for e in written if e["action"].startswith("incident.")]
    assert sorted(acts) == [
        ("incident.create", "alerts"),
        ("incident.create", "alerts"),
        ("incident.status", "alerts"),
    ]


def test_of_a_group_that_is_cut_what_is_told_is_taken_and_the_rest_is_counted(
    leadline: Daemon,
) -> None:
    with alertmanager(leadline, most=1) as port:
        post(port, alert("A"), alert("B"), alert("C"))
        eventually(lambda: len(incidents(leadline)) == 1)
        line = "left out by its sender"
        eventually(lambda: line in leadline.log.read_text())


_RULES = """
groups:
- name: shop
  interval: 1s
  rules:
  - alert: Briefly
    expr: vector(time()) < {until}
    labels: {{severity: warning}}
    annotations: {{summary: "It is before {until}"}}
"""


@contextmanager
def prometheus(folder: Path, rules: str, alertmanager_port: int) -> Iterator[None]:
    (folder / "rules.yml").write_text(rules)
    (folder / "prometheus.yml").write_text(
        "global: {evaluation_interval: 1s}\n"
        f"rule_files: [{folder}/rules.yml]\n"
        "alerting: {alertmanagers: [{static_configs: "
        f'[{{targets: ["{HOST}:{alertmanager_port}"]}}]}}]}}\n'
    )
    port = free_port()
    command = [
        program("prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={HOST}:{port}",
        # It learns where Alertmanager is after it has begun to judge.
        "--rules.alert.resend-delay=1s",
    ]
    with running(command, folder / "log", lambda: listens(port)):
        yield


@pytest.mark.needs("prometheus")
def test_a_rule_of_prometheus_fires_into_an_incident_and_ends_it(leadline: Daemon) -> None:
    until = int(time.time()) + 15
    with alertmanager(leadline) as port, open_folder() as folder:
        with prometheus(folder, _RULES.format(until=until), port):
            found = eventually(lambda: incidents(leadline))
            assert found[0]["title"] == f"It is before {until}"
            assert found[0]["impact"] == "minor"
            eventually(lambda: statuses(leadline) == {found[0]["title"]: "resolved"}, 60)
