"""A primary and a replica of PostgreSQL under Patroni with etcd, of Debian's packages.

Each server is on the host of its name, etcd on `etcd`. Invariant: every process of the cluster has
ended when the context ends. The cluster accepts every user of the network without a password. Needs
root, because the servers run as the user postgres.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .network import SUBNET, Network

HOSTS = ("left", "right", "etcd")
PORT, REST_PORT, ETCD_PORT, ETCD_PEER_PORT = 5432, 8008, 2379, 2380
# A server's disk, which a fault fills.
DISK = "1536m"
# What Patroni uses without configuration is 30, 10 and 10 s. A failover then takes up to 40 s.
TTL_SECONDS, LOOP_SECONDS, RETRY_SECONDS = 20, 5, 5
START_SECONDS = 90.0
AS_POSTGRES = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")

_CONFIG = """
scope: leadline
name: {name}
log: {{level: WARNING}}
restapi: {{listen: "{host}:{rest}", connect_address: "{host}:{rest}"}}
etcd3: {{hosts: ["{etcd}"]}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: {loop}
    retry_timeout: {retry}
    maximum_lag_on_failover: 33554432
    synchronous_mode: {synchronous}
    postgresql:
      use_pg_rewind: true
      parameters:
        {{max_connections: 200, wal_level: replica, wal_log_hints: "on", max_wal_size: 256MB}}
  initdb: [{{encoding: UTF8}}, {{locale: C.UTF-8}}, data-checksums]
postgresql:
  listen: "{host}:{port}"
  connect_address: "{host}:{port}"
  data_dir: {folder}/{name}/data
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  pgpass: {folder}/{name}.pgpass
  bin_dir: {bin}
  pg_hba: ["host all all {subnet} trust", "host replication all {subnet} trust"]
  authentication:
    superuser: {{username: postgres, password: x}}
    replication: {{username: replicator, password: x}}
    rewind: {{username: rewinder, password: x}}
  parameters: {{unix_socket_directories: {folder}/{name}, fsync: "off", logging_collector: "off"}}
watchdog: {{mode: "off"}}
"""


def missing_programs() -> str:
    """Returns the packages to install, empty if the cluster can run."""
    wanted = {
        "patroni": "patroni",
        "etcd": "etcd-server",
        "haproxy": "haproxy",
        "pgbouncer": "pgbouncer",
        "faketime": "faketime",
        "ip": "iproute2",
        "setpriv": "util-linux",
    }
    found = [package for program, package in wanted.items() if shutil.which(program) is None]
    if server_programs() is None:
        found.append("postgresql")
    return " ".join(found)


def server_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@dataclass
class Node:
    """A server and its Patroni."""

    name: str
    folder: Path
    network: Network
    process: "subprocess.Popen[bytes] | None" = None
    frozen: list[int] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.network.addresses[self.name]

    @property
    def disk(self) -> Path:
        """Returns the folder of its file system, which has the size DISK."""
        return self.folder / self.name

    def start(self) -> None:
        log = (self.folder / f"{self.name}.log").open("ab")
        os.chown(self.folder / f"{self.name}.log", *postgres_ids())
        command = [*AS_POSTGRES, "patroni", str(self.folder / f"{self.name}.yml")]
        command = self.network.on(self.name) + command
        self.process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=self.folder,
            start_new_session=True,
            env={**os.environ, "HOME": str(self.folder), "PGUSER": "postgres"},
        )

    @property
    def rest(self) -> str:
        return f"http://{self.address}:{REST_PORT}"

    def state(self) -> dict[str, Any]:
        """Returns what Patroni reports, empty if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.rest}/patroni", timeout=2) as answer:
                found: dict[str, Any] = json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            return {}
        return found

    @property
    def leads(self) -> bool:
        state = self.state()
        role = state.get("role")
        return role in ("master", "primary") and state.get("state") == "running"

    @property
    def follows(self) -> bool:
        state = self.state()
        return state.get("role") == "replica" and state.get("state") == "running"

    @property
    def is_synchronous(self) -> bool:
        return bool(self.state().get("sync_standby"))

    def kill(self) -> None:
        """Kills Patroni and the server, like a host that loses power."""
        for pid in self._processes():
            _signal(pid, signal.SIGKILL)
        self.frozen.clear()

    def freeze(self) -> None:
        """Stops Patroni and the server without closing a connection."""
        self.frozen = self._processes()
        for pid in self.frozen:
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.frozen:
            _signal(pid, signal.SIGCONT)
        self.frozen.clear()

    def _processes(self) -> list[int]:
        """Returns Patroni, the server and all their children. The server is no child of Patroni."""
        roots = [self.process.pid] if self.process is not None else []
        with suppress(OSError, ValueError, IndexError):
            roots.append(int((self.disk / "data" / "postmaster.pid").read_text().split()[0]))
        return [pid for root in roots for pid in _tree(root)]


