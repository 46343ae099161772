"""A running daemon with its configuration: channels by mail and webhook, tested over the API."""

import email
import email.policy
import http.server
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.support.peers.real_servers import HOST
from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port

from .conftest import project_of


class Box:
    def __init__(self) -> None:
        self.letters: list[EmailMessage] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.letters.append(parsed)
        return "250 taken"


@pytest.fixture(scope="module")
def box() -> Iterator[tuple[Box, int]]:
    made, port = Box(), free_port()
    controller = Controller(made, hostname=HOST, port=port)
    controller.start()
    yield made, port
    controller.stop()


@pytest.fixture(scope="module")
def hook() -> Iterator[tuple[int, list[Any]]]:
    got: list[Any] = []

    class Taker(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer((HOST, 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], got
        server.shutdown()


@pytest.fixture(scope="module")
def leadline(box: tuple[Box, int]) -> Iterator[Daemon]:
    with daemon(
        LEADLINE_MAIL__ENABLED="true",
        LEADLINE_MAIL__SMTP_HOST=HOST,
        LEADLINE_MAIL__SMTP_PORT=str(box[1]),
        LEADLINE_MAIL__FROM="Leadline <alerts@example.com>",
        LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
    ) as running:
        running.start()
        running.sign_in()
        yield running


def tried(leadline: Daemon, kind: str, config: dict[str, str]) -> Any:
    body = {"type": kind, "name": f"By {kind}", "config": config}
    path = f"/projects/{project_of(leadline)}/notification-channels"
    made = leadline.api("POST", path, body)
    return leadline.api("POST", f"/notification-channels/{made['id']}/test")


def test_a_mail_arrives_from_the_configured_sender(leadline: Daemon, box: tuple[Box, int]) -> None:
    assert tried(leadline, "email", {"to": "ops@example.com"}) == {"ok": True}
    (letter,) = box[0].letters
    assert letter["From"] == "Leadline <alerts@example.com>"
    assert letter["Subject"] == "Leadline test message"


def test_a_webhook_reaches_an_allowed_private_address(
    leadline: Daemon, hook: tuple[int, list[Any]]
) -> None:
    port, got = hook
    assert tried(leadline, "webhook", {"url": f"http://{HOST}:{port}/x"}) == {"ok": True}
    (headers, body) = got[0]
    assert headers["X-Leadline-Event"] == "channel.test"
    assert b"Leadline test message" in body
    refused = tried(leadline, "webhook", {"url": "http://169.254.169.254/latest"})
    assert refused == {"ok": False, "reason": "target_blocked"}
