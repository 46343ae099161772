"""HAProxy and pgbouncer on the host `pooler`, as a second way to the primary.

HAProxy asks Patroni which server is the primary. pgbouncer is in transaction mode, so LISTEN needs
HAProxy.
"""

import subprocess
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
    with (folder / "pooler.log").open("w") as log:
        running = [
            subprocess.Popen(net.on(HOST) + command, stdout=log, stderr=log) for command in commands
        ]
        try:
            yield dsn_of([(address, POOLER_PORT)]), dsn_of([(address, HAPROXY_PORT)])
        finally:
            for process in running:
                process.kill()
                process.wait()
