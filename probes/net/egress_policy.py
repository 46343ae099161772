"""Which addresses may be reached, decided on the address itself and on every address inside it.

Pure. The networks are those of IANA's special-purpose registries, written out here, since what
`ipaddress` calls global differs between versions of Python.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Refusal(StrEnum):
    """Why an address is not reached."""

    METADATA = "metadata"
    DENIED = "denied"
    NOT_GLOBAL = "not_global"
    NO_ADDRESS = "no_address"


# Where clouds hand out credentials: no policy ever reaches these.
METADATA = tuple(
    map(
        ip_network,
        ("169.254.0.0/16", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32"),
    )
)
_V4_NOT_GLOBAL = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
        ),
    )
)
_V6_GLOBAL = IPv6Network("2000::/3")
_V6_NOT_GLOBAL = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_NAT64 = IPv6Network("64:ff9b::/96")
# Networks whose last 32 bits are an IPv4 address: mapped, compatible, translated, NAT64 (two).
_V4_AT_THE_END = tuple(
    map(
        IPv6Network,
        ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"),
    )
)
# Of which a network may choose how long its own prefix is (RFC 6052, 2.2; RFC 8215).
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_ISATAP = 0x00005EFE


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """`deny` refuses more; `allow_private` lets loopback, private and reserved networks pass."""

    allow_private: bool
    deny: tuple[Network, ...] = ()

    def refuses(self, address: str) -> Refusal | None:
        """Why this address is not to be connected to, or None where it is."""
        return _refuses(self, address)


def probe_policy(deny: tuple[Network, ...] = (), *, allow_private: bool = True) -> EgressPolicy:
    """For monitors: self-hosters watch what is at home."""
    return EgressPolicy(allow_private, deny)


def notify_policy(deny: tuple[Network, ...] = (), *, allow_private: bool = False) -> EgressPolicy:
    """For webhooks and chats."""
    return EgressPolicy(allow_private, deny)


def canary_policy(deny: tuple[Network, ...] = ()) -> EgressPolicy:
    """For canaries: globally routable addresses only, and no option to relax it."""
    return EgressPolicy(False, deny)


def embedded(address: Address) -> list[Address]:
    """The address and every IPv4 address that it carries inside (RFC 4291, 3056, 4380, 6052)."""
    found: list[Address] = [address]
    if isinstance(address, IPv4Address):
        return found
    bits = int(address)
    if any(address in network for network in _V4_AT_THE_END):
        found.append(IPv4Address(bits & 0xFFFFFFFF))
    if address in _NAT64_LOCAL:
        # Around the octet of bits 64 to 71, which carries nothing: after 48, 56 and 64 bits.
        found.append(IPv4Address((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF))
        found.append(IPv4Address((bits >> 64 & 0xFF) << 24 | bits >> 32 & 0xFFFFFF))
        found.append(IPv4Address(bits >> 24 & 0xFFFFFFFF))
    if address in _6TO4:
        found.append(IPv4Address(bits >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        found.append(IPv4Address(bits >> 64 & 0xFFFFFFFF))
        found.append(IPv4Address(~bits & 0xFFFFFFFF))
    # ISATAP (RFC 5214): the universal/local bit of the identifier may be set.
    if (bits >> 32 & 0xFDFFFFFF) == _ISATAP:
        found.append(IPv4Address(bits & 0xFFFFFFFF))
    return found


@lru_cache(maxsize=4_096)
def _refuses(policy: EgressPolicy, text: str) -> Refusal | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return Refusal.NO_ADDRESS
    forms = embedded(address)
    if any(form in network for form in forms for network in METADATA):
        return Refusal.METADATA
    if any(form in network for form in forms for network in policy.deny):
        return Refusal.DENIED
    if not policy.allow_private and not _global(address, forms):
        return Refusal.NOT_GLOBAL
    return None


def _global(address: Address, forms: list[Address]) -> bool:
    """A carrier (NAT64, 6to4) is as global as what it carries."""
    if isinstance(address, IPv6Address):
        carried = forms[1:]
        if address not in _NAT64 and address not in _V6_GLOBAL:
            return False
        if any(address in network for network in _V6_NOT_GLOBAL):
            return False
    else:
        carried = forms
    return not any(form in network for form in carried for network in _V4_NOT_GLOBAL)
