"""Resolver files of this host, /etc/resolv.conf and /etc/hosts, reread on change.

Search domains are ignored on purpose: a target is a full name in every region.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from time import monotonic

RECHECK_SECONDS = 5.0
NAMESERVERS_MOST = 3
HOSTS_BYTES_MOST = 4 * 1024 * 1024
DNS_PORT = 53


@dataclass(frozen=True, slots=True)
class Nameserver:
    address: str
    port: int = DNS_PORT


class HostFiles:
    """Contents of both files. A file that cannot be read counts as empty."""

    def __init__(
        self,
        resolv_conf: Path = Path("/etc/resolv.conf"),
        hosts: Path = Path("/etc/hosts"),
        nameservers: tuple[Nameserver, ...] | None = None,
    ) -> None:
        self._resolv_conf, self._hosts = resolv_conf, hosts
        self._given = nameservers
        self._nameservers: tuple[Nameserver, ...] = nameservers or ()
        self._names: dict[str, tuple[str, ...]] = {}
        self._stamps: tuple[object, object] | None = None
        self._looked_at = float("-inf")

    def nameservers(self) -> tuple[Nameserver, ...]:
        self._refresh()
        return self._nameservers

    def addresses(self, name: str) -> tuple[str, ...]:
        """Returns the addresses of a lower-case name in the hosts file.

        `localhost` needs no entry (RFC 6761).
        """
        self._refresh()
        found = self._names.get(name, ())
        if not found and (name == "localhost" or name.endswith(".localhost")):
            return ("127.0.0.1", "::1")
        return found

    def _refresh(self) -> None:
        now = monotonic()
        if now - self._looked_at < RECHECK_SECONDS:
            return
        self._looked_at = now
        stamps = (_stamp(self._resolv_conf), _stamp(self._hosts))
        if stamps == self._stamps:
            return
        self._stamps = stamps
        if self._given is None:
            self._nameservers = read_nameservers(_text(self._resolv_conf))
        self._names = read_hosts(_text(self._hosts))


def read_nameservers(text: str) -> tuple[Nameserver, ...]:
    """Returns the first three nameservers of resolv.conf(5), by default 127.0.0.1."""
    found: list[Nameserver] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver" and _is_address(words[1]):
            found.append(Nameserver(words[1]))
    return tuple(found[:NAMESERVERS_MOST]) or (Nameserver("127.0.0.1"),)


def read_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Returns all addresses of each name of hosts(5), in the order of the file."""
    names: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2 or not _is_address(words[0]):
            continue
        for name in words[1:]:
            addresses = names.setdefault(name.lower().removesuffix("."), [])
            if words[0] not in addresses:
                addresses.append(words[0])
    return {name: tuple(addresses) for name, addresses in names.items()}


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(HOSTS_BYTES_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
