"""Query of one nameserver: a connected UDP socket, and TCP for truncated answers.

The socket is connected, so that a closed port fails immediately and packets of other hosts never
arrive. An answer counts only with our id and our question (RFC 5452).
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import trio

from ..check.failure import LocalFailure
from ..check.result import UnknownReason
from .resolver_files import Nameserver
from .sockets import connected

UDP_BYTES_MOST = 65_535
RECORDS_ON_LOOP_MOST = 50
RECORDS_MOST = 2_000
RECORD_BYTES_LEAST = 11
BYTES_ON_LOOP_MOST = 4_096
# Wait for the other family's answer after the first answer (RFC 8305, 3).
OTHER_FAMILY_SECONDS = 0.05
ROOT_SECONDS = 0.5
LONGEST_TTL = 86_400


class DnsError(StrEnum):
    """Reason why a nameserver gave no answer."""

    SILENT = "silent"
    SERVER_FAILURE = "server_failure"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class DnsAnswer:
    """Answer of one nameserver.

    `trouble` is None and `addresses` is empty if the nameserver states that no address exists.
    """

    addresses: list[str] = field(default_factory=list)
    ttl_seconds: int = LONGEST_TTL
    trouble: DnsError | None = None


class Conversation:
    """Queries of one lookup to one nameserver.

    `root_answered` distinguishes a broken domain from a dead resolver.
    """

    def __init__(
        self, server: Nameserver, name: dns.name.Name, types: Iterable[dns.rdatatype.RdataType]
    ) -> None:
        self._server = server
        self._name = name
        self._types = tuple(types)
        self._pending: dict[int, dns.message.QueryMessage] = {}
        self._root: dns.message.QueryMessage | None = None
        self.root_answered = False
        self.answer = DnsAnswer()
        self._failed = False
        self._nothing = False

    async def ask(self, patience_seconds: float) -> DnsAnswer:
        """Returns the nameserver's answer. Queries the root after a failure or a timeout."""
        try:
            sock = await connected(self._server.address, self._server.port, kind=socket.SOCK_DGRAM)
        except (OSError, LocalFailure) as error:
            if isinstance(error, LocalFailure) and error.reason is UnknownReason.LOCAL_RESOURCES:
                raise
            self.answer.trouble = DnsError.UNREACHABLE
            return self.answer
        with sock:
            try:
                await self._converse(sock, patience_seconds)
            except OSError:
                self.answer.trouble = DnsError.UNREACHABLE
        return self.answer

    async def _converse(self, sock: trio.socket.SocketType, patience_seconds: float) -> None:
        for rdtype in self._types:
            query = dns.message.make_query(self._name, rdtype)
            self._pending[query.id] = query
            await sock.send(query.to_wire())
        with trio.move_on_after(patience_seconds) as scope:
            await self._receive(sock, scope)
        if self.answer.addresses or (self._nothing and not self._failed and not self._pending):
            return
        self.answer.trouble = DnsError.SERVER_FAILURE if self._failed else DnsError.SILENT
        self._root = dns.message.make_query(dns.name.root, dns.rdatatype.NS)
        self._pending.clear()
        await sock.send(self._root.to_wire())
        with trio.move_on_after(ROOT_SECONDS) as scope:
            await self._receive(sock, scope)

    async def _receive(self, sock: trio.socket.SocketType, scope: trio.CancelScope) -> None:
        while self._pending or (self._root is not None and not self.root_answered):
            wire = await sock.recv(UDP_BYTES_MOST)
            message = read_first(wire)
            if message is None or self._is_root(message):
                continue
            query = self._pending.get(message.id)
            if query is None or not query.is_response(message):
                continue
            if message.flags & dns.flags.TC:
                message = await self._by_tcp(query)
            del self._pending[query.id]
            if message is None or not self._take(message):
                self._failed = True
            elif self.answer.addresses:
                scope.deadline = min(scope.deadline, trio.current_time() + OTHER_FAMILY_SECONDS)
            if self._nothing and message is not None and message.rcode() == dns.rcode.NXDOMAIN:
                self._pending.clear()

    def _is_root(self, message: dns.message.Message) -> bool:
        if self._root is None or not self._root.is_response(message):
            return False
        self.root_answered = message.rcode() == dns.rcode.NOERROR
        return True

    def _take(self, message: dns.message.Message) -> bool:
        """Stores the addresses of an answer and follows its CNAMEs. Returns False on failure."""
        if message.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return False
        assert isinstance(message, dns.message.QueryMessage)
        try:
            chain = message.resolve_chaining()
        except dns.exception.DNSException:
            return False
        if chain.answer is None:
            self._nothing = True
            return True
        self.answer.addresses += [record.address for record in chain.answer]
        self.answer.ttl_seconds = min(self.answer.ttl_seconds, chain.minimum_ttl)
        return True

    async def _by_tcp(self, query: dns.message.QueryMessage) -> dns.message.Message | None:
        """Repeats the question over TCP, each message after its length (RFC 7766)."""
        wire = query.to_wire()
        try:
            sock = await connected(self._server.address, self._server.port)
            with sock:
                stream = trio.SocketStream(sock)
                await stream.send_all(len(wire).to_bytes(2, "big") + wire)
                length = int.from_bytes(await _exactly(stream, 2), "big")
                message = read_first(await _exactly(stream, length))
        except (OSError, trio.BrokenResourceError, LocalFailure):
            return None
        return message if message is not None and query.is_response(message) else None


async def _exactly(stream: trio.SocketStream, length: int) -> bytes:
    """Returns `length` bytes, or fewer if the stream ended."""
    data = b""
    while len(data) < length:
        more = await stream.receive_some(length - len(data))
        if not more:
            break
        data += more
    return data


def is_too_long(wire: bytes) -> bool:
    """Returns whether the message has more records than are ever read."""
    return min(_records(wire), len(wire) // RECORD_BYTES_LEAST) > RECORDS_MOST


def is_long(wire: bytes) -> bool:
    """Returns whether parsing the whole message would block the event loop.

    A record with a name of 120 labels takes a seventh of a millisecond.
    """
    return len(wire) > BYTES_ON_LOOP_MOST or _records(wire) > RECORDS_ON_LOOP_MOST


def read_message(wire: bytes) -> dns.message.Message | None:
    """Returns the parsed message, or None if the bytes are not a message."""
    try:
        return dns.message.from_wire(wire, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError):
        return None


def read_first(wire: bytes) -> dns.message.Message | None:
    """Parses a message like `read_message`, but at most its first records.

    These are more records than addresses are ever tried.
    """
    if _records(wire) > RECORDS_ON_LOOP_MOST:
        answers = min(int.from_bytes(wire[6:8], "big"), RECORDS_ON_LOOP_MOST)
        wire = wire[:6] + answers.to_bytes(2, "big") + bytes(4) + wire[12:]
    return read_message(wire)


def _records(wire: bytes) -> int:
    """Returns the record count of the header, including questions."""
    return sum(int.from_bytes(wire[at : at + 2], "big") for at in (4, 6, 8, 10))
