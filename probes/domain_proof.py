"""Collects the evidence of who controls a domain: from the name servers and from its web server.

The same request is sent for every claim. It contains no token, so a server that repeats a request
proves nothing, and Leadline itself, at which the domain may already point, has no such file. No
redirect is followed: the owner of another host must not prove this one.
"""

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import dns.exception
import dns.message
import dns.name
import dns.rdata
import dns.rdatatype
import dns.rdtypes.ANY.CNAME
import dns.rdtypes.txtbase
import trio

from .check.domain_evidence import (
    FILE_PATH,
    RECORD_PREFIX,
    DomainEvidence,
    token_of_alias,
    token_of_text,
)
from .check.failure import LocalFailure, TargetFailure
from .check.phase_timer import Stopwatch
from .check.target import Url
from .net.dns_client import RECORDS_ON_LOOP_MOST
from .net.dns_exchange import ANSWERED, ask_nameservers
from .net.egress import Egress
from .net.egress_httpx import is_whole, send_request
from .net.egress_policy import embedded
from .net.resolver import Family

# Limit of all evidence of a domain. What is missing then was not found.
LOOK_SECONDS: Final = 10.0
FILE_SECONDS: Final = 5.0
FILE_BYTES_MOST: Final = 1_024
FILE_PORT: Final = 80
# Limit of the reverse lookup of this host's name, which can ask a dead name server.
HOST_NAME_SECONDS: Final = 2.0
HOST_NAME_FRESH_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Found:
    records: frozenset[str] = frozenset()
    file: str = ""
    has_addresses: bool = False
    is_resolved: bool = False
    is_asked: bool = False
    is_local: bool = False


async def look_at_domain(
    domain: str, reach: Egress, *, file_port: int = FILE_PORT
) -> DomainEvidence:
    """Returns the evidence of a lower-case domain after at most LOOK_SECONDS."""
    found = _Found()
    with trio.move_on_after(LOOK_SECONDS):
        await _resolve(domain, reach, found)
        if not found.is_local:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read_records, domain, reach, found)
                if found.has_addresses:
                    nursery.start_soon(_read_file, domain, reach, file_port, found)
    return DomainEvidence(
        records=found.records,
        file=found.file,
        is_answered=found.is_resolved and found.is_asked,
        is_local=found.is_local,
    )


class HostNames:
    """Names of this host. The full name is looked up again after HOST_NAME_FRESH_SECONDS."""

    def __init__(self) -> None:
        self._full = ""
        self._read_at = float("-inf")
        self._reading = trio.Lock()

    async def known(self) -> frozenset[str]:
        """Returns the name of this host, and its full name if it is found in time. Lower case."""
        async with self._reading:
            if trio.current_time() - self._read_at >= HOST_NAME_FRESH_SECONDS:
                # Also after a failure, which abandons a thread.
                self._read_at = trio.current_time()
                with trio.move_on_after(HOST_NAME_SECONDS):
                    self._full = await trio.to_thread.run_sync(
                        socket.getfqdn, abandon_on_cancel=True
                    )
        names = {socket.gethostname(), self._full}
        return frozenset(name.lower().removesuffix(".") for name in names if name)


async def _resolve(domain: str, reach: Egress, found: _Found) -> None:
    try:
        addresses = await reach.resolver.lookup(domain, Family.ANY, Stopwatch())
    except TargetFailure:
        found.is_resolved = True
    except LocalFailure:
        return
    else:
        found.is_resolved = found.has_addresses = True
        found.is_local = any(map(_is_local, addresses))


def _is_local(text: str) -> bool:
    address = ip_address(text.partition("%")[0])
    plain = getattr(address, "ipv4_mapped", None) or address
    return bool(plain.is_unspecified) or any(form.is_loopback for form in embedded(address))


async def _read_records(domain: str, reach: Egress, found: _Found) -> None:
    try:
        name = dns.name.from_text(RECORD_PREFIX + domain)
    except dns.exception.DNSException:
        # The name is too long for a record.
        found.is_asked = True
        return
    answered = 0
    for rdtype in (dns.rdatatype.TXT, dns.rdatatype.CNAME):
        query = dns.message.make_query(name, rdtype)
        try:
            message = await ask_nameservers(query, "udp", reach, Stopwatch())
        except (TargetFailure, LocalFailure):
            continue
        answered += message.rcode() in ANSWERED
        found.records |= _tokens(message)
    found.is_asked = answered == 2


def _tokens(message: dns.message.Message) -> frozenset[str]:
    assert isinstance(message, dns.message.QueryMessage)
    try:
        answer = message.resolve_chaining().answer
    except dns.exception.DNSException:
        return frozenset()
    records = list(answer or ())[:RECORDS_ON_LOOP_MOST]
    return frozenset(filter(None, map(_token, records)))


def _token(record: dns.rdata.Rdata) -> str:
    if isinstance(record, dns.rdtypes.txtbase.TXTBase):
        return token_of_text(b"".join(record.strings).decode("utf-8", "replace"))
    if isinstance(record, dns.rdtypes.ANY.CNAME.CNAME):
        return token_of_alias(record.target.to_text())
    return ""


async def _read_file(domain: str, reach: Egress, port: int, found: _Found) -> None:
    with trio.move_on_after(FILE_SECONDS):
        try:
            response = await send_request(
                reach,
                "GET",
                Url("http", domain, port, FILE_PATH),
                headers={},
                bytes_most=FILE_BYTES_MOST,
                seconds=FILE_SECONDS,
            )
        except (TargetFailure, LocalFailure):
            return
        if response.status_code == 200 and is_whole(response):
            found.file = token_of_text(response.content.decode("utf-8", "replace"))
