"""A mail server of aiosmtpd that stores what it receives."""

import email
import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from leadline.probes.net.egress import Egress
from leadline.probes.senders.send_result import OutgoingMail
from tests.support.peers.fake_services import CANARY
from tests.support.peers.real_servers import HOST
from tests.support.processes.ports import free_port

FROM = "Leadline <alerts@leadline.example.com>"


@dataclass
class Box:
    """Stores mail; it refuses addresses that begin with `no` permanently, and with `later`
    temporarily.
    """

    letters: list[EmailMessage] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("no"):
            return f"550 {CANARY}"
        if address.startswith("later"):
            return f"451 {CANARY}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.letters.append(parsed)
        self.envelopes.append(envelope)
        self.encrypted.append(session.ssl is not None)
        return "250 taken"

    def login(self, server: SMTP, session: Session, envelope: Envelope, *given: Any) -> AuthResult:
        _, data = given
        assert isinstance(data, LoginPassword)
        self.logins.append(data.password)
        return AuthResult(success=data.password == CANARY.encode(), handled=False)


@dataclass
class Server:
    port: int
    box: Box


@contextmanager
def serving_mail(box: Box, **options: Any) -> Iterator[Server]:
    port = free_port()
    controller = Controller(box, hostname=HOST, port=port, **options)
    controller.start()
    try:
        yield Server(port, box)
    finally:
        controller.stop()


def mail_of(reach: Egress, port: int, **given: Any) -> OutgoingMail:
    return OutgoingMail(host=HOST, port=port, sender=FROM, reach=reach, **given)
