"""A real Alertmanager and a real Prometheus open and resolve incidents of a running Leadline."""

import base64
import json
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.peers.json_receiver import json_receiver
from tests.support.peers.real_servers import HOST, listens, open_folder, running
from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port

from .conftest import eventually

pytestmark = [pytest.mark.needs("prometheus-alertmanager")]
_numbers = count(1)

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


@dataclass
class Place:
    """A project that receives alerts; its token has the name of the project."""

    leadline: Daemon
    organization: str
    project: str
    name: str

    def token(self) -> str:
        body = {"name": self.name, "role": "editor", "project_id": self.project}
        path = f"/organizations/{self.organization}/tokens"
        return str(self.leadline.api("POST", path, body)["token"])

    def incidents(self) -> Any:
        return self.leadline.api("GET", f"/projects/{self.project}/incidents")

    def statuses(self) -> dict[str, str]:
        return {incident["title"]: incident["status"] for incident in self.incidents()}


@pytest.fixture
def place(shared: Daemon) -> Place:
    """Each test has its own project."""
    organization = shared.api("GET", "/organizations")[0]["id"]
    name = f"alerts-{next(_numbers)}"
    body = {"name": name, "slug": name}
    made = shared.api("POST", f"/organizations/{organization}/projects", body)
    return Place(shared, organization, made["id"], name)


