"""Hosts of a chaos run: network namespaces, each joined by a veth pair to a router.

The thread that enters `network` becomes the router: it has a network of its own, and reaches every
host. A link is a direction from one host to another. Needs root.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.peers.own_network import own_network

SUBNET = "10.78.0.0/16"
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
# Below the rule that reads the main table (32 766).
_PRIORITY = 100


@dataclass(frozen=True)
class Network:
    """Names of hosts with their addresses."""

    addresses: dict[str, str]
    prefix: str

    def on(self, host: str) -> list[str]:
        """Returns the words that run a command on a host."""
        return ["ip", "netns", "exec", self.prefix + host]

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        """Drops every packet of the links. A sender gets no error."""
        self._change("add", links)

    def heal(self, links: Iterable[tuple[str, str]]) -> None:
        self._change("del", links)

    def throttle(self, host: str, kilobits: int) -> None:
        """Limits what a host receives, in kbit/s."""
        _ip_of("tc", "qdisc", "add", "dev", host, "root", "tbf", "rate", f"{kilobits}kbit",
               "burst", "16kb", "latency", "2s")  # fmt: skip

    def release(self, host: str) -> None:
        _ip_of("tc", "qdisc", "del", "dev", host, "root")

    def _change(self, verb: str, links: Iterable[tuple[str, str]]) -> None:
        rules = "".join(
            f"rule {verb} from {self.addresses[source]} to {self.addresses[to]}"
            f" priority {_PRIORITY} blackhole\n"
            for source, to in links
        )
        subprocess.run(["ip", "-force", "-batch", "-"], input=rules, text=True, check=True)


@contextmanager
def network(hosts: Iterable[str]) -> Iterator[Network]:
    """Enters a network with these hosts. Their processes must have ended when the block ends."""
    prefix = f"chaos-{os.getpid()}-"
    found = Network({name: f"10.78.{n}.2" for n, name in enumerate(hosts, 1)}, prefix)
    with own_network():
        _FORWARD.write_text("1")
        try:
            for name, address in found.addresses.items():
                _join(prefix + name, name, address)
            yield found
        finally:
            for name in found.addresses:
                subprocess.run(["ip", "netns", "del", prefix + name], check=False)


def _join(namespace: str, device: str, address: str) -> None:
    gateway = address.removesuffix("2") + "1"
    inside = ("ip", "-n", namespace)
    _ip_of("ip", "netns", "add", namespace)
    _ip_of("ip", "link", "add", device, "type", "veth", "peer", "eth0", "netns", namespace)
    _ip_of("ip", "address", "add", f"{gateway}/30", "dev", device)
    _ip_of("ip", "link", "set", device, "up")
    _ip_of(*inside, "link", "set", "lo", "up")
    _ip_of(*inside, "address", "add", f"{address}/30", "dev", "eth0")
    _ip_of(*inside, "link", "set", "eth0", "up")
    _ip_of(*inside, "route", "add", "default", "via", gateway)


def _ip_of(*command: str) -> None:
    subprocess.run(command, check=True)
