"""AMQP 0-9-1 for one login and one look at a queue, each frame bounded before it is read.

Of what a server tells of itself nothing is decoded but what decides: its tables, which may hold one
another without end, are passed over. The session ends as the protocol wants it, since a server logs
each one that does not.
"""

import struct
from contextlib import suppress
from dataclasses import dataclass

from ..check.failure import TargetFailure
from ..check.result import FailureClass
from .bounded_reader import Reader

HEADER = b"AMQP\x00\x00\x09\x01"
FRAME_BYTES_MOST = 131_072
_METHOD, _HEARTBEAT, _END = 1, 8, 0xCE
_START, _START_OK, _TUNE, _TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
_OPEN, _OPEN_OK, _CLOSE, _CLOSE_OK = (10, 40), (10, 41), (10, 50), (10, 51)
_CHANNEL_OPEN, _CHANNEL_OPEN_OK = (20, 10), (20, 11)
_CHANNEL_CLOSE, _CHANNEL_CLOSE_OK = (20, 40), (20, 41)
_DECLARE, _DECLARE_OK = (50, 10), (50, 11)
_SESSION, _CHANNEL = 0, 1
_PASSIVE = 1
_MECHANISM = b"PLAIN"
# ACCESS_REFUSED, and NOT_ALLOWED, which is said of a virtual host that is not there or not ours.
_DENIED = frozenset({403, 530})

Method = tuple[int, int]


@dataclass(slots=True)
class AmqpSession:
    """A conversation on a stream, which stays the caller's to close."""

    reader: Reader

    async def log_in(self, user: str, password: str, vhost: str) -> None:
        """Raises `TargetFailure(auth_failed)`, with the reply code, if the server refuses."""
        await self.reader.send(HEADER)
        if _MECHANISM not in _mechanisms(await self._expect(_START)).split():
            raise TargetFailure(FailureClass.AUTH_FAILED)
        told = f"\x00{user}\x00{password}".encode()
        await self._send(
            _SESSION,
            _START_OK,
            # Without it a wrong password would be a connection that just ends.
            _table(_entry("capabilities", b"F", _table(_flag("authentication_failure_close")))),
            _short(_MECHANISM),
            _long(told),
            _short(b"en_US"),
        )
        tuned = await self._expect(_TUNE)
        if len(tuned) < 8:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        frame_most = int.from_bytes(tuned[2:6], "big") or FRAME_BYTES_MOST
        limits = struct.pack("!HIH", 1, min(frame_most, FRAME_BYTES_MOST), 0)
        await self._send(_SESSION, _TUNE_OK, limits)
        await self._send(_SESSION, _OPEN, _short(vhost.encode()), b"\x00\x00")
        await self._expect(_OPEN_OK)

    async def messages(self, queue: str) -> int:
        """How many stand ready in a queue that is there; nothing is declared."""
        await self._send(_CHANNEL, _CHANNEL_OPEN, b"\x00")
        await self._expect(_CHANNEL_OPEN_OK)
        asked = b"\x00\x00" + _short(queue.encode()) + bytes([_PASSIVE])
        await self._send(_CHANNEL, _DECLARE, asked, _table())
        told = await self._expect(_DECLARE_OK)
        at = 1 + told[0] if told else 0
        if len(told) < at + 8 or not told:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return int.from_bytes(told[at : at + 4], "big")

    async def close(self) -> None:
        """In order, where the server still listens; what it says to that changes nothing."""
        with suppress(TargetFailure):
            await self._send(_SESSION, _CLOSE, struct.pack("!HBHH", 200, 0, 0, 0))
            await self._expect(_CLOSE_OK)

    async def _expect(self, wanted: Method) -> bytes:
        """The arguments of the next method, which must be that one."""
        while True:
            head = await self.reader.exactly(7)
            kind, _, size = struct.unpack("!BHI", head)
            if kind not in (_METHOD, _HEARTBEAT) or size > FRAME_BYTES_MOST:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            payload = await self.reader.exactly(size + 1)
            if payload[-1] != _END or (kind == _METHOD and size < 4):
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            if kind == _METHOD:
                break
        method = struct.unpack("!HH", payload[:4])
        if method in (_CLOSE, _CHANNEL_CLOSE):
            await self._refused(method, int.from_bytes(payload[4:6], "big"))
        if method != wanted:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return payload[4:-1]

    async def _refused(self, method: Method, code: int) -> None:
        """Says that we heard it, and fails."""
        with suppress(TargetFailure):
            if method == _CLOSE:
                await self._send(_SESSION, _CLOSE_OK)
            else:
                await self._send(_CHANNEL, _CHANNEL_CLOSE_OK)
                await self.close()
        denied = code in _DENIED
        raise TargetFailure(
            FailureClass.AUTH_FAILED if denied else FailureClass.PROTOCOL_ERROR, code
        )

    async def _send(self, channel: int, method: Method, *arguments: bytes) -> None:
        payload = struct.pack("!HH", *method) + b"".join(arguments)
        head = struct.pack("!BHI", _METHOD, channel, len(payload))
        await self.reader.send(head + payload + bytes([_END]))


def _mechanisms(start: bytes) -> bytes:
    """After two numbers and a table comes the list, with a space between two."""
    at = 6 + int.from_bytes(start[2:6], "big")
    length = int.from_bytes(start[at : at + 4], "big")
    if len(start) < at + 4 + length:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return start[at + 4 : at + 4 + length]


def _short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _long(text: bytes) -> bytes:
    return struct.pack("!I", len(text)) + text


def _table(*entries: bytes) -> bytes:
    return _long(b"".join(entries))


def _entry(name: str, kind: bytes, value: bytes) -> bytes:
    return _short(name.encode()) + kind + value


def _flag(name: str) -> bytes:
    return _entry(name, b"t", b"\x01")
