"""PostgreSQL protocol 3.0 for one login and one statement. Each message is bounded.

libpq is not used: it reads a row of any size into memory before it returns it. It also repeats the
password hash as often as the server requests, without returning to the event loop. The server
chooses the proof of the password; clear text is sent only through TLS.
"""

import hashlib
import secrets
import struct
from contextlib import suppress
from dataclasses import dataclass

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ..bounded_reader import Reader
from ..egress import Egress
from ..scram import ITERATIONS_ON_LOOP_MOST, MECHANISM, BadChallenge, Scram

VERSION = 196_608
# Only rows and their descriptions are longer. Otherwise it is another protocol.
MESSAGE_LONGEST = 30_000
_LONG = (b"D", b"T", b"d")
_OK, _CLEAR, _MD5, _SASL, _SASL_GOES_ON, _SASL_ENDS = 0, 3, 5, 10, 11, 12
# Messages that can arrive at any time and are ignored: notices, parameters, cancel keys.
_ASIDE = frozenset(b"NSAKv")
_TIMED_OUT = b"57014"
_PRIVILEGE = b"42501"
_LOGIN = b"28"


class _Refused(TargetFailure):
    """Error response of a server that continues to read."""


@dataclass(slots=True)
class Row:
    """First column of a row: the type OID and the text, which is None for NULL."""

    oid: int
    text: str | None


