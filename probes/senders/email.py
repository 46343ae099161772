"""E-mail through the configured server, in plain text and simple HTML.

The messages of an incident form one thread. smtplib runs in a thread, on a socket that Trio
connects and shuts down at the deadline, so that the thread ends too. Credentials are sent only over
TLS with a verified certificate. Without credentials, TLS is opportunistic, as between mail servers,
except on port 465.
"""

import os
import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from functools import partial
from html import escape
from io import BufferedIOBase
from typing import Final

from ..check.phase_timer import Stopwatch
from ..net import tls_contexts as tls
from .channel_spec import ChannelSetting, ChannelSpec, Config, SettingFault
from .message import Message, body_lines, title_line
from .send_result import (
    SEND_SECONDS,
    Delivered,
    NotDelivered,
    OutgoingMail,
    SendContext,
    SendFailure,
)

ADDRESSES_MOST: Final = 20
ADDRESS_LONGEST: Final = 254
# Limit of all replies of a server in one conversation.
REPLIES_BYTES_MOST: Final = 64 * 1024
# Port with implicit TLS (RFC 8314).
IMPLICIT_TLS_PORT: Final = 465
# EHLO name for a server, which requires an address literal if there is no host name.
_EHLO_NAME: Final = "[127.0.0.1]"
_ATEXT: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~."
)


