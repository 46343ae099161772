"""Leadline on a cluster of PostgreSQL: two api, two schedulers, three workers, two agents in the
region `edge`, and their target. Each process is on the host of its name.

The second process of each role reaches the database through a relay, and its clock can be stepped.
Agents reach the api processes through a relay, because plain HTTP is for servers of the same host.
"""

import base64
import http.client
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.processes.daemon_process import LEADLINE, Daemon, Refusal, daemon

from .mailbox import PORT as MAIL_PORT
from .network import Network
from .patroni_cluster import ETCD_PORT, Cluster, dsn_of

KEY = base64.b64encode(b"k" * 32).decode()
PASSWORD = "correct-horse"
TOKEN = "token-of-the-edge-1234"
# The schedulers create the partitions that the others write to.
NAMES = ("scheduler1", "scheduler2", "api1", "api2", "worker1", "worker2", "worker3")
AGENTS = ("agent1", "agent2")
HOSTS = (*NAMES, *AGENTS, "target")
INTERVAL_SECONDS, TIMEOUT_SECONDS = 5, 2
# A job pushes each second.
JOB_TIMING = {"interval_seconds": 5, "grace_seconds": 1}
# Of monitors in the region of the agents: every fourth.
EDGE_SHARE = 4
# Monitors whose outages the service pages.
SERVICE_MEMBERS = (0, 1, 2)
# An hour must be measured before a budget has a figure: only the incident decides.
GATE_POLICY = {
    "schema_version": 1,
    "window_mode": "one",
    "window": "24h",
    "clauses": {
        "budget_exhausted": "ignore",
        "budget_consumed": "ignore",
        "page_burn_firing": "ignore",
        "ticket_burn_firing": "ignore",
        "service_incident_open": "block",
    },
    "budget_consumed_percent": 80,
    "max_seal_lag_seconds": 300,
    "unknown_behavior": "block",
}
# An agent's disk, which a fault fills.
AGENT_DISK = "16m"
_RELAY_PORT = 7000
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


