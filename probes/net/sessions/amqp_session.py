"""AMQP 0-9-1 client for one login and one passive queue declaration.

pamqp encodes and decodes the frames. The session bounds each frame before it reads it: pamqp
decodes nested tables in a time that grows with the square of their length. The session closes as
the protocol requires, because a server logs each connection that does not.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from pamqp import base, commands, constants, exceptions, frame, header, heartbeat

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ..bounded_reader import Reader

# Largest frame that RabbitMQ accepts before the limits are negotiated (the protocol: 4096). Later
# expected frames are shorter. pamqp decodes such a frame in at most 5 ms, and a frame of 128 KiB in
# one second.
FRAME_BYTES_MOST: Final = 8_192
# Limit offered to the server. Brokers refuse a client whose limit is below their own.
_FRAME_BYTES_ANNOUNCED: Final = 131_072
_FRAMES: Final = (constants.FRAME_METHOD, constants.FRAME_HEARTBEAT)
_SESSION, _CHANNEL = 0, 1
_MECHANISM: Final = "PLAIN"
# ACCESS_REFUSED, and NOT_ALLOWED: the virtual host does not exist or is not permitted.
_DENIED: Final = frozenset({403, 530})
# Exceptions that pamqp raises for bytes that it cannot decode.
_UNREADABLE: Final = (exceptions.UnmarshalingException, RecursionError, ValueError)

M = TypeVar("M", bound=base.Frame)


class _Open(commands.Connection.Open):
    """Opens a virtual host of any name. pamqp allows 127 characters, RabbitMQ 255 bytes."""

    def validate(self) -> None:
        pass


class _Declare(commands.Queue.Declare):
    """Names a queue as brokers do. pamqp allows only some ASCII punctuation."""

    def validate(self) -> None:
        pass


@dataclass(slots=True)
class AmqpSession:
    """AMQP connection on a stream. The caller closes the stream."""

    reader: Reader

    async def log_in(self, user: str, password: str, vhost: str) -> None:
        """Logs in and opens the virtual host.

        Raises: `TargetFailure(auth_failed)`, with the reply code, if the server refuses.
        """
        await self.reader.send(header.ProtocolHeader().marshal())
        start = await self._expect(commands.Connection.Start)
        if _MECHANISM not in str(start.mechanisms).split():
            raise TargetFailure(FailureClass.AUTH_FAILED)
        await self._send(
            _SESSION,
            commands.Connection.StartOk(
                # Without this capability, a wrong password only closes the connection.
                client_properties={"capabilities": {"authentication_failure_close": True}},
                mechanism=_MECHANISM,
                response=f"\x00{user}\x00{password}",
            ),
        )
        tuned = await self._expect(commands.Connection.Tune)
        frame_max = min(tuned.frame_max or _FRAME_BYTES_ANNOUNCED, _FRAME_BYTES_ANNOUNCED)
        await self._send(_SESSION, commands.Connection.TuneOk(1, frame_max, 0))
        await self._send(_SESSION, _Open(vhost))
        await self._expect(commands.Connection.OpenOk)

    async def messages(self, queue: str) -> int:
        """Returns the number of ready messages in an existing queue. Declares no queue."""
        await self._send(_CHANNEL, commands.Channel.Open())
        await self._expect(commands.Channel.OpenOk)
        await self._send(_CHANNEL, _Declare(queue=queue, passive=True))
        declared = await self._expect(commands.Queue.DeclareOk)
        return declared.message_count or 0

    async def close(self) -> None:
        """Closes the connection by the protocol. Ignores every failure."""
        with suppress(TargetFailure):
            await self._send(_SESSION, commands.Connection.Close(200, "", 0, 0))
            await self._expect(commands.Connection.CloseOk)

    async def _expect(self, wanted: type[M]) -> M:
        """Returns the next method. Fails if its type is not `wanted`."""
        while isinstance(method := await self._receive(), heartbeat.Heartbeat):
            pass
        if isinstance(method, commands.Connection.Close | commands.Channel.Close):
            await self._refused(method)
        if not isinstance(method, wanted):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        return method

    async def _receive(self) -> frame.FrameTypes:
        head = await self.reader.exactly(constants.FRAME_HEADER_SIZE)
        kind, _, size = frame.frame_parts(head)
        if kind not in _FRAMES or size is None or size > FRAME_BYTES_MOST:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        rest = await self.reader.exactly(size + 1)
        try:
            return frame.unmarshal(head + rest)[2]
        except _UNREADABLE as error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error

    async def _refused(self, close: commands.Connection.Close | commands.Channel.Close) -> None:
        """Acknowledges the close and raises `TargetFailure` with the reply code."""
        with suppress(TargetFailure):
            if isinstance(close, commands.Connection.Close):
                await self._send(_SESSION, commands.Connection.CloseOk())
            else:
                await self._send(_CHANNEL, commands.Channel.CloseOk())
                await self.close()
        denied = close.reply_code in _DENIED
        raise TargetFailure(
            FailureClass.AUTH_FAILED if denied else FailureClass.PROTOCOL_ERROR, close.reply_code
        )

    async def _send(self, channel: int, method: base.Frame) -> None:
        await self.reader.send(frame.marshal(method, channel))
