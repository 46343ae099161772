"""Asynchronous name resolution that separates target failures from local failures.

NXDOMAIN and empty answers are failures of the target. Silence and SERVFAIL are failures of the
target only if the same nameserver answers for the root. Otherwise they are local failures. Search
domains are not used. /etc/hosts and literal addresses are.
"""

from collections import OrderedDict
from enum import StrEnum
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from .resolver_files import HostFiles, Nameserver

if TYPE_CHECKING:
    from .dns_client import DnsAnswer

CACHE_MOST = 4_096
# Upper limit of the time to live of an answer.
CACHE_SECONDS_MOST = 30
ADDRESSES_MOST = 16


class Family(StrEnum):
    ANY = "any"
    IPV4 = "ipv4"
    IPV6 = "ipv6"


class Resolver:
    """Resolver of a process. Caches successful answers up to a bound, never failures."""

    def __init__(self, files: HostFiles | None = None) -> None:
        self._files = files or HostFiles()
        self._cache: OrderedDict[tuple[str, Family], tuple[float, tuple[str, ...]]] = OrderedDict()
        self._answered_last: Nameserver | None = None

    async def lookup(self, host: str, family: Family, watch: Stopwatch) -> tuple[str, ...]:
        """Returns one or more addresses of a lower-case host.

        Raises `TargetFailure(dns_error)` if the name has none, and `LocalFailure(resolver_dead)` if
        no nameserver answers.
        """
        if _is_literal(host):
            return self._of_family((host,), family)
        listed = self._files.addresses(host)
        if listed:
            return self._of_family(listed, family)
        cached = self._cache.get((host, family))
        if cached and cached[0] > monotonic():
            return cached[1]
        answer = await self._ask(host, family, watch)
        if not answer.addresses:
            raise TargetFailure(FailureClass.DNS_ERROR)
        addresses = tuple(dict.fromkeys(answer.addresses))[:ADDRESSES_MOST]
        self._keep(host, family, addresses, answer.ttl_seconds)
        return addresses

    async def _ask(self, host: str, family: Family, watch: Stopwatch) -> "DnsAnswer":
        # Commands resolve with the system, and do not import the DNS library. `make_reach` does.
        from .address_query import query_addresses

        return await query_addresses(host, family, self.nameservers, self._note_answer, watch)

    def _note_answer(self, server: Nameserver) -> None:
        self._answered_last = server

    def nameservers(self) -> list[Nameserver]:
        """Returns the nameservers of this host, the last one that answered first.

        This order lets a dead nameserver cost its timeout only once.
        """
        servers = self._files.nameservers()
        return sorted(servers, key=lambda server: server != self._answered_last)

    def _keep(self, host: str, family: Family, addresses: tuple[str, ...], ttl: int) -> None:
        if ttl <= 0:
            return
        expires = monotonic() + min(ttl, CACHE_SECONDS_MOST)
        self._cache[(host, family)] = (expires, addresses)
        self._cache.move_to_end((host, family))
        while len(self._cache) > CACHE_MOST:
            self._cache.popitem(last=False)

    def _of_family(self, addresses: tuple[str, ...], family: Family) -> tuple[str, ...]:
        if family is not Family.ANY:
            wanted_colon = family is Family.IPV6
            addresses = tuple(a for a in addresses if (":" in a) is wanted_colon)
        if not addresses:
            raise TargetFailure(FailureClass.DNS_ERROR)
        return addresses


def _is_literal(host: str) -> bool:
    # Fast path: most names do not end in a digit, and parsing an address is slow.
    if ":" not in host and not host[-1:].isdigit():
        return False
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