@dataclass(slots=True)
class PostgresSession:
    """PostgreSQL connection on a stream. The caller closes the stream."""

    reader: Reader
    reach: Egress
    encrypted: bool
    # End of the server's certificate in µs since the epoch, if it was requested.
    cert_ends_at: int | None = None

    async def log_in(self, user: str, database: str, password: str) -> None:
        """Logs in, and returns when the server is ready.

        Raises: `TargetFailure(auth_failed)` if the server refuses.
        """
        said = {"user": user, "client_encoding": "UTF8", "application_name": self.reach.user_agent}
        if database:
            said["database"] = database
        pairs = b"".join(k.encode() + b"\x00" + v.encode() + b"\x00" for k, v in said.items())
        body = struct.pack("!i", VERSION) + pairs + b"\x00"
        await self.reader.send(struct.pack("!i", len(body) + 4) + body)
        await self._authenticate(user, password)
        await self._until(b"Z")

    async def begin(self, statements: str) -> None:
        """Opens a transaction. A user's statement must not be sent outside of one."""
        await self.reader.send(_message(b"Q", statements.encode() + b"\x00"))
        if await self._until(b"Z") != b"T":
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)

    async def first_row(self, statement: str) -> Row | None:
        """Returns at most one row of one statement, and rolls the transaction back.

        The rollback is sent in the same batch, so that a pooler in between keeps its connection.
        """
        await self.reader.send(
            b"".join(
                (
                    _message(b"P", b"\x00" + statement.encode() + b"\x00" + struct.pack("!h", 0)),
                    _message(b"B", b"\x00\x00" + struct.pack("!hhh", 0, 0, 0)),
                    _message(b"D", b"P\x00"),
                    _message(b"E", b"\x00" + struct.pack("!i", 1)),
                    _message(b"S"),
                    _message(b"Q", b"ROLLBACK\x00"),
                )
            )
        )
        row, oid, ends = None, 0, 0
        refused: TargetFailure | None = None
        while ends < 2:
            try:
                kind, body = await self._next()
            except TargetFailure as failure:
                if refused is not None or not isinstance(failure, _Refused):
                    raise refused or failure from None
                refused = failure
                continue
            if kind == b"T":
                oid = _first_type(body)
            elif kind == b"D" and row is None:
                row = Row(oid, _first_value(body))
            elif kind == b"Z":
                ends += 1
        if refused is not None:
            await self.end()
            raise refused
        return row

    async def end(self) -> None:
        """Sends Terminate in its own segment.

        Together with the statement, a pooler would treat it as a client that has disconnected.
        """
        with suppress(TargetFailure):
            await self.reader.send(_message(b"X"))

    async def _authenticate(self, user: str, password: str) -> None:
        kind, body = await self._authentication()
        if kind == _SASL:
            await self._prove(body, password)
            kind, body = await self._authentication()
        elif kind in (_CLEAR, _MD5):
            if not password or (kind == _CLEAR and not self.encrypted):
                raise TargetFailure(FailureClass.AUTH_FAILED)
            told = password.encode() if kind == _CLEAR else _md5(user, password, body)
            await self.reader.send(_message(b"p", told + b"\x00"))
            kind, body = await self._authentication()
        if kind != _OK:
            # Kerberos and other methods without a password.
            raise TargetFailure(FailureClass.AUTH_FAILED)

    async def _prove(self, offered: bytes, password: str) -> None:
        if not password or MECHANISM.encode() not in offered.split(b"\x00"):
            raise TargetFailure(FailureClass.AUTH_FAILED)
        exchange = Scram(password, secrets.token_urlsafe(18))
        first = exchange.first()
        length = struct.pack("!i", len(first))
        await self.reader.send(_message(b"p", MECHANISM.encode() + b"\x00" + length + first))
        try:
            exchange.challenged(await self._sasl(_SASL_GOES_ON))
        except BadChallenge as error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
        if exchange.iterations <= ITERATIONS_ON_LOOP_MOST:
            salted = exchange.salt()
        else:
            salted = await self.reach.in_thread(exchange.salt)
        await self.reader.send(_message(b"p", exchange.answer(salted)))
        if not exchange.proves(await self._sasl(_SASL_ENDS)):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)

    async def _sasl(self, wanted: int) -> bytes:
        kind, body = await self._authentication()
        if kind != wanted:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return body

    async def _authentication(self) -> tuple[int, bytes]:
        kind, body = await self._next()
        if kind != b"R" or len(body) < 4:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return struct.unpack("!i", body[:4])[0], body[4:]

    async def _until(self, wanted: bytes) -> bytes:
        while True:
            kind, body = await self._next()
            if kind == wanted:
                return body

    async def _next(self) -> tuple[bytes, bytes]:
        """Returns the next message that is not ignored.

        Raises: `TargetFailure` if it is an error.
        """
        while True:
            head = await self.reader.exactly(5)
            length = int.from_bytes(head[1:], "big") - 4
            if length < 0 or (length > MESSAGE_LONGEST and head[:1] not in _LONG):
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            body = await self.reader.exactly(length)
            if head[:1] == b"E":
                raise _Refused(_class_of(body))
            if head[0] not in _ASIDE:
                return head[:1], body


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _md5(user: str, password: str, salt: bytes) -> bytes:
    inner = hashlib.md5(password.encode() + user.encode(), usedforsecurity=False).hexdigest()
    outer = hashlib.md5(inner.encode() + salt[:4], usedforsecurity=False).hexdigest()
    return b"md5" + outer.encode()


def _class_of(error: bytes) -> FailureClass:
    """Returns the failure class by the SQLSTATE of an ErrorResponse. Ignores the text."""
    fields = {field[:1]: field[1:] for field in error.split(b"\x00") if field}
    state = fields.get(b"C", b"")
    if state.startswith(_LOGIN) or state == _PRIVILEGE:
        return FailureClass.AUTH_FAILED
    return FailureClass.TIMEOUT if state == _TIMED_OUT else FailureClass.PROTOCOL_ERROR


def _first_type(description: bytes) -> int:
    """Returns the type of the first column of a RowDescription, or 0 without columns."""
    if description[:2] in (b"", b"\x00\x00"):
        return 0
    end = description.find(b"\x00", 2)
    if end < 0 or len(description) < end + 19:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return int.from_bytes(description[end + 7 : end + 11], "big")


def _first_value(row: bytes) -> str | None:
    """Returns the first column of a DataRow, or None for NULL or without columns."""
    if row[:2] == b"\x00\x00":
        return None
    if len(row) < 6:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    length = int.from_bytes(row[2:6], "big", signed=True)
    if length < -1 or len(row) < 6 + length:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return None if length < 0 else row[6 : 6 + length].decode("utf-8", "replace")
