"""The same checks by others: blackbox_exporter, driven as Prometheus does, and Nagios' plugins.

Only their own CPU is counted: the exporter's by its process's clock, a plugin's as a child's.
"""

import json
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import trio

from ..probes.kinds.test_mysql import PASSWORD as MYSQL_PASSWORD
from ..probes.kinds.test_postgres import PASSWORD as POSTGRES_PASSWORD
from ..support.peers.real_servers import HOST, listens, running
from ..support.processes.ports import free_port
from .peers import NAME, Peers

PLUGINS = Path("/usr/lib/nagios/plugins")
IN_FLIGHT = 20


@dataclass(frozen=True)
class Exporter:
    pid: int
    port: int
    # (module, target) by the name of the check.
    probes: dict[str, tuple[str, str]]

    def cpu_ns(self) -> int:
        """The CPU time of the process in nanoseconds, finer than /proc/PID/stat. Linux numbers the
        CPU clock of a process in this way."""
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    async def probe(self, name: str, times: int) -> None:
        """Runs `times` probes over persistent connections, as Prometheus does."""
        module, target = self.probes[name]
        query = urlencode({"module": module, "target": target})
        request = f"GET /probe?{query} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
        await self._ask(request, b"probe_success 1\n", times)

    async def _ask(self, request: bytes, wanted: bytes, times: int) -> None:
        left = times

        async def ask() -> None:
            nonlocal left
            stream = await trio.open_tcp_stream(HOST, self.port)
            async with stream:
                while left > 0:
                    left -= 1
                    await stream.send_all(request)
                    heard = await _answer(stream)
                    assert wanted in heard, heard.decode()

        async with trio.open_nursery() as nursery:
            for _ in range(min(IN_FLIGHT, times)):
                nursery.start_soon(ask)


async def _answer(stream: trio.SocketStream) -> bytes:
    data = b""
    while True:
        more = await stream.receive_some(65_536)
        assert more, data
        data += more
        head, found, body = data.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if found and (len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")):
            # A chunk can end at any byte, so the chunk sizes are removed.
            return re.sub(rb"\r\n[0-9a-f]+\r\n", b"", body)


@contextmanager
def exporter(peers: Peers, folder: Path) -> Iterator[Exporter]:
    config = folder / "modules.yml"
    # JSON is YAML.
    config.write_text(json.dumps({"modules": _modules(peers.authority)}))
    port = free_port()
    command = ["prometheus-blackbox-exporter", f"--config.file={config}", "--log.level=error"]
    command.append(f"--web.listen-address={HOST}:{port}")
    plain, tls = f"{HOST}:{peers.plain}", f"{HOST}:{peers.tls}"
    probes = {
        "http": ("http", f"http://{plain}/"),
        "http, conditions": ("body", f"http://{plain}/"),
        "https": ("http", f"https://{tls}/"),
        "https, conditions": ("body", f"https://{tls}/"),
        "tcp": ("tcp", plain),
        "tls": ("tls", tls),
        "icmp": ("icmp", HOST),
        "dns, udp": ("dns", f"{HOST}:{peers.answers['dns']}"),
        "grpc": ("grpc", peers.health.plain),
    }
    with running(command, folder / "log", lambda: listens(port)) as process:
        yield Exporter(process.pid, port, probes)


def _modules(authority: Path) -> dict[str, Any]:
    tls = {"ca_file": str(authority)}
    four: dict[str, Any] = {"preferred_ip_protocol": "ip4"}
    http = {**four, "tls_config": tls, "enable_http2": False}
    body = {**http, "fail_if_body_not_matches_regexp": ['"status": "UP"']}
    dns = {**four, "query_name": NAME, "query_type": "A", "transport_protocol": "udp"}
    return {
        "http": {"prober": "http", "timeout": "5s", "http": http},
        "body": {"prober": "http", "timeout": "5s", "http": body},
        "tcp": {"prober": "tcp", "timeout": "5s", "tcp": four},
        "tls": {"prober": "tcp", "timeout": "5s", "tcp": {**four, "tls": True, "tls_config": tls}},
        "icmp": {"prober": "icmp", "timeout": "5s", "icmp": four},
        "dns": {"prober": "dns", "timeout": "5s", "dns": dns},
        "grpc": {"prober": "grpc", "timeout": "5s", "grpc": four},
    }


def commands(peers: Peers) -> dict[str, list[str]]:
    """The command of a monitoring plugin for the same check, by the name of the check."""
    ssh_port = peers.sshd.target.rpartition(":")[2]
    web, dns = str(peers.plain), str(peers.answers["dns"])
    found = {
        "http": ["check_http", "-I", HOST, "-p", web],
        "http, conditions": ["check_http", "-I", HOST, "-p", web, "-s", '"UP"'],
        "https": ["check_http", "-S", "-I", HOST, "-p", str(peers.tls)],
        "tcp": ["check_tcp", "-H", HOST, "-p", web],
        "dns, udp": ["check_dig", "-H", HOST, "-p", dns, "-l", NAME],
        "icmp": ["check_icmp", "-n", "1", HOST],
        "ssh, version": ["check_ssh", "-p", ssh_port, HOST],
        "mysql": [
            *("check_mysql", "-H", HOST, "-P", str(peers.maria.port)),
            *("-u", "watcher", "-p", MYSQL_PASSWORD),
        ],
        "postgres": [
            *("check_pgsql", "-H", HOST, "-P", str(peers.postgres.port), "-q", "SELECT 1"),
            *("-l", "watcher", "-p", POSTGRES_PASSWORD, "-d", "shop"),
        ],
    }
    return {name: [str(PLUGINS / plugin), *more] for name, (plugin, *more) in found.items()}


def plugin_cpu_ns(command: list[str], times: int) -> int:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        done = subprocess.run(command, capture_output=True, text=True)
        # A warning is an answer too.
        assert done.returncode in (0, 1), done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return int(spent * 1e9)
