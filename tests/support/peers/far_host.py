"""A network of the test: a namespace whose only device is a TUN, with a scripted far host.

Packets to 198.51.100.0/24 and 2001:db8::/64 arrive here, and the test sends the answers. Needs root
for the namespace and the TUN.
"""

import ctypes
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
V4, V6 = "198.51.100.2", "2001:db8::2"
SETUP = (
    "ip link set lo up",
    "ip address add 198.51.100.1/24 dev far0",
    "ip -6 address add 2001:db8::1/64 dev far0 nodad",
    "ip link set far0 up",
)
# Even an address without duplicate detection is tentative until the kernel has processed it;
# packets for it are dropped before that.
TENTATIVE = "ip -6 -oneline address show dev far0 tentative"
TENTATIVE_SECONDS = 30.0


@dataclass
class Ping:
    """An echo request that arrived, with methods that answer it."""

    far: "FarHost"
    packet: bytes
    v6: bool

    @property
    def icmp(self) -> bytes:
        return self.packet[40:] if self.v6 else self.packet[20:]

    @property
    def number(self) -> int:
        return int.from_bytes(self.icmp[6:8], "big")

    def reply(self, icmp: bytes | None = None, source: bytes | None = None) -> None:
        """Sends an echo reply with the same payload, or the given ICMP bytes; the checksum is
        computed.
        """
        if icmp is None:
            icmp = bytes([129 if self.v6 else 0, 0]) + self.icmp[2:]
        self.far.send(icmp, self.packet, self.v6, source)

    def unreachable(self, code: int = 1) -> None:
        """Sends an ICMP error with the beginning of the undelivered packet."""
        head = bytes([1 if self.v6 else 3, code, 0, 0, 0, 0, 0, 0])
        self.reply(head + self.packet[: 48 if self.v6 else 28])


def _checksum(data: bytes) -> bytes:
    data += b"\x00" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big")


@dataclass
class FarHost:
    device: int
    script: Callable[[Ping], None] = lambda ping: ping.reply()
    heard: list[Ping] = field(default_factory=list)

    async def serve(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self.device)
            packet = os.read(self.device, 2_048)
            v6 = packet[0] >> 4 == 6
            kind = packet[40] if v6 else packet[20]
            if kind == (128 if v6 else 8) and packet[6 if v6 else 9] == (58 if v6 else 1):
                ping = Ping(self, packet, v6)
                self.heard.append(ping)
                self.script(ping)

    def send(self, icmp: bytes, to: bytes, v6: bool, source: bytes | None) -> None:
        """Sends ICMP to the source of `to`."""
        icmp = icmp[:2] + b"\x00\x00" + icmp[4:]
        if v6:
            ours, theirs = to[8:24], source or to[24:40]
            pseudo = theirs + ours + len(icmp).to_bytes(4, "big") + b"\x00\x00\x00\x3a"
            icmp = icmp[:2] + _checksum(pseudo + icmp) + icmp[4:]
            head = struct.pack("!IHBB", 6 << 28, len(icmp), 58, 64) + theirs + ours
        else:
            ours, theirs = to[12:16], source or to[16:20]
            icmp = icmp[:2] + _checksum(icmp) + icmp[4:]
            head = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(icmp), 0, 0, 64, 1)
            rest = theirs + ours
            head += _checksum(head + b"\x00\x00" + rest) + rest
        os.write(self.device, head + icmp)


@contextmanager
def far_host(*, datagrams: bool) -> Iterator[FarHost]:
    """Moves this thread into the namespace until the end. `datagrams` allows ICMP without
    privileges.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    device = None
    try:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"far0", IFF_TUN | IFF_NO_PI))
        for command in SETUP:
            subprocess.run(command.split(), check=True)
        _await_address()
        allowed = "0 2147483647" if datagrams else "1 0"
        Path("/proc/sys/net/ipv4/ping_group_range").write_text(allowed)
        yield FarHost(device)
    finally:
        if device is not None:
            os.close(device)
        if libc.setns(home, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(home)


def _await_address() -> None:
    latest = time.monotonic() + TENTATIVE_SECONDS
    while subprocess.run(TENTATIVE.split(), check=True, capture_output=True).stdout:
        assert time.monotonic() < latest, "an address stays tentative"
        time.sleep(0.01)
