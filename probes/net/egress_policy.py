"""Egress policy: the decision on an address and on every address embedded in it.

Pure. The networks are those of IANA's special-purpose registries. They are listed here because
`is_global` of `ipaddress` differs between Python versions.
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
    """Reason why an address is refused."""

    METADATA = "metadata"
    DENIED = "denied"
    NOT_GLOBAL = "not_global"
    NO_ADDRESS = "no_address"


# Addresses where clouds serve credentials. No policy ever allows them.
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
# A network may choose the length of its own prefix in this one (RFC 6052, 2.2; RFC 8215).
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_ISATAP = 0x00005EFE


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Egress rules.

    `deny` lists further refused networks. `allow_private` allows loopback, private and reserved
    networks.
    """

    allow_private: bool
    deny: tuple[Network, ...] = ()

    def refuses(self, address: str) -> Refusal | None:
        """Returns the reason to refuse this address, or None if it is allowed."""
        return _refuses(self, address)


def probe_policy(deny: tuple[Network, ...] = (), *, allow_private: bool = True) -> EgressPolicy:
    """Returns the policy for monitors. Private networks are allowed by default."""
    return EgressPolicy(allow_private, deny)


def notify_policy(deny: tuple[Network, ...] = (), *, allow_private: bool = False) -> EgressPolicy:
    """Returns the policy for notifications. Private networks are refused by default."""
    return EgressPolicy(allow_private, deny)


def canary_policy(deny: tuple[Network, ...] = ()) -> EgressPolicy:
    """Returns the policy for canaries: only globally routable addresses, with no exception."""
    return EgressPolicy(False, deny)


def embedded(address: Address) -> list[Address]:
    """Returns the address and each embedded IPv4 address (RFC 4291, 3056, 4380, 6052)."""
    found: list[Address] = [address]
    if isinstance(address, IPv4Address):
        return found
    bits = int(address)
    if any(address in network for network in _V4_AT_THE_END):
        found.append(IPv4Address(bits & 0xFFFFFFFF))
    if address in _NAT64_LOCAL:
        # Prefixes of 48, 56 and 64 bits. Bits 64 to 71 are reserved and skipped.
        found.append(IPv4Address((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF))
        found.append(IPv4Address((bits >> 64 & 0xFF) << 24 | bits >> 32 & 0xFFFFFF))
        found.append(IPv4Address(bits >> 24 & 0xFFFFFFFF))
    if address in _6TO4:
        found.append(IPv4Address(bits >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        found.append(IPv4Address(bits >> 64 & 0xFFFFFFFF))
        found.append(IPv4Address(~bits & 0xFFFFFFFF))
    # ISATAP (RFC 5214). The universal/local bit of the identifier may be set.
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
    """Returns whether an address is global.

    A carrier (NAT64, 6to4) is global if its embedded address is.
    """
    if isinstance(address, IPv6Address):
        carried = forms[1:]
        if address not in _NAT64 and address not in _V6_GLOBAL:
            return False
        if any(address in network for network in _V6_NOT_GLOBAL):
            return False
    else:
        carried = forms
    return not any(form in network for form in carried for network in _V4_NOT_GLOBAL)