@dataclass
class Cluster:
    folder: Path
    nodes: list[Node]
    synchronous: bool

    @property
    def dsn(self) -> str:
        """Returns a DSN with both hosts, which selects the primary."""
        return dsn_of([(node.address, PORT) for node in self.nodes])

    def leader(self) -> Node | None:
        return next((node for node in self.nodes if not node.frozen and node.leads), None)

    def other(self, node: Node) -> Node:
        return next(one for one in self.nodes if one is not node)

    def wait_for_leader(self, besides: Node | None = None) -> Node:
        """Returns the primary. With `besides`, waits until it is another node."""

        def found() -> bool:
            leader = self.leader()
            return leader is not None and leader is not besides

        wait(found, START_SECONDS, "a primary")
        leader = self.leader()
        assert leader is not None
        return leader

    def wait_for_replica(self) -> None:
        """Waits until one node leads and the other one follows it, and can replace it.

        A node that was frozen reports for a moment that it leads.
        """

        def complete() -> bool:
            leading = [node.leads for node in self.nodes]
            if sum(leading) != 1:
                return False
            replica = self.nodes[leading.index(False)]
            return replica.follows and (not self.synchronous or replica.is_synchronous)

        wait(complete, START_SECONDS, "a replica")

    def switch_over(self) -> None:
        leader = self.wait_for_leader()
        body = json.dumps({"leader": leader.name, "candidate": self.other(leader).name}).encode()
        request = urllib.request.Request(
            f"{leader.rest}/switchover", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status in (200, 202), answer.read()


def dsn_of(places: list[tuple[str, int]]) -> str:
    """Returns a DSN of several hosts, which selects the primary."""
    hosts, ports = zip(*places, strict=True)
    return (
        f"host={','.join(hosts)} port={','.join(map(str, ports))}"
        " user=postgres dbname=postgres target_session_attrs=read-write"
    )


def wait(found: Callable[[], bool], seconds: float, name: str) -> None:
    latest = time.monotonic() + seconds
    while not found():
        if time.monotonic() > latest:
            raise TimeoutError(f"no {name} within {seconds:g} s")
        time.sleep(0.1)


@contextmanager
def patroni_cluster(net: Network, *, synchronous: bool = False) -> Iterator[Cluster]:
    """Yields a cluster with a primary and a replica that follows it."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-patroni-"))
    os.chown(folder, *postgres_ids())
    folder.chmod(0o755)
    cluster = Cluster(folder, [Node(name, folder, net) for name in ("left", "right")], synchronous)
    store = _etcd(folder, net)
    try:
        wait(lambda: _answers(net), 20, "etcd")
        for node in cluster.nodes:
            _make_disk(node)
            _configure(node, synchronous=synchronous)
            node.start()
            # The first node creates the database; the second one copies it.
            cluster.wait_for_leader()
        cluster.wait_for_replica()
        yield cluster
    finally:
        for node in cluster.nodes:
            node.thaw()
            node.kill()
            subprocess.run(["umount", "--lazy", str(node.disk)], check=False)
        store.kill()
        store.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _etcd(folder: Path, net: Network) -> "subprocess.Popen[bytes]":
    address = net.addresses["etcd"]
    client, inner = f"http://{address}:{ETCD_PORT}", f"http://{address}:{ETCD_PEER_PORT}"
    command = [
        *("etcd", "--name", "one", "--data-dir", str(folder / "etcd"), "--log-level", "error"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", inner, "--initial-advertise-peer-urls", inner),
        *("--initial-cluster", f"one={inner}", "--unsafe-no-fsync"),
    ]
    log = (folder / "etcd.log").open("wb")
    return subprocess.Popen(net.on("etcd") + command, stdout=log, stderr=log)


def _answers(net: Network) -> bool:
    url = f"http://{net.addresses['etcd']}:{ETCD_PORT}/health"
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _make_disk(node: Node) -> None:
    node.disk.mkdir()
    options = f"size={DISK},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(node.disk)], check=True)
    os.chown(node.disk, *postgres_ids())


def _configure(node: Node, *, synchronous: bool) -> None:
    programs = server_programs()
    assert programs is not None
    path = node.folder / f"{node.name}.yml"
    path.write_text(
        _CONFIG.format(
            name=node.name,
            host=node.address,
            rest=REST_PORT,
            port=PORT,
            etcd=f"{node.network.addresses['etcd']}:{ETCD_PORT}",
            subnet=SUBNET,
            folder=node.folder,
            bin=programs,
            ttl=TTL_SECONDS,
            loop=LOOP_SECONDS,
            retry=RETRY_SECONDS,
            synchronous=str(synchronous).lower(),
        )
    )
    os.chown(path, *postgres_ids())


def postgres_ids() -> tuple[int, int]:
    found = Path("/etc/passwd").read_text().splitlines()
    fields = next(line.split(":") for line in found if line.startswith("postgres:"))
    return int(fields[2]), int(fields[3])


def _tree(root: int) -> list[int]:
    """Returns a process and all its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