@dataclass
class Script:
    """A process that obeys lines on its standard input."""

    process: "subprocess.Popen[str]"

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def first_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@dataclass
class Installation:
    network: Network
    folder: Path
    processes: dict[str, Daemon]
    relays: dict[str, Script]
    target: Script
    target_port: int
    # Held by whoever stops and starts a process, or injects a fault into it.
    locks: dict[str, threading.RLock] = field(default_factory=dict)
    project: str = ""
    organization: str = ""
    service: str = ""
    # Identifiers by the number in the path of the target.
    monitors: dict[int, str] = field(default_factory=dict)
    edge: set[int] = field(default_factory=set)
    jobs: dict[int, str] = field(default_factory=dict)
    push_path: dict[int, str] = field(default_factory=dict)
    cookie: str = ""

    def named(self, role: str) -> list[Daemon]:
        return [process for name, process in self.processes.items() if name.startswith(role)]

    def clock(self, name: str) -> Path:
        """Returns the file with the offset of a process's clock, such as `+90s`."""
        return self.folder / f"{name}.clock"

    def begin(self, name: str) -> None:
        """Starts a process. It waits for a database that is not there."""
        self.processes[name].begin(name.rstrip("123"), *self.network.on(name), LEADLINE)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Calls a route at the first api process that answers. Raises its failure."""
        failure: Exception | None = None
        for process in self.named("api"):
            process.cookie = self.cookie
            try:
                return process.api(method, path, body)
            except Refusal as refusal:
                if refusal.status < 500:
                    raise
                failure = refusal
            except (OSError, http.client.HTTPException) as error:
                failure = error
        assert failure is not None
        raise failure

    def url_of(self, number: int | str) -> str:
        return f"http://{self.network.addresses['target']}:{self.target_port}/{number}"

    def declare(self, monitors: int, jobs: int) -> None:
        """Creates a project with http monitors of the target, push monitors, and a service that
        pages for the first monitors. A webhook gets every incident.
        """
        first = self.named("api")[0]
        first.password = PASSWORD
        first.sign_in()
        self.cookie = first.cookie
        self.organization = self.api("POST", "/organizations", {"name": "Chaos", "slug": "chaos"})[
            "id"
        ]
        path = f"/organizations/{self.organization}"
        self.project = self.api("POST", f"{path}/projects", {"name": "Chaos", "slug": "chaos"})[
            "id"
        ]
        self.api("POST", f"{path}/webhooks", {"url": self.url_of("hook")})
        for number in range(monitors):
            body = {
                "name": f"m{number}",
                "type": "http",
                "target": self.url_of(number),
                "interval_seconds": INTERVAL_SECONDS,
                "timeout_seconds": TIMEOUT_SECONDS,
            }
            if number % EDGE_SHARE == EDGE_SHARE - 1:
                self.edge.add(number)
                body["region"] = "edge"
            made = self.api("POST", f"/projects/{self.project}/monitors", body)
            self.monitors[number] = made["id"]
        for number in range(jobs):
            body = {"name": f"j{number}", "type": "push", **JOB_TIMING}
            made = self.api("POST", f"/projects/{self.project}/monitors", body)
            self.jobs[number] = made["id"]
            self.push_path[number] = urlsplit(made["push_url"]).path
        self._declare_service()

    def _declare_service(self) -> None:
        """Creates a service of the first monitors that pages for them, and its gate."""
        there = f"/projects/{self.project}"
        self.service = self.api("POST", f"{there}/services", {"slug": "shop"})["id"]
        path = f"{there}/services/{self.service}"
        members = [self.monitors[number] for number in SERVICE_MEMBERS]
        body = {"expected_revision": 0, "monitors": members, "sli": members}
        self.api("PUT", f"{path}/declaration", body)
        config = {"url": self.url_of("page")}
        channel = {"type": "webhook", "name": "Ops", "config": config}
        told = self.api("POST", f"{there}/notification-channels", channel)["id"]
        steps = [{"after_seconds": 0, "targets": [{"type": "channel", "id": told}]}]
        ladder = {"name": "Ops", "repeat_last": False, "steps": steps}
        policy = self.api("POST", f"{there}/escalation-policies", ladder)["id"]
        self.api("PUT", f"{path}/escalation-policy", {"escalation_policy_id": policy})
        paging = {"owns_paging": True, "page_on": ["down"], "confirm_evaluations": 1}
        self.api("PATCH", f"{path}/alerting", paging)
        target = {"window": "24h", "objective": 50.0}
        self.api("PUT", f"{path}/sla-target", target)
        self.api("PUT", f"{path}/gate/policy", {"expected_revision": None, **GATE_POLICY})


@contextmanager
def installation(
    net: Network, cluster: Cluster, folder: Path, dsn: str = "", listen_dsn: str = ""
) -> Iterator[Installation]:
    """Yields an installation that is ready, without monitors. By default it names both servers."""
    with ExitStack() as stack:
        target = stack.enter_context(
            _script(net, "target", "target", str(folder), net.addresses["target"])
        )
        found = Installation(net, folder, {}, {}, target, int(target.first_line()))
        mailbox = stack.enter_context(
            _script(net, "target", "mailbox", str(folder), net.addresses["target"])
        )
        assert mailbox.first_line() == "listening"
        for name in (*NAMES, *AGENTS):
            add = _add_agent if name in AGENTS else _add_server
            found.locks[name] = threading.RLock()
            found.processes[name] = add(stack, found, name, dsn or cluster.dsn, listen_dsn)
            if name.endswith("2"):
                _add_clock(found, name)
        for name in NAMES:
            process = found.processes[name]
            process.start(role=name.rstrip("123"), program=(*net.on(name), LEADLINE))
        for name in AGENTS:
            found.begin(name)
        try:
            yield found
        finally:
            for name, process in found.processes.items():
                shutil.copy(process.log, folder / f"{name}.log")


def _add_server(
    stack: ExitStack, found: Installation, name: str, dsn: str, listen_dsn: str
) -> Daemon:
    net = found.network
    if name.endswith("2") and not listen_dsn:
        links, ways = [], []
        for n, host in enumerate(("left", "right")):
            links.append(f"{_RELAY_PORT + n}={net.addresses[host]}:5432")
            ways.append(("127.0.0.1", _RELAY_PORT + n))
        found.relays[name] = stack.enter_context(_script(net, name, "relay", *links))
        found.relays[name].first_line()
        dsn = dsn_of(ways)
    address = net.addresses[name]
    process = stack.enter_context(
        daemon(
            LEADLINE_DATABASE__DSN=dsn,
            LEADLINE_DATABASE__POOL_SIZE="6",
            LEADLINE_SECURITY__ENCRYPTION_KEY=KEY,
            LEADLINE_SECURITY__ADMIN_EMAIL="admin@localhost",
            LEADLINE_SECURITY__ADMIN_PASSWORD=PASSWORD,
            LEADLINE_PROBER__ALLOW_PRIVATE_IPS="true",
            LEADLINE_PROBER__CONNECTIVITY_CHECK=f"{net.addresses['etcd']}:{ETCD_PORT}",
            LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
            LEADLINE_SERVER__PUBLIC_BASE_URL="https://up.example.com",
            LEADLINE_MAIL__ENABLED="true",
            LEADLINE_MAIL__SMTP_HOST=net.addresses["target"],
            LEADLINE_MAIL__SMTP_PORT=str(MAIL_PORT),
            LEADLINE_MAIL__FROM="Leadline <status@example.com>",
            LEADLINE_PULL__TOKEN=TOKEN,
            LEADLINE_PULL__REGIONS='[{name="edge"}]',
        )
    )
    if listen_dsn:
        process.environment["LEADLINE_DATABASE__LISTEN_DSN"] = listen_dsn
    process.url = f"http://{address}:{process.port}"
    key = "LISTEN" if name.startswith("api") else "OPS_LISTEN"
    del process.environment["LEADLINE_SERVER__LISTEN"]
    process.environment[f"LEADLINE_SERVER__{key}"] = f"{address}:{process.port}"
    return process


def _add_agent(stack: ExitStack, found: Installation, name: str, _dsn: str, _listen: str) -> Daemon:
    net = found.network
    servers = ",".join(process.url.removeprefix("http://") for process in found.named("api"))
    found.relays[name] = stack.enter_context(
        _script(net, name, "relay", f"{_RELAY_PORT}={servers}")
    )
    found.relays[name].first_line()
    process = stack.enter_context(
        daemon(
            LEADLINE_PULL__SERVER_URL=f"http://127.0.0.1:{_RELAY_PORT}",
            LEADLINE_PULL__TOKEN=TOKEN,
            LEADLINE_PROBER__REGIONS="edge",
            LEADLINE_PROBER__ALLOW_PRIVATE_IPS="true",
            LEADLINE_PROBER__CONNECTIVITY_CHECK=f"{net.addresses['etcd']}:{ETCD_PORT}",
        )
    )
    process.data_dir.mkdir()
    options = f"size={AGENT_DISK},mode=700"
    disk = str(process.data_dir)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=True)
    stack.callback(subprocess.run, ["umount", "--lazy", disk], check=False)
    return process


def _add_clock(found: Installation, name: str) -> None:
    """Gives a process a wall clock of its own. Its monotonic clock stays that of the system."""
    set_clock(found.clock(name), 0)
    found.processes[name].environment |= clock_environment(found.clock(name))


def set_clock(file: Path, offset_seconds: int) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(f"{offset_seconds:+d}s\n")
    beside.rename(file)


def clock_environment(file: Path) -> dict[str, str]:
    """Returns variables that give a process a wall clock with the offset in a file."""
    return {
        "LD_PRELOAD": _FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextmanager
def _script(net: Network, host: str, module: str, *arguments: str) -> Iterator[Script]:
    command = [*net.on(host), sys.executable, "-m", f"tests.chaos.{module}", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield Script(running)
        finally:
            running.kill()


def stored_since(found: Installation, since: float) -> int:
    """Returns how many monitors have a result since an instant."""
    count = 0
    for identifier in found.monitors.values():
        beats = found.api("GET", f"/monitors/{identifier}/heartbeats?limit=1")
        count += bool(beats) and instant(beats[0]["ts"]) >= since
    return count


def instant(text: str) -> float:
    """Returns seconds since the epoch of an instant of the API."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
