"""Resolver that uses the system resolver of this host, with its search domains.

Commands use it to reach a Leadline server. Unlike the resolver of checks, it does not determine
exactly whether a failure is local.
"""

import socket

import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, UnknownReason
from .resolver import ADDRESSES_MOST, Family, Resolver

_FAMILIES = {
    Family.ANY: socket.AF_UNSPEC,
    Family.IPV4: socket.AF_INET,
    Family.IPV6: socket.AF_INET6,
}


class SystemNames(Resolver):
    """Resolver that calls getaddrinfo in a thread. On cancellation the thread is abandoned."""

    async def lookup(
        self,
        host: str,
        family: Family,
        watch: Stopwatch,  # noqa: ARG002 - the signature of a resolver
    ) -> tuple[str, ...]:
        """Resolves like `Resolver.lookup`, without a cache."""
        try:
            found = await trio.socket.getaddrinfo(
                host, None, family=_FAMILIES[family], type=socket.SOCK_STREAM
            )
        except socket.gaierror as error:
            if error.errno in (socket.EAI_AGAIN, socket.EAI_FAIL):
                raise LocalFailure(UnknownReason.RESOLVER_DEAD) from error
            raise TargetFailure(FailureClass.DNS_ERROR) from error
        except UnicodeError as error:
            raise TargetFailure(FailureClass.DNS_ERROR) from error
        addresses = dict.fromkeys(_written(place) for *_, place in found)
        return tuple(addresses)[:ADDRESSES_MOST]


def _written(place: tuple[object, ...]) -> str:
    """Returns the address text. A link-local address needs its zone."""
    zone = place[3] if len(place) > 3 else 0
    return f"{place[0]}%{zone}" if zone else str(place[0])
