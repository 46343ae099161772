"""Checked targets: a local nginx, plain and over TLS, and servers of a benchmark's own."""

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import trustme

from ..support.processes.ports import free_port

ServerT = TypeVar("ServerT", bound=ThreadingHTTPServer)


@dataclass(frozen=True, slots=True)
class Target:
    plain: str
    tls: str
    # The value of SSL_CERT_FILE, so that the certificate is verified like any other.
    authority: str


@contextmanager
def nginx() -> Iterator[Target]:
    folder = Path(tempfile.mkdtemp(prefix="leadline-nginx-"))
    folder.chmod(0o755)
    plain, tls = free_port(), free_port()
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_timeout 0;
client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
server {{ listen 127.0.0.1:{plain} backlog=4096; listen 127.0.0.1:{tls} ssl backlog=4096;
ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
location / {{ return 200 "ok"; }} }} }}"""
    )
    process = subprocess.Popen([shutil.which("nginx") or "nginx", "-c", f"{folder}/nginx.conf"])
    time.sleep(0.3)
    try:
        yield Target(
            f"http://127.0.0.1:{plain}/", f"https://127.0.0.1:{tls}/", str(folder / "ca.pem")
        )
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def serve(server: ServerT) -> Iterator[ServerT]:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class QuietHandler(BaseHTTPRequestHandler):
    """Answers without a body and without a log."""

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass
