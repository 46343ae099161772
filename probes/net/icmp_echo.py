"""ICMP echoes to one address: what is counted is an answer to our own, from there, and each once.

A datagram socket, where net.ipv4.ping_group_range lets this process have one, else a raw one, which
wants CAP_NET_RAW. The kernel's error queue tells which echo the network could not deliver. Linux.
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

# Together with the eight bytes of the header the usual size of a ping.
PAYLOAD_BYTES = 56
TOKEN_BYTES = 16
# What is read before others have their turn: a flood does not hold the loop.
PACKETS_AT_ONCE = 64
# An error of an earlier echo is told by the next call, whatever that is; then it is tried again.
_SENDS_MOST = 4
_PACKET_BYTES_MOST = 2_048
_HEADER = struct.Struct("!BBHHH")

# Of Linux's headers; Python does not name them.
_SOL_RAW, _ICMP_FILTER = 255, 1
_ICMP6_FILTER = 1
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_ERRORS_OF_THE_NETWORK = (2, 3)  # SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6

# Raw sockets hear the answers to all pings of this host: each of ours has a number of its own.
_identifiers = count(int.from_bytes(os.urandom(2), "big"))


def request(*, v6: bool, identifier: int, number: int, token: bytes) -> bytes:
    """An echo request (RFC 792, RFC 4443); of IPv6 the kernel makes the checksum."""
    kind = 128 if v6 else 8
    payload = token.ljust(PAYLOAD_BYTES, b"\x00")
    head = _HEADER.pack(kind, 0, 0, identifier, number)
    return (
        _HEADER.pack(kind, 0, 0 if v6 else checksum(head + payload), identifier, number) + payload
    )


def answered(packet: bytes, *, v6: bool, token: bytes) -> int | None:
    """The number that an echo reply to our token carries; None for anything else."""
    if len(packet) < _HEADER.size + TOKEN_BYTES:
        return None
    number: int
    kind, code, _, _, number = _HEADER.unpack_from(packet)
    ours = packet[_HEADER.size : _HEADER.size + TOKEN_BYTES] == token
    return number if (kind, code) == (129 if v6 else 0, 0) and ours else None


def checksum(data: bytes) -> int:
    """RFC 1071, over an even number of bytes."""
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
    """A conversation with one address, closed by `with`."""

    def __init__(self, sock: socket.socket, address: str, *, raw: bool) -> None:
        self.address = address
        self._sock = sock
        self._raw = raw
        self._v6 = ":" in address
        self._identifier = next(_identifiers) & 0xFFFF
        self._token = os.urandom(TOKEN_BYTES)
        # Numbers that were heard of while an echo was sent.
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

    async def hear(self) -> tuple[list[int], list[int]]:
        """Waits for something; see `read`."""
        if not self._refused:
            await trio.lowlevel.wait_readable(self._sock)
        return self.read()

    def read(self) -> tuple[list[int], list[int]]:
        """The numbers that were answered by now, and those that the network could not deliver."""
        answers: list[int] = []
        refused, self._refused = self._refused + self._read_errors(), []
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet, source = self._sock.recvfrom(_PACKET_BYTES_MOST)
            except BlockingIOError:
                break
            except OSError:
                # What stands in the error queue too.
                refused += self._read_errors()
                continue
            number = answered(self._without_head(packet), v6=self._v6, token=self._token)
            # A connected datagram socket of this kind hears other hosts too.
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
            # A set bit keeps that type out: all but 129.
            words = [0xFFFFFFFF] * 8
            words[129 // 32] &= ~(1 << 129 % 32)
            sock.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *words))
        elif self._raw:
            sock.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~1 & 0xFFFFFFFF))

    def _without_head(self, packet: bytes) -> bytes:
        """A raw socket of IPv4, it alone, shows the IP header too."""
        if not self._raw or self._v6 or not packet:
            return packet
        return packet[(packet[0] & 0x0F) * 4 :]

    def _read_errors(self) -> list[int]:
        """The numbers of our echoes that stand in the error queue: what comes back is the head of
        what was sent (RFC 792, RFC 4443, 3).
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
            # The kernel gives a datagram socket a number of its own, and matches it.
            if not self._raw or identifier == self._identifier:
                numbers.append(number)
        return numbers


def _network_error(told: list[tuple[int, int, bytes]]) -> bool:
    """`sock_extended_err`: the origin follows the error's number."""
    return any(
        (level, kind) in ((socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR))
        and len(data) > 4
        and data[4] in _ERRORS_OF_THE_NETWORK
        for level, kind, data in told
    )
