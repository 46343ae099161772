"""One question to one nameserver, and its whole answer, by datagram or by stream.

An answer counts only with our id and our question in it (RFC 5452). A datagram that was lost is
sent again, so that a lost packet is not called an outage; an answer that was cut short is asked for
again by TCP (RFC 7766).
"""

from functools import partial

import dns.flags
import dns.message
import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from .bounded_reader import Reader, Stream
from .dns_client import UDP_BYTES_MOST, is_long, is_too_long, read_message
from .egress import Egress
from .sockets import class_of

AGAIN_SECONDS = 1.5
MESSAGE_BYTES_MOST = 65_535


async def by_datagram(
    sock: trio.socket.SocketType, query: dns.message.QueryMessage, reach: Egress, watch: Stopwatch
) -> dns.message.Message:
    """The answer, perhaps cut short. The socket is connected; it stays the caller's to close."""
    wire = query.to_wire()
    try:
        while True:
            await sock.send(wire)
            with trio.move_on_after(AGAIN_SECONDS):
                return await _datagram(sock, query, reach, watch)
    except OSError as error:
        raise TargetFailure(class_of(error)) from error


async def by_stream(
    stream: Stream, query: dns.message.QueryMessage, reach: Egress, watch: Stopwatch
) -> dns.message.Message:
    """The answer on a stream, each message behind its length (RFC 7766, 7858)."""
    wire = query.to_wire()
    reader = Reader(stream, watch, MESSAGE_BYTES_MOST + 2)
    await reader.send(len(wire).to_bytes(2, "big") + wire)
    length = int.from_bytes(await reader.exactly(2), "big")
    return await answer_to(query, await reader.exactly(length), reach)


async def answer_to(
    query: dns.message.QueryMessage, wire: bytes, reach: Egress
) -> dns.message.Message:
    """`TargetFailure(protocol_error)` where it is no answer to that question."""
    if is_too_long(wire):
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    read = partial(read_message, wire)
    message = await reach.in_thread_alone(read) if is_long(wire) else read()
    if message is None or not query.is_response(message):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return message


def cut_short(message: dns.message.Message) -> bool:
    return bool(message.flags & dns.flags.TC)


async def _datagram(
    sock: trio.socket.SocketType, query: dns.message.QueryMessage, reach: Egress, watch: Stopwatch
) -> dns.message.Message:
    """A stranger who forges the peer's address does not know the id: without it, it is ignored."""
    our_id = query.id.to_bytes(2, "big")
    while True:
        wire = await sock.recv(UDP_BYTES_MOST)
        if wire[:2] == our_id:
            watch.done()
            return await answer_to(query, wire, reach)
