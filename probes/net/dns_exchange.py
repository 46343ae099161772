"""One question to one nameserver and its complete answer, by datagram or by stream, and the same
question to the nameservers of this host.

An answer counts only with our id and our question (RFC 5452). A lost datagram is sent again, so
that a lost packet is not reported as an outage. The caller repeats a truncated answer over TCP (RFC
7766).
"""

from functools import partial

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase, UnknownReason
from .address_query import PATIENCE_SECONDS
from .bounded_reader import Reader, Stream
from .dns_client import ROOT_SECONDS, UDP_BYTES_MOST, is_long, is_too_long, read_message
from .egress import Egress
from .resolver_files import Nameserver
from .sockets import class_of, connected

AGAIN_SECONDS = 1.5
MESSAGE_BYTES_MOST = 65_535
# Codes of an answer that states which records exist.
ANSWERED = (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)


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


async def ask_nameservers(
    query: dns.message.QueryMessage, transport: str, reach: Egress, watch: Stopwatch
) -> dns.message.Message:
    """Asks the nameservers of this host, by datagram unless `transport` is tcp.

    Returns the answer, or the failure of a nameserver that answers for the root. Raises
    `TargetFailure` if only the root is answered, `LocalFailure` if no nameserver answers.
    """
    watch.begin(ProbePhase.DNS)
    failed: dns.message.Message | None = None
    for patience_seconds in PATIENCE_SECONDS:
        silent = False
        for server in reach.resolver.nameservers():
            message = await _try(query, server, transport, reach, patience_seconds)
            if message is not None and message.rcode() in ANSWERED:
                watch.done()
                return message
            root = dns.message.make_query(dns.name.root, dns.rdatatype.NS)
            answer = await _try(root, server, transport, reach, ROOT_SECONDS)
            if answer is not None and answer.rcode() == dns.rcode.NOERROR:
                watch.resolver_alive = True
                failed = message or failed
            silent = silent or message is None
        if not silent:
            break
    if failed is not None:
        watch.done()
        return failed
    if watch.resolver_alive:
        raise TargetFailure(FailureClass.DNS_ERROR)
    raise LocalFailure(UnknownReason.RESOLVER_DEAD)


async def _try(
    query: dns.message.QueryMessage,
    server: Nameserver,
    transport: str,
    reach: Egress,
    patience_seconds: float,
) -> dns.message.Message | None:
    """Returns the answer of a nameserver of this host, or None if it fails or takes too long."""
    unwatched = Stopwatch()
    with trio.move_on_after(patience_seconds):
        try:
            if transport != "tcp":
                kind = trio.socket.SOCK_DGRAM
                with await connected(server.address, server.port, kind=kind) as sock:
                    message = await by_datagram(sock, query, reach, unwatched)
                if not cut_short(message):
                    return message
            with await connected(server.address, server.port) as sock:
                return await by_stream(trio.SocketStream(sock), query, reach, unwatched)
        except LocalFailure as trouble:
            if trouble.reason is UnknownReason.LOCAL_RESOURCES:
                raise
        except (TargetFailure, OSError):
            return None
    return None


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
