"""Client address: the rightmost X-Forwarded-For address that is not a trusted proxy.

The header is used only if the peer is a trusted proxy. IPv6 addresses are grouped by /64, because
one client usually has a whole /64.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

HOPS_MOST = 32


def client_address(peer: str, headers: Mapping[str, str], trusted: Sequence[Network]) -> str:
    address = _read(peer)
    if address is None:
        return ""
    if _is_trusted(address, trusted):
        hops = headers.get("x-forwarded-for", "").split(",")[-HOPS_MOST:]
        for hop in reversed(hops):
            found = _read(hop.strip())
            if found is None:
                break
            address = found
            if not _is_trusted(found, trusted):
                break
    return counted_by(address)


def direct_client(peer: str, trusted: Sequence[Network]) -> str:
    """Returns the address under which a peer is counted; empty for a trusted proxy."""
    address = _read(peer)
    return "" if address is None or _is_trusted(address, trusted) else counted_by(address)


def counted_by(address: Address) -> str:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


def _read(text: str) -> Address | None:
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    plain = mapped or address
    return any(plain.version == network.version and plain in network for network in trusted)
