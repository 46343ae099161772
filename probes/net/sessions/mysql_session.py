"""MySQL client protocol for one login and one statement. Each packet is bounded.

PyMySQL is not used (docs/adr/0008). The session sends the server a proof of the password
(mysql_native_password, caching_sha2_password). It sends the password itself only through TLS. It
never encrypts the password with a key received in clear text, because an attacker on the path could
have sent that key.
"""

import hashlib
import struct
from contextlib import suppress
from dataclasses import dataclass, field

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ..bounded_reader import Reader

PACKET_BYTES_MOST = 16 * 1024
# Packets from a server in one login: three if it switches the plugin once. MariaDB switches to each
# plugin of an account in turn.
LOGIN_PACKETS_MOST = 10
# Capabilities by their protocol names. LOCAL_FILES, with which a server reads client files, and
# MULTI_STATEMENTS are never set.
CONNECT_WITH_DB, PROTOCOL_41, SSL, TRANSACTIONS = 1 << 3, 1 << 9, 1 << 11, 1 << 13
SECURE_CONNECTION, PLUGIN_AUTH = 1 << 15, 1 << 19
_ALWAYS = 1 | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION
_NEEDED = PROTOCOL_41 | SECURE_CONNECTION
_UTF8MB4 = 45
_LARGEST = 2**24 - 1
_OK, _MORE, _LOCAL_INFILE, _SWITCH, _ERROR = 0x00, 0x01, 0xFB, 0xFE, 0xFF
_NULL = 0xFB
_FAST, _FULL = b"\x03", b"\x04"
_NATIVE, _CACHING = "mysql_native_password", "caching_sha2_password"
# These plugins send the password unencrypted.
_CLEAR = frozenset({"mysql_clear_password", "sha256_password", "dialog"})
_QUIT, _QUERY = 0x01, 0x03
UNKNOWN_VARIABLE = 1193
# Access denied: at login; to a database, table, column or command; an expired account or password;
# a host that may not connect.
_DENIED = frozenset({1044, 1045, 1130, 1142, 1143, 1227, 1370, 1698, 1820, 1862, 3118, 4151})
_TIMED_OUT = frozenset({1969, 3024})


@dataclass(slots=True)
class Value:
    """First column of a row: the type number and the text, which is None for NULL."""

    type: int
    text: str | None


@dataclass(slots=True)
class Greeting:
    version: str
    capabilities: int
    nonce: bytes = field(repr=False)
    plugin: str


@dataclass(slots=True)
class MysqlSession:
    """MySQL connection on a stream. The caller closes the stream."""

    reader: Reader
    encrypted: bool = False
    # Sequence number of the next packet, in either direction.
    number: int = 0
    # End of the server's certificate in µs since the epoch, if it was requested.
    cert_ends_at: int | None = None

    async def greeting(self) -> Greeting:
        try:
            return _read_greeting(await self._packet())
        except (IndexError, struct.error) as error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error

    async def ask_for_tls(self) -> None:
        """Requests TLS. The caller then does the handshake and creates a new reader."""
        await self._send(struct.pack("<IIB23x", _ALWAYS | PLUGIN_AUTH | SSL, _LARGEST, _UTF8MB4))

    async def log_in(self, greeting: Greeting, user: str, database: str, password: str) -> None:
        """Logs in, and returns when the server is ready.

        Raises: `TargetFailure(auth_failed)` if the server refuses.
        """
        has_plugins = greeting.capabilities & PLUGIN_AUTH
        plugin = greeting.plugin if greeting.plugin in (_NATIVE, _CACHING) else _NATIVE
        told = _proof(plugin, password, greeting.nonce)
        capabilities = _ALWAYS | has_plugins | (CONNECT_WITH_DB if database else 0)
        capabilities |= SSL if self.encrypted else 0
        parts = [struct.pack("<IIB23x", capabilities, _LARGEST, _UTF8MB4)]
        parts += [user.encode(), b"\x00", bytes([len(told)]), told]
        parts += [database.encode(), b"\x00"] if database else []
        parts += [plugin.encode(), b"\x00"] if has_plugins else []
        await self._send(b"".join(parts))
        for _ in range(LOGIN_PACKETS_MOST):
            packet = await self._packet()
            if packet[0] == _OK:
                return
            if packet[0] == _SWITCH:
                await self._switch(packet, password)
            elif packet[0] != _MORE:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            elif packet[1:] == _FULL:
                await self._send_password(password)
            elif packet[1:] != _FAST:
                # A public key of the server, which was not requested.
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)

    async def command(self, statement: str) -> None:
        """Executes a fixed statement that returns no rows."""
        if (await self._ask(statement))[0] != _OK:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)

    async def first_value(self, statement: str) -> Value | None:
        """Returns the first column of the first row, or None if there is no row."""
        head = await self._ask(statement)
        if head[0] == _OK:
            return None
        try:
            columns, _ = _length(head, 0)
            if not columns:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            kind = _column_type(await self._packet())
            for _ in range(columns - 1):
                await self._packet()
            if not _ends(await self._packet()):
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            value = None
            while not _ends(packet := await self._packet(row=True)):
                if value is None:
                    value = Value(kind, _text(packet))
            return value
        except (IndexError, struct.error) as error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error

    async def quit(self) -> None:
        """Sends COM_QUIT. Without it the server counts an aborted client."""
        self.number = 0
        with suppress(TargetFailure):
            await self._send(bytes([_QUIT]))

    async def _ask(self, statement: str) -> bytes:
        self.number = 0
        await self._send(bytes([_QUERY]) + statement.encode())
        head = await self._packet()
        if head[0] in (_LOCAL_INFILE, _SWITCH):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return head

    async def _switch(self, packet: bytes, password: str) -> None:
        name, _, nonce = packet[1:].partition(b"\x00")
        plugin = name.decode("ascii", "replace")
        if plugin in _CLEAR:
            await self._send_password(password)
        elif plugin in (_NATIVE, _CACHING):
            await self._send(_proof(plugin, password, nonce.removesuffix(b"\x00")))
        else:
            # Kerberos, ed25519, the hash before 4.1, and other unsupported plugins.
            raise TargetFailure(FailureClass.AUTH_FAILED)

    async def _send_password(self, password: str) -> None:
        if not self.encrypted or not password:
            raise TargetFailure(FailureClass.AUTH_FAILED)
        await self._send(password.encode() + b"\x00")

    async def _send(self, payload: bytes) -> None:
        assert len(payload) < _LARGEST, "what we send is short"
        await self.reader.send(struct.pack("<I", len(payload) | self.number << 24) + payload)
        self.number = (self.number + 1) % 256

    async def _packet(self, *, row: bool = False) -> bytes:
        """Returns the next packet, which is never empty.

        Raises: `TargetFailure` if it is an error packet.
        """
        head = int.from_bytes(await self.reader.exactly(4), "little")
        length = head & _LARGEST
        if not length or head >> 24 != self.number or (length > PACKET_BYTES_MOST and not row):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        self.number = (self.number + 1) % 256
        packet = await self.reader.exactly(length)
        if packet[0] == _ERROR:
            number = int.from_bytes(packet[1:3], "little")
            raise TargetFailure(_class_of(number), number)
        return packet


