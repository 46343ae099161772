"""The address policy: metadata addresses are never reached, private ones only if allowed, in every
spelling.
"""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.net.egress_policy import Refusal, canary_policy, notify_policy, probe_policy

PROBE, CANARY = probe_policy(), canary_policy()


def spellings(v4: str) -> list[str]:
    """Returns the IPv6 addresses that a router or a kernel can translate to this IPv4 address."""
    bits = int(IPv4Address(v4))
    inverted = bits ^ 0xFFFFFFFF
    return [
        str(IPv6Address(number))
        for number in (
            bits,  # compatible
            0xFFFF << 32 | bits,  # mapped
            0xFFFF << 48 | bits,  # translated
            0x2002 << 112 | bits << 80 | 1,  # 6to4
            0x2001 << 112 | bits << 64,  # Teredo's server
            0x2001 << 112 | inverted,  # Teredo's client
            0x0064FF9B << 96 | bits,  # NAT64
            0x0064FF9B0001 << 80 | bits,  # NAT64, local use
            0x0064FF9B0001 << 80 | bits >> 16 << 64 | (bits & 0xFFFF) << 40,  # after 48 bits
            0x0064FF9B0001 << 80 | bits >> 24 << 64 | (bits & 0xFFFFFF) << 32,  # after 56
            0x0064FF9B0001 << 80 | bits << 24,  # after 64
            0x20010DB9 << 96 | 0x00005EFE << 32 | bits,  # ISATAP
            0x20010DB9 << 96 | 0x02005EFE << 32 | bits,
        )
    ]


METADATA = ["169.254.169.254", "169.254.0.1", "169.254.255.255", "100.100.100.200", "168.63.129.16"]


@pytest.mark.parametrize("address", METADATA)
def test_metadata_addresses_are_never_reached_in_any_spelling(address: str) -> None:
    for spelled in [address, *spellings(address)]:
        for policy in (PROBE, CANARY, notify_policy(allow_private=True)):
            assert policy.refuses(spelled) is Refusal.METADATA, spelled
    assert PROBE.refuses("fd00:ec2::254") is Refusal.METADATA
    assert PROBE.refuses("fd00:ec2::254%eth0") is Refusal.METADATA


PRIVATE = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
]  # fmt: skip
PRIVATE_V6 = ["::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1",
              "2001:db8::1", "3fff::1", "100::1", "5f00::1", "2001::1", "4000::1"]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_a_canary_reaches_nothing_private_in_any_spelling(address: str) -> None:
    for spelled in [address, *spellings(address)]:
        assert CANARY.refuses(spelled) is Refusal.NOT_GLOBAL, spelled
        assert notify_policy().refuses(spelled) is Refusal.NOT_GLOBAL
        assert PROBE.refuses(spelled) is None


@pytest.mark.parametrize("address", PRIVATE_V6)
def test_a_canary_reaches_no_ipv6_address_that_is_not_global(address: str) -> None:
    assert CANARY.refuses(address) is Refusal.NOT_GLOBAL
    assert PROBE.refuses(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ],
)
def test_global_addresses_are_allowed_by_every_policy(address: str) -> None:
    for policy in (PROBE, CANARY, notify_policy()):
        assert policy.refuses(address) is None


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.2.3.4.5", "[::1]"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    assert PROBE.refuses(text) is Refusal.NO_ADDRESS


@given(st.ip_addresses(v=4))
def test_denied_networks_are_denied_in_every_spelling(address: IPv4Address) -> None:
    policy = probe_policy((ip_network(f"{address}/20", strict=False),))
    for spelled in [str(address), *spellings(str(address))]:
        assert policy.refuses(spelled) in (Refusal.DENIED, Refusal.METADATA)


@given(st.ip_addresses(v=4))
def test_a_canary_reaches_no_ipv4_address_private_in_python(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert CANARY.refuses(str(address)) is not None


@given(st.ip_addresses(v=6))
def test_a_canary_reaches_no_ipv6_address_private_in_python(address: IPv6Address) -> None:
    # Addresses that embed IPv4 are decided by the IPv4 address; Python's list differs by version.
    if address.is_private and address.ipv4_mapped is None:
        assert CANARY.refuses(str(address)) is not None
