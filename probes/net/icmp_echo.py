"""ICMP echo to one address. Accepts only replies from it, and only to its own requests.

Uses a datagram socket if net.ipv4.ping_group_range allows it, else a raw socket, which requires
CAP_NET_RAW. The kernel's error queue reports the echoes that the network could not deliver. Linux
only.
"""

import os
import socket
import struct
import sys
from itertools import count
from types import TracebackType

import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.result import UnknownReason
from .sockets import class_of, connected_plainly, trouble_at_once

# With the header of eight bytes, this is the usual size of a ping.
PAYLOAD_BYTES = 56
TOKEN_BYTES = 16
# Packets read per call, so that a flood does not block the event loop.
PACKETS_AT_ONCE = 64
# The next system call returns the error of an earlier echo. The send is then repeated.
_SENDS_MOST = 4
_PACKET_BYTES_MOST = 2_048
_HEADER = struct.Struct("!BBHHH")

# Constants of the Linux headers that Python does not define.
_SOL_RAW, _ICMP_FILTER = 255, 1
_ICMP6_FILTER = 1
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_ERRORS_OF_THE_NETWORK = (2, 3)  # SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6

# Raw sockets receive the replies to all pings of this host, so each echo has its own identifier.
_identifiers = count(int.from_bytes(os.urandom(2), "big"))


def request(*, v6: bool, identifier: int, number: int, token: bytes) -> bytes:
    """Returns an echo request (RFC 792, RFC 4443). The kernel computes the IPv6 checksum."""
    kind = 128 if v6 else 8
    payload = token.ljust(PAYLOAD_BYTES, b"\x00")
    head = _HEADER.pack(kind, 0, 0, identifier, number)
    return (
        _HEADER.pack(kind, 0, 0 if v6 else checksum(head + payload), identifier, number) + payload
    )


def answered(packet: bytes, *, v6: bool, token: bytes) -> int | None:
    """Returns the sequence number of an echo reply to our token, or None."""
    if len(packet) < _HEADER.size + TOKEN_BYTES:
        return None
    number: int
    kind, code, _, _, number = _HEADER.unpack_from(packet)
    ours = packet[_HEADER.size : _HEADER.size + TOKEN_BYTES] == token
    return number if (kind, code) == (129 if v6 else 0, 0) and ours else None


def checksum(data: bytes) -> int:
    """Returns the checksum of RFC 1071 over an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


async def open_echo(address: str) -> "Echo":
    """Opens an echo, which the caller closes. Raises `TargetFailure` or `LocalFailure`."""
    if sys.platform != "linux":
        raise LocalFailure(UnknownReason.ICMP_DENIED)
    protocol = socket.IPPROTO_ICMPV6 if ":" in address else socket.IPPROTO_ICMP
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            sock = await connected_plainly(address, 0, kind, protocol)
        except LocalFailure as trouble:
            if trouble.reason is not UnknownReason.EGRESS_DENIED:
                raise
        except OSError as error:
            raise TargetFailure(class_of(error)) from error
        else:
            return Echo(sock, address, raw=kind is socket.SOCK_RAW)
    raise LocalFailure(UnknownReason.ICMP_DENIED)


class Echo:
    """Echo requests to one address. A context manager that closes the socket."""

    def __init__(self, sock: socket.socket, address: str, *, raw: bool) -> None:
        self.address = address
        self._sock = sock
        self._raw = raw
        self._v6 = ":" in address
        self._identifier = next(_identifiers) & 0xFFFF
        self._token = os.urandom(TOKEN_BYTES)
        # Sequence numbers whose errors were read while an echo was sent.
        self._refused: list[int] = []
        bare = address.partition("%")[0]
        self._peer = socket.inet_ntop(sock.family, socket.inet_pton(sock.family, bare))
        self._configure()

    def __enter__(self) -> "Echo":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sock.close()

    def send(self, number: int) -> None:
        """Sends an echo request.

        Raises `TargetFailure` or `LocalFailure`, also if each attempt returned the error of an
        earlier echo: a request that was not sent is not a loss of the target.
        """
        packet = request(v6=self._v6, identifier=self._identifier, number=number, token=self._token)
        for _ in range(_SENDS_MOST):
            try:
                self._sock.send(packet)
            except OSError as error:
                refused = self._read_errors()
                if not refused:
                    trouble = trouble_at_once(error)
                    if isinstance(trouble, LocalFailure):
                        raise trouble from error
                    raise TargetFailure(class_of(error)) from error
                self._refused += refused
            else:
                return
        raise LocalFailure(UnknownReason.LOCAL_RESOURCES)

    async def hear(self) -> tuple[list[int], list[int]]:
        """Waits for a reply or an error, and returns as `read` does."""
        if not self._refused:
            await trio.lowlevel.wait_readable(self._sock)
        return self.read()

    def read(self) -> tuple[list[int], list[int]]:
        """Returns the numbers of the answered and of the undeliverable echoes so far."""
        answers: list[int] = []
        refused, self._refused = self._refused + self._read_errors(), []
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet, source = self._sock.recvfrom(_PACKET_BYTES_MOST)
            except BlockingIOError:
                break
            except OSError:
                # The error is in the error queue too.
                refused += self._read_errors()
                continue
            number = answered(self._without_head(packet), v6=self._v6, token=self._token)
            # A connected ICMP datagram socket also receives packets of other hosts.
            if number is not None and source[0].partition("%")[0] == self._peer:
                answers.append(number)
        return answers, refused

    def _configure(self) -> None:
        sock = self._sock
        if self._v6:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        if self._raw and self._v6:
            # A set bit filters out its ICMP type. Only 129 (echo reply) passes.
            words = [0xFFFFFFFF] * 8
            words[129 // 32] &= ~(1 << 129 % 32)
            sock.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *words))
        elif self._raw:
            sock.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~1 & 0xFFFFFFFF))

    def _without_head(self, packet: bytes) -> bytes:
        """Removes the IP header, which only a raw IPv4 socket delivers."""
        if not self._raw or self._v6 or not packet:
            return packet
        return packet[(packet[0] & 0x0F) * 4 :]

    def _read_errors(self) -> list[int]:
        """Returns the numbers of our echoes in the error queue.

        An error message contains the head of the packet that was sent (RFC 792; RFC 4443, 3).
        """
        numbers: list[int] = []
        for _ in range(PACKETS_AT_ONCE):
            try:
                data, told, _, _ = self._sock.recvmsg(_HEADER.size, 512, socket.MSG_ERRQUEUE)
            except OSError:
                break
            if len(data) < _HEADER.size or not _network_error(told):
                continue
            _, _, _, identifier, number = _HEADER.unpack(data)
            # The kernel assigns and matches the identifier of a datagram socket.
            if not self._raw or identifier == self._identifier:
                numbers.append(number)
        return numbers


def _network_error(told: list[tuple[int, int, bytes]]) -> bool:
    """Returns whether a `sock_extended_err` has a network origin (byte 4, after the errno)."""
    return any(
        (level, kind) in ((socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR))
        and len(data) > 4
        and data[4] in _ERRORS_OF_THE_NETWORK
        for level, kind, data in told
    )
