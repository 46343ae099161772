"""Names as the host resolves them, for connections to the server of an agent."""

import socket
from typing import Any

import pytest
import trio
import trio.abc

from leadline.probes.check.failure import LocalFailure, TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, UnknownReason
from leadline.probes.net.resolver import Family
from leadline.probes.net.system_resolver import SystemNames


async def look_up(host: str, family: Family = Family.ANY) -> tuple[str, ...]:
    return await SystemNames().lookup(host, family, Stopwatch())


async def test_names_and_addresses_are_resolved_by_the_system() -> None:
    assert "127.0.0.1" in await look_up("localhost")
    assert await look_up("192.0.2.1") == ("192.0.2.1",)
    assert await look_up("2001:db8::1") == ("2001:db8::1",)
    assert await look_up("localhost", Family.IPV4) == ("127.0.0.1",)


async def test_a_link_local_address_keeps_its_zone() -> None:
    index = socket.if_nametoindex("lo")
    assert await look_up(f"fe80::1%{index}") == (f"fe80::1%{index}",)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..b", "\udc80"])
async def test_an_invalid_name_is_a_dns_error(host: str) -> None:
    with pytest.raises(TargetFailure) as caught:
        await look_up(host)
    assert caught.value.failure is FailureClass.DNS_ERROR


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (socket.EAI_NONAME, FailureClass.DNS_ERROR),
        (socket.EAI_NODATA, FailureClass.DNS_ERROR),
        (socket.EAI_AGAIN, UnknownReason.RESOLVER_DEAD),
        (socket.EAI_FAIL, UnknownReason.RESOLVER_DEAD),
    ],
)
async def test_unknown_names_and_dead_nameservers_differ(number: int, expected: object) -> None:
    trio.socket.set_custom_hostname_resolver(Host(number))
    with pytest.raises((TargetFailure, LocalFailure)) as caught:
        await look_up("leadline.example")
    assert expected in caught.value.args


class Host(trio.abc.HostnameResolver):
    """A resolver that knows no name; the run that set it also removes it."""

    def __init__(self, number: int) -> None:
        self._number = number

    async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(self._number, "said the host")

    async def getnameinfo(self, *_: Any) -> Any:
        raise AssertionError("not asked for")
