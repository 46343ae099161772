"""From a failure to an acknowledged page: the whole daemon, a real target, receivers of webhooks,
and repeated kills of the daemon.
"""

import http.server
import json
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.support.processes.daemon_process import Daemon, daemon

from .conftest import Nginx, await_instant, await_passes, eventually, project_of, status

pytestmark = [pytest.mark.needs("nginx")]
# The test acknowledges the first page within this time, also on a busy machine.
SECOND_STEP_SECONDS = 8


class Receiver:
    """Stores posted documents; with `refuses` it sometimes answers 500, with `hangs` never."""

    def __init__(self) -> None:
        self.got: list[tuple[float, dict[str, str], bytes]] = []
        self.refused = 0
        self.chance = random.Random(5)
        self.failing = 0.0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, _, body in list(self.got)]

    def events(self) -> list[str]:
        return [document["event"] for document in self.documents()]


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    made: list[Receiver] = []
    servers = []
    for _ in range(2):
        receiver = Receiver()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _taker(receiver))
        receiver.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(receiver)
        servers.append(server)
    yield made
    for server in servers:
        server.shutdown()
        server.server_close()


def _taker(receiver: Receiver) -> type[http.server.BaseHTTPRequestHandler]:
    class Taker(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if receiver.chance.random() < receiver.failing:
                receiver.refused += 1
                self.send_response(500)
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append((time.time(), headers, body))
                self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    return Taker


@pytest.fixture
def leadline() -> Iterator[Daemon]:
    with daemon(LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true") as running:
        running.environment["LEADLINE_SERVER__PUBLIC_BASE_URL"] = running.url
        running.start()
        running.sign_in()
        yield running


def made_webhook(leadline: Daemon, url: str) -> dict[str, Any]:
    (organization,) = leadline.api("GET", "/organizations")
    path = f"/organizations/{organization['id']}/webhooks"
    found: dict[str, Any] = leadline.api("POST", path, {"url": url})
    return found


def made_channel(leadline: Daemon, project: str, name: str, url: str) -> str:
    body = {"type": "webhook", "name": name, "config": {"url": url}}
    made = leadline.api("POST", f"/projects/{project}/notification-channels", body)
    return str(made["id"])


def made_monitor(leadline: Daemon, project: str, url: str, **given: Any) -> str:
    body = {"name": "Shop", "type": "http", "target": url, "interval_seconds": 5}
    body |= {"timeout_seconds": 2, **given}
    return str(leadline.api("POST", f"/projects/{project}/monitors", body)["id"])


def test_an_outage_pages_until_it_is_acknowledged(
    leadline: Daemon, nginx: Nginx, receivers: list[Receiver]
) -> None:
    machines, people = receivers
    project = project_of(leadline)
    webhook = made_webhook(leadline, machines.url)
    channel = made_channel(leadline, project, "on call", people.url)
    policy = leadline.api(
        "POST",
        f"/projects/{project}/escalation-policies",
        {
            "name": "ladder",
            "repeat_last": False,
            "steps": [
                {"after_seconds": 0, "targets": [{"type": "channel", "id": channel}]},
                {
                    "after_seconds": SECOND_STEP_SECONDS,
                    "targets": [{"type": "channel", "id": channel}],
                },
            ],
        },
    )
    monitor = made_monitor(leadline, project, nginx.url, escalation_policy_id=policy["id"])
    eventually(lambda: status(leadline, monitor) == "up", 6)
    nginx.stop()
    eventually(lambda: status(leadline, monitor) == "down", 8)
    eventually(lambda: machines.got and people.got, 3)
    (incident,) = leadline.api("GET", f"/projects/{project}/incidents")
    (page,) = people.documents()
    assert page["event"] == "incident.escalated"
    assert page["title"] == "Shop is down"
    assert page["why"] == "connect_refused 127.0.0.1"
    assert page["link"] == f"{leadline.url}/incidents/{incident['id']}"
    acknowledged = leadline.api("POST", f"/incidents/{incident['id']}/acknowledge")
    assert acknowledged["acknowledged_by_name"]
    again = leadline.api("POST", f"/incidents/{incident['id']}/acknowledge")
    assert again["updated_at"] == acknowledged["updated_at"]
    body = {"status": "identified", "body": "The server is stopped."}
    leadline.api("POST", f"/incidents/{incident['id']}/updates", body)
    # The acknowledgement stops the second step, which was due later.
    paged_at = people.got[0][0]
    await_instant(paged_at + SECOND_STEP_SECONDS)
    await_passes(leadline)
    assert len(people.got) == 1
    nginx.start()
    eventually(lambda: status(leadline, monitor) == "up", 8)
    eventually(lambda: len(machines.got) == 3 and len(people.got) == 2, 5)
    assert machines.events() == ["incident.opened", "incident.updated", "incident.resolved"]
    assert [document["seq"] for document in machines.documents()] == [1, 2, 3]
    assert people.events() == ["incident.escalated", "incident.resolved"]
    for _, headers, sent in machines.got:
        Webhook(webhook["secret"]).verify(sent, headers)


@pytest.mark.soak
def test_kills_lose_no_event_and_reorder_none(
    leadline: Daemon, nginx: Nginx, receivers: list[Receiver]
) -> None:
    machines, people = receivers
    machines.failing = people.failing = 0.3
    project = project_of(leadline)
    made_webhook(leadline, machines.url)
    channel = made_channel(leadline, project, "ops", people.url)
    monitors = [made_monitor(leadline, project, nginx.url, name=f"m{n}") for n in range(4)]
    for monitor in monitors:
        leadline.api("POST", f"/monitors/{monitor}/notifications", {"channel_id": channel})
    chance = random.Random(11)
    for _ in range(2):
        eventually(lambda: status(leadline, monitors[0]) == "up", 20)
        nginx.stop()
        _kill_within(leadline, chance.uniform(3, 7))
        eventually(lambda: status(leadline, monitors[0]) == "down", 20)
        nginx.start()
        _kill_within(leadline, chance.uniform(3, 7))
    eventually(lambda: all(status(leadline, monitor) == "up" for monitor in monitors), 30)
    machines.failing = people.failing = 0.0
    incidents = leadline.api("GET", f"/projects/{project}/incidents")
    assert incidents
    assert {incident["status"] for incident in incidents} == {"resolved"}
    expected = {(incident["id"], seq) for incident in incidents for seq in (1, 2)}

    def arrived() -> set[tuple[str, int]]:
        return {(d["incident"]["id"], d["seq"]) for d in machines.documents()}

    eventually(lambda: arrived() == expected, 90)
    _expect_in_order([(d["incident"]["id"], d["seq"]) for d in machines.documents()])
    keys = {incident["id"] for incident in incidents}

    def paged() -> set[tuple[str, str]]:
        return {(d["key"], d["event"]) for d in people.documents()}

    wanted = {(key, event) for key in keys for event in ("incident.opened", "incident.resolved")}
    eventually(lambda: paged() == wanted, 90)
    order = {"incident.opened": 1, "incident.resolved": 2}
    _expect_in_order([(d["key"], order[d["event"]]) for d in people.documents()])


def _kill_within(leadline: Daemon, seconds: float) -> None:
    time.sleep(seconds)
    leadline.kill()
    leadline.start()


def _expect_in_order(arrivals: list[tuple[str, int]]) -> None:
    """The first arrivals of each incident are in order; repeated ones can arrive at any time."""
    seen: dict[str, int] = {}
    for key, seq in arrivals:
        assert seq <= seen.get(key, 0) + 1
        seen[key] = max(seq, seen.get(key, 0))
