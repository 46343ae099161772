"""Query of the addresses of a name, over all nameservers in rounds of growing patience."""

from collections.abc import Callable, Sequence
from typing import Final

import dns.exception
import dns.name
import dns.rdatatype

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, UnknownReason
from .dns_client import Conversation, DnsAnswer, DnsError
from .resolver_files import Nameserver

# Timeout of a nameserver in each round over all of them. With the query of the root in each round,
# a lookup takes at most about 5.4 s per nameserver.
PATIENCE_SECONDS: Final = (0.4, 1.0, 2.5)
# By the value of `Family`.
_TYPES: Final = {
    "any": (dns.rdatatype.A, dns.rdatatype.AAAA),
    "ipv4": (dns.rdatatype.A,),
    "ipv6": (dns.rdatatype.AAAA,),
}


async def query_addresses(
    host: str,
    family: str,
    servers: Callable[[], Sequence[Nameserver]],
    note_answer: Callable[[Nameserver], None],
    watch: Stopwatch,
) -> DnsAnswer:
    """Returns the first answer. `note_answer` is called with each nameserver that answers.

    Raises: `TargetFailure(dns_error)` for an invalid name, or if a nameserver answers for the root
    only, and `LocalFailure(resolver_dead)` if none answers.
    """
    try:
        name = dns.name.from_text(host)
    except dns.exception.DNSException:
        raise TargetFailure(FailureClass.DNS_ERROR) from None
    for patience_seconds in PATIENCE_SECONDS:
        troubles: list[DnsError] = []
        for server in servers():
            conversation = Conversation(server, name, _TYPES[family])
            answer = await conversation.ask(patience_seconds)
            if answer.trouble is None:
                note_answer(server)
                return answer
            troubles.append(answer.trouble)
            if conversation.root_answered:
                watch.resolver_alive = True
                note_answer(server)
        if DnsError.SILENT not in troubles:
            break
    if watch.resolver_alive:
        raise TargetFailure(FailureClass.DNS_ERROR)
    raise LocalFailure(UnknownReason.RESOLVER_DEAD)