def addresses(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _rule(config: Config) -> list[SettingFault]:
    found = addresses(config.get("to", ""))
    if not found or not all(_is_address(address) for address in found):
        return [SettingFault("config.to", "must be e-mail addresses, separated by commas")]
    if len(found) > ADDRESSES_MOST:
        return [SettingFault("config.to", f"must be at most {ADDRESSES_MOST} addresses")]
    return []


def _is_address(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    known = set(local) <= _ATEXT and set(domain) <= _ATEXT
    return bool(local and domain) and known and len(text) <= ADDRESS_LONGEST


SPEC: Final = ChannelSpec(
    type="email",
    help="E-mail by the mail server of this installation.",
    settings=(
        ChannelSetting(
            name="to",
            help=f"Up to {ADDRESSES_MOST} addresses, separated by commas",
            required=True,
        ),
    ),
    rule=_rule,
)


def letter(message: Message, to: Sequence[str], mail: OutgoingMail, now_us: int) -> EmailMessage:
    """Returns the message.

    References contain an id of the incident's key, which no message has. Mail clients group
    messages with the same reference.
    """
    domain = parseaddr(mail.sender)[1].rpartition("@")[2] or "localhost"
    found = EmailMessage()
    found["From"] = mail.sender
    found["To"] = ", ".join(to)
    found["Subject"] = title_line(message)
    found["Date"] = formatdate(now_us / 1_000_000)
    found["Message-ID"] = f"<{message.id}@{domain}>"
    root = f"<{message.key}@{domain}>"
    parents = [root, *([message.thread] if _is_message_id(message.thread) else [])]
    found["In-Reply-To"] = parents[-1]
    found["References"] = " ".join(parents)
    found["Auto-Submitted"] = "auto-generated"
    lines = body_lines(message)
    text = "\n".join(
        [title_line(message), "", *lines, *(["", message.link] if message.link else [])]
    )
    found.set_content(text + "\n")
    found.add_alternative(_html(message, lines), subtype="html")
    return found


def _html(message: Message, lines: Sequence[str]) -> str:
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
    link = escape(message.link)
    anchor = f'<p><a href="{link}">{link}</a></p>' if message.link else ""
    title = escape(title_line(message))
    return f"<html><body><h1>{title}</h1>{paragraphs}{anchor}</body></html>\n"


def _is_message_id(text: str) -> bool:
    inside = text[1:-1]
    return text == f"<{inside}>" and _is_address(inside)


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    if means.mail is None:
        raise NotDelivered(SendFailure.RETRY, "mail_unavailable")
    to = addresses(config["to"])
    # Encoding the headers can take several milliseconds.
    write = partial(letter, message, to, means.mail, means.now())
    whole = await means.mail.reach.in_thread(write)
    refused = await hand_over(means.mail, whole, to)
    note = f"recipient_refused {refused} of {len(to)}" if refused else ""
    return Delivered(thread=message.thread or str(whole["Message-ID"]), note=note)


async def hand_over(mail: OutgoingMail, whole: EmailMessage, to: Sequence[str]) -> int:
    """Sends a message and returns the number of refused recipients, if any was accepted.

    Raises: `NotDelivered`, and `TargetFailure` or `LocalFailure` if it cannot connect.
    """
    connection = await mail.reach.dial(mail.host, mail.port, Stopwatch())
    sock = socket.socket(fileno=connection.stream.socket.detach())
    try:
        # TLS takes over the socket. The duplicate can shut it down independent of its owner.
        handle = socket.socket(fileno=os.dup(sock.fileno()))
    except OSError:
        sock.close()
        raise
    conversation = _Conversation(sock, mail, whole, to)
    try:
        return await mail.reach.in_thread(conversation.held)
    finally:
        # The thread may still run. The shutdown ends it, and it closes its own socket.
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)
        handle.close()
        if not conversation.began:
            sock.close()


@dataclass(slots=True)
class _Conversation:
    sock: socket.socket
    mail: OutgoingMail
    whole: EmailMessage
    to: Sequence[str]
    began: bool = False

    def held(self) -> int:
        self.began = True
        try:
            self.sock.settimeout(SEND_SECONDS)
            return self._hold()
        except smtplib.SMTPAuthenticationError as error:
            raise _by_code(error.smtp_code, "auth_failed") from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise _by_code(min(codes), "recipient_refused") from None
        except smtplib.SMTPSenderRefused as error:
            raise _by_code(error.smtp_code, "sender_refused") from None
        except smtplib.SMTPResponseException as error:
            raise _by_code(error.smtp_code, "smtp_status") from None
        except smtplib.SMTPNotSupportedError:
            raise NotDelivered(SendFailure.REFUSED, "auth_unsupported") from None
        except ssl.SSLError:
            raise NotDelivered(SendFailure.RETRY, "tls_error") from None
        except (smtplib.SMTPException, OSError, ValueError):
            raise NotDelivered(SendFailure.RETRY, "connect_error") from None
        finally:
            self.sock.close()

    def _hold(self) -> int:
        implicit = self.mail.port == IMPLICIT_TLS_PORT
        verified = bool(self.mail.username) or implicit
        context = self.mail.reach.contexts.make(tls.TlsSetting(verified))
        if implicit:
            self.sock = context.wrap_socket(self.sock, server_hostname=self.mail.host)
        client = _Client(self.sock)
        try:
            client.greet(self.mail.host)
            if not implicit and client.has_extn("starttls"):
                client.starttls(context=context)
                client.ehlo()
            elif not implicit and verified:
                raise NotDelivered(SendFailure.REFUSED, "starttls_missing")
            if self.mail.username:
                client.login(self.mail.username, self.mail.password)
            refused = client.send_message(self.whole, to_addrs=list(self.to))
            with suppress(smtplib.SMTPException, OSError):
                client.quit()
            return len(refused)
        finally:
            client.close()


class _Client(smtplib.SMTP):
    """SMTP client on a connected socket, with bounded replies."""

    def __init__(self, sock: socket.socket) -> None:
        self._connected = sock
        self._heard = _Budget(REPLIES_BYTES_MOST)
        super().__init__(local_hostname=_EHLO_NAME, timeout=SEND_SECONDS)

    def greet(self, host: str) -> None:
        # Host name for the certificate check.
        self._host = host
        code, said = self.connect(host, smtplib.SMTP_PORT)
        if code != 220:
            raise smtplib.SMTPConnectError(code, said)
        self.ehlo()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002
        return self._connected

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None:
            assert self.sock is not None
            self.file = _Heard(self.sock.makefile("rb"), self._heard)
        return super().getreply()


class _Budget:
    def __init__(self, left: int) -> None:
        self.left = left


class _Heard:
    """File of replies that fails when their total size exceeds the limit."""

    def __init__(self, file: BufferedIOBase, budget: _Budget) -> None:
        self._file = file
        self._budget = budget

    def readline(self, most: int = -1) -> bytes:
        line = self._file.readline(most)
        self._budget.left -= len(line)
        if self._budget.left < 0:
            raise OSError("the replies are too long")
        return line

    def close(self) -> None:
        self._file.close()


def _by_code(code: int, reason: str) -> NotDelivered:
    """Returns the failure for a reply code: 5xx is permanent (RFC 5321, 4.2.1), others retry."""
    verdict = SendFailure.REFUSED if 500 <= code <= 599 else SendFailure.RETRY
    return NotDelivered(verdict, f"{reason} {code}" if 200 <= code <= 599 else reason)
