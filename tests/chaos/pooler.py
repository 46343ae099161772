"""HAProxy and pgbouncer on the host `pooler`, as a second way to the primary.

HAProxy asks Patroni which server is the primary. pgbouncer is in transaction mode, so LISTEN needs
HAProxy. Both are started again when they end, as `Restart=always` of systemd does: PgBouncer 1.18
ends with `bad client state` when the cancellation of a statement meets a failed server.
"""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .network import Network
from .patroni_cluster import AS_POSTGRES, PORT, REST_PORT, Cluster, dsn_of

HOST = "pooler"
HAPROXY_PORT, POOLER_PORT = 5000, 6432
_HAPROXY = """
global
  maxconn 1000
defaults
  mode tcp
  timeout connect 3s
  timeout client 30m
  timeout server 30m
  timeout check 3s
listen primary
  bind {address}:{port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
"""
_POOLER = """
[databases]
postgres = host={address} port={behind} dbname=postgres user=postgres connect_query='{settings}'
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 60
server_login_retry = 1
server_connect_timeout = 3
tcp_keepalive = 1
tcp_user_timeout = 20000
"""


# Those of docs/reference/configuration.md.
_SETTINGS = (
    "SET client_connection_check_interval = 500; SET statement_timeout = 15000;"
    " SET lock_timeout = 5000; SET idle_in_transaction_session_timeout = 20000; SET jit = off;"
    ' SET default_transaction_isolation = "read committed"; SET TimeZone = UTC'
)


@contextmanager
def pooler(net: Network, cluster: Cluster, folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the DSN of pgbouncer, and that of HAProxy for LISTEN."""
    address = net.addresses[HOST]
    servers = "".join(
        f"  server {node.name} {node.address}:{PORT} check port {REST_PORT}\n"
        for node in cluster.nodes
    )
    proxy, pool = cluster.folder / "haproxy.cfg", cluster.folder / "pgbouncer.ini"
    proxy.write_text(_HAPROXY.format(address=address, port=HAPROXY_PORT) + servers)
    text = _POOLER.format(
        address=address, port=POOLER_PORT, behind=HAPROXY_PORT, settings=_SETTINGS
    )
    pool.write_text(text)
    commands = (["haproxy", "-db", "-f", str(proxy)], [*AS_POSTGRES, "pgbouncer", str(pool)])
    ended = threading.Event()
    keepers = [
        threading.Thread(target=_keep, args=(net.on(HOST) + command, folder, ended))
        for command in commands
    ]
    for keeper in keepers:
        keeper.start()
    try:
        yield dsn_of([(address, POOLER_PORT)]), dsn_of([(address, HAPROXY_PORT)])
    finally:
        ended.set()
        for keeper in keepers:
            keeper.join()


def _keep(command: list[str], folder: Path, ended: threading.Event) -> None:
    """Runs the command, and starts it again a second after its end."""
    with (folder / "pooler.log").open("a") as log:
        while not ended.is_set():
            process = subprocess.Popen(command, stdout=log, stderr=log)
            while process.poll() is None and not ended.wait(0.2):
                pass
            process.kill()
            process.wait()
            ended.wait(1.0)
