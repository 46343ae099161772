"""Upgrade of one connection to TLS: smtp (RFC 3207), imap (RFC 9051), postgres.

Bytes between the peer's consent and the handshake would be read as if they had been encrypted. A
peer that sends any is refused.
"""

from collections.abc import Awaitable, Callable

import trio

from ...check.failure import TargetFailure
from ...check.phase_timer import Stopwatch
from ...check.result import FailureClass
from ..bounded_reader import Reader
from .smtp_session import SmtpSession

CONVERSATION_BYTES_MOST = 16 * 1024
# SSLRequest: length and code (PostgreSQL's message formats).
SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


async def start_tls(stream: trio.SocketStream, protocol: str, watch: Stopwatch) -> None:
    """Prepares the stream for the TLS handshake.

    Raises: `TargetFailure`, with `tls_error` if the peer offers no TLS, or `protocol_error` if it
    does not follow `protocol`.
    """
    reader = Reader(stream, watch, CONVERSATION_BYTES_MOST)
    await _PROTOCOLS[protocol](reader)
    if reader.ahead:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)


async def _smtp(reader: Reader) -> None:
    session = SmtpSession(reader)
    await session.greet()
    await session.start_tls()


async def _imap(reader: Reader) -> None:
    if not (await reader.line()).upper().startswith(b"* OK"):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    await reader.send(b"a1 STARTTLS\r\n")
    while True:
        line = (await reader.line()).upper()
        if line.startswith(b"A1 OK"):
            return
        if line.startswith((b"A1 NO", b"A1 BAD")):
            raise TargetFailure(FailureClass.TLS_ERROR)
        if not line.startswith(b"* "):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)


async def _postgres(reader: Reader) -> None:
    await reader.send(SSL_REQUEST)
    said = await reader.exactly(1)
    if said == b"N":
        raise TargetFailure(FailureClass.TLS_ERROR)
    if said != b"S":
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)


_PROTOCOLS: dict[str, Callable[[Reader], Awaitable[None]]] = {
    "smtp": _smtp,
    "imap": _imap,
    "postgres": _postgres,
}
