"""The peers of the benchmarks of kinds: real servers and answers.py, each a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.rrset
import trustme

from ..probes.kinds.test_grpc import Health, health_server
from ..probes.kinds.test_mysql import Maria, mariadb
from ..probes.kinds.test_postgres import Postgres, postgres
from ..probes.kinds.test_promql import prometheus
from ..probes.kinds.test_rabbitmq import Rabbit, rabbit
from ..probes.kinds.test_redis import Redis, redis
from ..support.peers.real_servers import HOST, listens, open_folder, running
from ..support.processes.ports import free_port

NAME = "few.test"
CHAIN_LENGTH = 30
NGINX = """
daemon off; pid {dir}/pid; error_log /dev/null; worker_processes 1; worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; scgi_temp_path {dir}/e;
  fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d;
  server {{
    listen {host}:{plain} backlog=4096; listen {host}:{tls} ssl http2 backlog=4096;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    default_type application/json; location / {{ return 200 '{{"status": "UP"}}'; }}
    location /dns-query {{ root {dir}; default_type application/dns-message;
      error_page 405 =200 $uri; }}
  }}
}}
"""


@dataclass(frozen=True)
class Sshd:
    target: str
    pin: str
    key: str


@dataclass(frozen=True)
class Peers:
    authority: Path
    plain: int
    tls: int
    health: Health
    maria: Maria
    postgres: Postgres
    rabbit: Rabbit
    redis: Redis
    prometheus: int
    sshd: Sshd
    # Those of answers.py, by name.
    answers: dict[str, int]


@contextmanager
def peers() -> Iterator[Peers]:
    """All of them, ready."""
    authority = trustme.CA()
    with ExitStack() as stack:
        folders = {
            name: stack.enter_context(open_folder())
            for name in ("web", "maria", "postgres", "rabbit", "redis", "prometheus", "grpc", "ssh")
        }
        web = folders["web"]
        certificate = authority.issue_cert(HOST)
        _write(authority, certificate, web)
        plain, tls = stack.enter_context(_nginx(web))
        answers = stack.enter_context(_answers(web))
        yield Peers(
            web / "ca.pem",
            plain,
            tls,
            stack.enter_context(health_server(folders["grpc"], certificate, authority)),
            stack.enter_context(mariadb(folders["maria"])),
            stack.enter_context(postgres(folders["postgres"])),
            stack.enter_context(rabbit(folders["rabbit"], authority)),
            stack.enter_context(redis(folders["redis"] / "r", authority)),
            stack.enter_context(prometheus(folders["prometheus"])),
            stack.enter_context(_sshd(folders["ssh"])),
            answers,
        )


def _write(authority: trustme.CA, certificate: trustme.LeafCert, folder: Path) -> None:
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    leaf = certificate.cert_chain_pems[0].bytes()
    (folder / "cert.pem").write_bytes(leaf)
    # Certificates that a server can send in addition to its own, without a use.
    others = [trustme.CA().cert_pem.bytes() for _ in range(CHAIN_LENGTH)]
    (folder / "long.pem").write_bytes(leaf + b"".join(others))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    query = dns.message.make_query(NAME, "A", id=0)
    response = dns.message.make_response(query)
    response.answer.append(dns.rrset.from_text(f"{NAME}.", 60, "IN", "A", "192.0.2.1"))
    (folder / "dns-query").write_bytes(response.to_wire())


@contextmanager
def _nginx(folder: Path) -> Iterator[tuple[int, int]]:
    plain, tls = free_port(), free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(dir=folder, host=HOST, plain=plain, tls=tls))
    command = ["nginx", "-c", str(config), "-p", str(folder)]
    with running(command, folder / "log", lambda: listens(tls)):
        yield plain, tls


@contextmanager
def _sshd(folder: Path) -> Iterator[Sshd]:
    """Lets this user in, by a key."""
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    port = free_port()
    lines = [
        *(f"Port {port}", f"ListenAddress {HOST}", "PidFile none", f"HostKey {folder}/host"),
        *(f"AuthorizedKeysFile {folder}/user.pub", "StrictModes no", "UsePAM no"),
        *("PermitRootLogin yes", "MaxStartups 1000", ""),
    ]
    (folder / "config").write_text("\n".join(lines))
    Path("/run/sshd").mkdir(exist_ok=True)
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{folder}/host.pub"], capture_output=True, text=True, check=True
    )
    command = ["/usr/sbin/sshd", "-D", "-e", "-f", f"{folder}/config"]
    with running(command, folder / "log", lambda: listens(port)):
        pin, key = shown.stdout.split()[1], (folder / "user").read_text()
        yield Sshd(f"{HOST}:{port}", pin, key)


@contextmanager
def _answers(folder: Path) -> Iterator[dict[str, int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.answers", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin:
        yield json.loads(process.stdout.readline())