def _read_greeting(packet: bytes) -> Greeting:
    """Parses a greeting of protocol 10, used since 3.21. Refuses servers before 4.1."""
    if packet[0] != 10:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    end = packet.index(b"\x00", 1) if b"\x00" in packet[1:] else len(packet)
    at = end + 5
    nonce, low = packet[at : at + 8], struct.unpack_from("<H", packet, at + 9)[0]
    high, length = struct.unpack_from("<HB", packet, at + 14)
    rest = packet[at + 27 :]
    size = max(12, length - 9)
    capabilities = low | high << 16
    if capabilities & _NEEDED != _NEEDED:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    plugin = rest[size + 1 :].partition(b"\x00")[0] if capabilities & PLUGIN_AUTH else b""
    return Greeting(
        version=packet[1:end].decode("utf-8", "replace"),
        capabilities=capabilities,
        nonce=nonce + rest[:size],
        plugin=plugin.decode("ascii", "replace"),
    )


def _proof(plugin: str, password: str, nonce: bytes) -> bytes:
    """Returns hash(p) ⊕ hash(hash(hash(p)), nonce), or b"" for an empty password."""
    if not password:
        return b""
    once = _hashed(plugin, password.encode())
    twice = _hashed(plugin, once)
    mask = _hashed(plugin, nonce + twice if plugin == _NATIVE else twice + nonce)
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


def _hashed(plugin: str, data: bytes) -> bytes:
    name = "sha1" if plugin == _NATIVE else "sha256"
    return hashlib.new(name, data, usedforsecurity=False).digest()


def _class_of(number: int) -> FailureClass:
    if number in _DENIED:
        return FailureClass.AUTH_FAILED
    return FailureClass.TIMEOUT if number in _TIMED_OUT else FailureClass.PROTOCOL_ERROR


def _ends(packet: bytes) -> bool:
    return packet[0] == _SWITCH and len(packet) < 9


def _length(packet: bytes, at: int) -> tuple[int, int]:
    """Returns a length-encoded integer and the offset of its end."""
    first = packet[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    if size is None or len(packet) < at + 1 + size:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return int.from_bytes(packet[at + 1 : at + 1 + size], "little"), at + 1 + size


def _column_type(definition: bytes) -> int:
    """Returns the type: after six strings, a length, a character set and a width."""
    at = 0
    for _ in range(6):
        length, at = _length(definition, at)
        at += length
    return definition[at + 7]


def _text(row: bytes) -> str | None:
    if row[0] == _NULL:
        return None
    length, at = _length(row, 0)
    if len(row) < at + length:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return row[at : at + length].decode("utf-8", "replace")
