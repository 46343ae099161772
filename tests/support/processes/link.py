"""A host behind a link: its own network namespace, connected by a wire that tests cut and restore,
and a relay that delays the traffic.
"""

import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.support.processes.ports import free_port

NEAR, FAR = "10.77.0.1", "10.77.0.2"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Link:
    """The wire; this side has the address NEAR, the other side FAR."""

    def __init__(self, name: str) -> None:
        self.name = name

    def cut(self) -> None:
        _ip("link", "set", "near", "down")

    def heal(self) -> None:
        _ip("link", "set", "near", "up")

    def beyond(self, *command: str) -> list[str]:
        """Returns the command that runs `command` on the other side."""
        return ["ip", "netns", "exec", self.name, *command]


@contextmanager
def linked(name: str) -> Iterator[Link]:
    """Sets up the link. The caller must be in its own network."""
    _ip("netns", "add", name)
    try:
        _ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", name)
        for address, device, inside in ((NEAR, "near", ()), (FAR, "far", ("-n", name))):
            _ip(*inside, "address", "add", f"{address}/24", "dev", device)
            _ip(*inside, "link", "set", device, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield Link(name)
    finally:
        _ip("netns", "del", name)


_TARGET = """
import http.server, pathlib, sys
class Target(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(pathlib.Path(sys.argv[2]).read_text()))
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Target)
print("listens", flush=True)
server.serve_forever()
"""


class Target:
    """A web server on the loopback of either side; a file has its status."""

    def __init__(self, folder: Path, link: Link | None) -> None:
        self.port = free_port()
        self._file = folder / f"target-{self.port}"
        self.says(200)
        command = [sys.executable, "-c", _TARGET, str(self.port), str(self._file)]
        self.process = subprocess.Popen(
            link.beyond(*command) if link else command, stdout=subprocess.PIPE
        )
        # A check before the server listens would be down.
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), "the target ended"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def says(self, status: int) -> None:
        beside = self._file.with_suffix(".new")
        beside.write_text(str(status))
        beside.rename(self._file)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Relay:
    """Accepts TLS at NEAR in front of a server on this side; each piece is delayed by `delay`
    seconds.
    """

    def __init__(self, stack: ExitStack, behind: int, certificate: Path) -> None:
        self.delay = 0.0
        self._behind = behind
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._listening = socket.create_server((NEAR, 0))
        stack.callback(self._listening.close)
        self.url = f"https://{NEAR}:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listening.accept()
                threading.Thread(target=self._relay, args=(accepted,), daemon=True).start()

    def _relay(self, accepted: socket.socket) -> None:
        with suppress(OSError, ValueError), accepted:
            accepted.settimeout(60)
            outside = self._context.wrap_socket(accepted, server_side=True)
            with outside, socket.create_connection(("127.0.0.1", self._behind)) as inside:
                while self._pass_on(outside, inside):
                    time.sleep(self.delay)

    def _pass_on(self, outside: ssl.SSLSocket, inside: socket.socket) -> bool:
        ready = [outside] if outside.pending() else select.select([outside, inside], [], [], 60)[0]
        for one in ready:
            data = one.recv(65_536)
            if not data:
                return False
            (inside if one is outside else outside).sendall(data)
        return bool(ready)
