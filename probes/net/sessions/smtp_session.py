"""SMTP up to the login: greeting, EHLO, STARTTLS (RFC 3207) and AUTH (RFC 4954). It sends no mail.

The caller upgrades the stream after `start_tls` and continues with a new session on it.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ..bounded_reader import Reader

# EHLO name for a mail server, which requires an address literal if there is no host name.
EHLO_NAME: Final = "[127.0.0.1]"
# Replies to AUTH that refuse the credentials or ask for others (RFC 4954, 4 and 6).
_REFUSED: Final = frozenset({432, 530, 534, 535, 538})


class SmtpSession:
    """Conversation on one stream.

    Every method raises `TargetFailure`: with `protocol_error` and the code for another reply than
    the expected one.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # Lines of the reply to EHLO after the first, in upper case.
        self._extensions: Sequence[bytes] = ()

    async def greet(self) -> str:
        """Reads the greeting, says EHLO, and returns the text of the greeting."""
        _, texts = await self._reply(220)
        await self.hello()
        return b"\n".join(texts).decode("utf-8", "replace")

    async def hello(self) -> None:
        """Says EHLO, which a client repeats after STARTTLS."""
        _, texts = await self._ask(f"EHLO {EHLO_NAME}", 250)
        self._extensions = [text.strip().upper() for text in texts[1:]]

    async def start_tls(self) -> None:
        """Requests TLS. Raises: `tls_error` if the server does not offer it or refuses."""
        if b"STARTTLS" not in self._extensions:
            raise TargetFailure(FailureClass.TLS_ERROR)
        code, _ = await self._ask("STARTTLS")
        if code != 220:
            raise TargetFailure(FailureClass.TLS_ERROR, code)

    async def log_in(self, username: str, password: str) -> None:
        """Logs in by PLAIN or LOGIN.

        Raises: `auth_failed` if the server refuses, and `protocol_error` if it offers neither.
        """
        offered = {
            mechanism
            for line in self._extensions
            if line.startswith((b"AUTH ", b"AUTH="))
            for mechanism in line[5:].split()
        }
        if b"PLAIN" in offered:
            await self._prove("AUTH PLAIN", f"\0{username}\0{password}", 235)
        elif b"LOGIN" in offered:
            await self._prove("AUTH LOGIN", "", 334)
            await self._prove("", username, 334)
            await self._prove("", password, 235)
        else:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)

    async def _prove(self, command: str, text: str, wanted: int) -> None:
        words = [command, b64encode(text.encode()).decode()]
        code, _ = await self._ask(" ".join(word for word in words if word))
        if code in _REFUSED:
            raise TargetFailure(FailureClass.AUTH_FAILED, code)
        if code != wanted:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR, code)

    async def _ask(self, line: str, wanted: int | None = None) -> tuple[int, list[bytes]]:
        await self._reader.send(f"{line}\r\n".encode())
        return await self._reply(wanted)

    async def _reply(self, wanted: int | None) -> tuple[int, list[bytes]]:
        """Returns the code and the texts of a reply, also of several lines (RFC 5321, 4.2.1)."""
        texts: list[bytes] = []
        mark = b"-"
        code = b""
        while mark == b"-":
            line = await self._reader.line()
            code, mark = line[:3], line[3:4]
            if len(code) < 3 or not code.isdigit() or mark not in (b"-", b" ", b""):
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            texts.append(line[4:])
        if wanted is not None and int(code) != wanted:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR, int(code))
        return int(code), texts
