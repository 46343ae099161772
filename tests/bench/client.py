"""A client with a low CPU cost: a number of connections, each of which sends the next request after
a response.

Runs as a process of its own, so that its CPU time is not counted as the daemon's. Reads one JSON
plan from standard input and writes one JSON line of figures."""

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Wire:
    """A connection that is kept until the server announces its end."""

    port: int
    sock: socket.socket
    sent_at: float = 0.0
    received: bytearray = field(default_factory=bytearray)
    is_closing: bool = False

    def ask(self, request: bytes) -> None:
        self.sent_at = time.perf_counter()
        self.sock.sendall(request)

    def read(self) -> int | None:
        """The status once the answer is whole; bytes that are left would be a fault of ours."""
        data = self.sock.recv(1 << 20)
        if not data:
            raise ConnectionError("the server hung up")
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self.received) < end + 4 + length:
            return None
        status = int(head[9:12])
        self.is_closing = b"\r\nconnection: close" in head
        self.received.clear()
        return status


def load(
    ports: list[int],
    requests: list[tuple[str, str, dict[str, str]]],
    *,
    connections: int,
    seconds: float,
    warm_seconds: float = 1.0,
) -> dict[str, Any]:
    """Figures of a run in another process: answers a second, latency in ms, statuses."""
    plan = {
        "ports": ports,
        "requests": requests,
        "connections": connections,
        "seconds": seconds,
        "warm_seconds": warm_seconds,
    }
    command = [sys.executable, "-m", "tests.bench.client"]
    done = subprocess.run(command, input=json.dumps(plan).encode(), stdout=-1, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def run(plan: dict[str, Any]) -> dict[str, Any]:
    texts = [_text(method, path, headers) for method, path, headers in plan["requests"]]
    selector = selectors.DefaultSelector()
    asked = 0
    for n in range(plan["connections"]):
        port = plan["ports"][n % len(plan["ports"])]
        wire = Wire(port, _connected(port))
        selector.register(wire.sock, selectors.EVENT_READ, wire)
        wire.ask(texts[asked % len(texts)])
        asked += 1
    began = time.perf_counter() + plan["warm_seconds"]
    until = began + plan["seconds"]
    took: list[float] = []
    statuses: Counter[int] = Counter()
    while (now := time.perf_counter()) < until:
        for key, _ in selector.select(1.0):
            wire = key.data
            status = wire.read()
            if status is None:
                continue
            now = time.perf_counter()
            if now >= began:
                took.append(now - wire.sent_at)
                statuses[status] += 1
            if wire.is_closing:
                selector.unregister(wire.sock)
                wire.sock.close()
                wire = Wire(wire.port, _connected(wire.port))
                selector.register(wire.sock, selectors.EVENT_READ, wire)
            wire.ask(texts[asked % len(texts)])
            asked += 1
    took.sort()
    return {
        "a_second": round(len(took) / plan["seconds"], 1),
        "ms_p50_p99_max": [round(_at(took, q) * 1000, 1) for q in (0.5, 0.99, 1.0)],
        "statuses": dict(statuses),
    }


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _at(ordered: list[float], quantile: float) -> float:
    return ordered[min(int(len(ordered) * quantile), len(ordered) - 1)] if ordered else 0.0


def _text(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", "Content-Length: 0"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(json.load(sys.stdin))) + "\n")
