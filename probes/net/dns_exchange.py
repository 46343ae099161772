"""One question to one nameserver and its complete answer, by datagram or by stream.

An answer counts only with our id and our question (RFC 5452). A lost datagram is sent again, so
that a lost packet is not reported as an outage. The caller repeats a truncated answer over TCP (RFC
7766).
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
    """Returns the answer, possibly truncated.

    The socket must be connected. The caller closes it.
    """
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
    """Returns the answer on a stream, each message after its length (RFC 7766, 7858)."""
    wire = query.to_wire()
    reader = Reader(stream, watch, MESSAGE_BYTES_MOST + 2)
    await reader.send(len(wire).to_bytes(2, "big") + wire)
    length = int.from_bytes(await reader.exactly(2), "big")
    return await answer_to(query, await reader.exactly(length), reach)


async def answer_to(
    query: dns.message.QueryMessage, wire: bytes, reach: Egress
) -> dns.message.Message:
    """Parses the answer to `query`.

    Raises: `TargetFailure(protocol_error)` if it is not an answer to this question, and
    `TargetFailure(response_too_large)` if it has too many records.
    """
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
    """Returns the next answer with our id.

    Other datagrams are ignored: an attacker who forges the peer's address does not know the id.
    """
    our_id = query.id.to_bytes(2, "big")
    while True:
        wire = await sock.recv(UDP_BYTES_MOST)
        if wire[:2] == our_id:
            watch.done()
            return await answer_to(query, wire, reach)