@contextmanager
def alertmanager(place: Place, most: int = 0) -> Iterator[int]:
    """Runs an Alertmanager that notifies Leadline and yields its port; `most` limits the alerts of
    a group, 0 is no limit.
    """
    port = free_port()
    with open_folder() as folder:
        config = folder / "alertmanager.yml"
        config.write_text(
            _CONFIG.format(
                url=place.leadline.url, project=place.project, token=place.token(), most=most
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


# The start of every alert of this file; Alertmanager stores milliseconds.
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


@pytest.mark.soak
def test_a_repeated_alert_opens_no_second_incident(place: Place) -> None:
    with alertmanager(place) as port:
        post(port, alert("Latency"), alert("Errors"))
        firing = {"Latency is high": "investigating", "Errors is high": "investigating"}
        eventually(lambda: place.statuses() == firing)
        found = {i["title"]: i for i in place.incidents()}["Errors is high"]
        assert (found["impact"], found["source"]) == ("critical", "api")
        assert len(found["external_key"]) == 16
        assert datetime.fromisoformat(found["started_at"]) == BEGAN
        # Alertmanager repeats the notification of the group in the meantime.
        post(port, alert("Errors", ended=True))
        eventually(lambda: place.statuses()["Errors is high"] == "resolved")
        assert place.statuses()["Latency is high"] == "investigating"
        assert len(place.incidents()) == 2
    written = place.leadline.api("GET", f"/organizations/{place.organization}/audit")
    acts = [entry["action"] for entry in written if entry["actor_name"] == place.name]
    assert sorted(acts) == ["incident.create", "incident.create", "incident.status"]


def test_the_alerts_of_a_truncated_group_are_accepted(place: Place) -> None:
    with alertmanager(place, most=1) as port:
        post(port, alert("A"), alert("B"), alert("C"))
        eventually(lambda: len(place.incidents()) == 1)
        line = "truncated a group"
        eventually(lambda: line in place.leadline.log.read_text())


@pytest.fixture
def pager() -> Iterator[tuple[Daemon, str, list[Any]]]:
    """Yields a Leadline, the URL of a gateway for SMS, and the requests that the gateway got."""
    got: list[Any] = []

    with (
        json_receiver(lambda _, document: got.append(document)) as url,
        daemon(
            LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
            LEADLINE_SERVER__PUBLIC_BASE_URL="https://leadline.example.com",
            LEADLINE_SECURITY__ENCRYPTION_KEY=base64.b64encode(b"k" * 32).decode(),
        ) as running_,
    ):
        running_.start()
        running_.sign_in()
        yield running_, f"{url}/sms", got


def on_call(leadline: Daemon, project: str, gateway: str, got: list[Any]) -> str:
    """Verifies a phone of the user, who is then on call. Returns the escalation policy."""
    sms = {"url": gateway, "body": '{"to": "{to}", "text": "{text}"}'}
    leadline.api("PUT", "/settings/gateway", {"provider": "http", "sms": sms})
    body = {"kind": "sms", "label": "mobile", "config": {"to": "+49 30 123456"}}
    method = leadline.api("POST", "/me/contact-methods", body)["id"]
    assert leadline.api("POST", f"/me/contact-methods/{method}/code")["ok"] is True
    code = re.search(r"Your code is ([0-9]{6})", got.pop()["text"])
    assert code is not None
    leadline.api("POST", f"/me/contact-methods/{method}/verify", {"code": code[1]})
    me = leadline.api("GET", "/me")["user"]["id"]
    shift = {"shift_seconds": 86_400, "anchor_at": "2026-01-05T09:00:00Z"}
    home = f"/projects/{project}"
    days = {"name": "Days", "participants": [me], **shift}
    schedule = leadline.api("POST", f"{home}/oncall-schedules", days)["id"]
    steps = [{"after_seconds": 0, "targets": [{"type": "schedule", "id": schedule}]}]
    policy = {"name": "Night", "steps": steps}
    return str(leadline.api("POST", f"{home}/escalation-policies", policy)["id"])


def answered(leadline: Daemon, text: str, place: Place) -> None:
    """Acknowledges by the link of a message, which a mail scanner has opened before."""
    found = re.search(r"Answer: https://leadline\.example\.com(/answer/[A-Za-z0-9_-]+)\n", text)
    assert found is not None
    incident = {one["title"]: one for one in place.incidents()}["Errors is high"]
    for _ in range(2):
        with urllib.request.urlopen(f"{leadline.url}{found[1]}", timeout=10) as answer:
            assert "Errors is high" in answer.read().decode()
    assert "acknowledged_at" not in leadline.api("GET", f"/incidents/{incident['id']}")
    request = urllib.request.Request(f"{leadline.url}{found[1]}", b"act=acknowledge")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert "The escalation has stopped." in answer.read().decode()
    seen = leadline.api("GET", f"/incidents/{incident['id']}")
    assert seen["acknowledged_by_name"] == leadline.api("GET", "/me")["user"]["display_name"]


def test_an_alert_pages_the_person_on_call_by_its_route(
    pager: tuple[Daemon, str, list[Any]],
) -> None:
    leadline, gateway, got = pager
    organization = leadline.api("GET", "/organizations")[0]["id"]
    body = {"name": "alerts", "slug": "alerts"}
    project = leadline.api("POST", f"/organizations/{organization}/projects", body)["id"]
    place = Place(leadline, organization, project, "alerts")
    policy = on_call(leadline, project, gateway, got)
    routes = {
        "routes": [{"matchers": 'team="shop", alertname!="Quiet"', "escalation_policy_id": policy}],
    }
    path = f"/projects/{project}/alert-routes"
    sample = {**routes, "labels": {"team": "shop", "alertname": "Errors"}}
    assert leadline.api("POST", f"{path}/test", sample)["outcome"] == "route"
    leadline.api("PUT", path, routes)
    with alertmanager(place) as port:
        post(port, alert("Errors"), alert("Quiet"))
        (page,) = eventually(lambda: list(got))
        assert page["to"] == "+4930123456"
        assert page["text"].startswith("Errors is high\n")
        eventually(lambda: len(place.incidents()) == 2)
        answered(leadline, page["text"], place)
        unrouted = {one["title"]: one.get("unrouted") for one in place.incidents()}
        assert unrouted == {"Errors is high": None, "Quiet is high": True}
        post(port, alert("Errors", ended=True))
        eventually(lambda: len(got) == 2)
        assert "Errors" in got[1]["text"]
        assert len(got) == 2


_RULES = """
groups:
- name: shop
  interval: 1s
  rules:
  - alert: Briefly
    expr: vector({value}) > 0
    labels: {{severity: warning}}
    annotations: {{summary: The shop is closed}}
"""


@contextmanager
def prometheus(
    folder: Path, rules: str, alertmanager_port: int
) -> Iterator["subprocess.Popen[bytes]"]:
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
        # Prometheus discovers Alertmanager after its first evaluations.
        "--rules.alert.resend-delay=1s",
    ]
    with running(command, folder / "log", lambda: listens(port)) as process:
        yield process


@pytest.mark.needs("prometheus")
def test_a_prometheus_rule_opens_and_resolves_an_incident(place: Place) -> None:
    with alertmanager(place) as port, open_folder() as folder:
        with prometheus(folder, _RULES.format(value=1), port) as process:
            (found,) = eventually(place.incidents)
            assert (found["title"], found["impact"]) == ("The shop is closed", "minor")
            (folder / "rules.yml").write_text(_RULES.format(value=0))
            process.send_signal(signal.SIGHUP)
            eventually(lambda: place.statuses() == {found["title"]: "resolved"}, 60)
