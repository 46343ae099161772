"""A server that sends scripted bytes and records its requests."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner, Result

from leadline.daemon.cli import main

PROJECT = "019b0000-0000-7000-8000-000000000001"
SERVICE = "019b0000-0000-7000-8000-000000000002"
DECISION = "019b0000-0000-7000-8000-000000000003"
TOKEN = "leadline_0123456789"

Speak = Callable[[socket.socket, threading.Event], None]


@dataclass
class Asked:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A scripted server.

    `says` maps a method and path to an answer; `else_says` answers all others. `over` is set at the
    end of the test and ends answers that would not end themselves.
    """

    port: int = 0
    says: dict[str, "bytes | Speak"] = field(default_factory=dict)
    else_says: "bytes | Speak" = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    def answer(self, stream: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            more = stream.recv(65_536)
            if not more:
                return
            head += more
        text, _, body = head.partition(b"\r\n\r\n")
        line, *lines = text.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (part.partition(":") for part in lines)}
        while len(body) < int(headers.get("content-length", "0")):
            body += stream.recv(65_536)
        self.asked.append(Asked(line, headers, body))
        said = self.says.get(line.rpartition(" ")[0], self.else_says)
        if isinstance(said, bytes):
            stream.sendall(said)
        else:
            said(stream, self.over)


def http(body: bytes | dict[str, Any] | list[Any], status: str = "200 OK", *more: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def refused(status: str, code: str, *more: str) -> bytes:
    return http({"error": code}, status, *more)


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Answers each connection in its own thread."""
    server = Server(scheme="http" if context is None else "https")

    def serve(stream: socket.socket) -> None:
        with suppress(OSError), stream:
            wrapped = stream if context is None else context.wrap_socket(stream, server_side=True)
            with wrapped:
                server.answer(wrapped)

    def accept() -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                server.connections += 1
                threading.Thread(target=serve, args=(stream,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        threading.Thread(target=accept, daemon=True).start()
        yield server
        server.over.set()
        listener.shutdown(socket.SHUT_RDWR)


def call(server: Server | None, *arguments: str, **environment: str | None) -> Result:
    """Runs the command with the address of the server and a token, like a pipeline."""
    given: dict[str, str | None] = {
        "LEADLINE_URL": None if server is None else server.url,
        "LEADLINE_TOKEN": TOKEN,
        "LEADLINE_CA_FILE": None,
        "GITHUB_STEP_SUMMARY": None,
        "GITHUB_OUTPUT": None,
        **environment,
    }
    return CliRunner().invoke(main, list(arguments), env=given)


def decision(state: str = "ALLOW", **more: Any) -> dict[str, Any]:
    """Returns a decision of the gate; a field with the value None is omitted."""
    said = {
        "schema_version": 2,
        "actor_label": "pipeline",
        "decision_id": DECISION,
        "evaluated_at": "2026-11-22T13:46:24.000Z",
        "service_id": SERVICE,
        "service_slug": "checkout",
        "service_name": "Checkout",
        "state": state,
        "action": None if state in ("NOT_CONFIGURED", "UNKNOWN") else state,
        "unoverridden_action": None if state in ("NOT_CONFIGURED", "UNKNOWN") else state,
        "reasons": [{"code": "not_configured"}] if state == "NOT_CONFIGURED" else [],
        "policy_revision": None if state == "NOT_CONFIGURED" else 3,
        "policy_source": None if state == "NOT_CONFIGURED" else "service",
        **more,
    }
    return {name: value for name, value in said.items() if value is not None}
