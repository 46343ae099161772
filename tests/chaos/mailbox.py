"""A mail server that logs what it accepts. Run as a process of its own.

`python -m tests.chaos.mailbox FOLDER ADDRESS` prints a line when it listens, and runs until its
standard input ends. `mails.log` has a line of JSON for each accepted mail, written before the
answer: instant, recipient, subject and plain text.
"""

import email
import email.policy
import json
import sys
import time
from email.message import EmailMessage
from pathlib import Path
from typing import TextIO

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

PORT = 2525


class Mailbox:
    def __init__(self, log: TextIO) -> None:
        self._log = log

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        body = mail.get_body(("plain",))
        text = body.get_content() if body is not None else ""
        for recipient in envelope.rcpt_tos:
            record = {"at": time.time(), "to": recipient, "subject": mail["Subject"], "text": text}
            self._log.write(json.dumps(record) + "\n")
        return "250 OK"


def main(folder: Path, address: str) -> None:
    with (folder / "mails.log").open("w", buffering=1) as log:
        server = Controller(Mailbox(log), hostname=address, port=PORT)
        server.start()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
