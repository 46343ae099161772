"""DNS checks against a nameserver of the tests, over UDP, TCP, TLS and HTTPS."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import dns.rcode
import dns.rrset
import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.egress_policy import canary_policy
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Handler, Names, Prober, Secure, serving

NAME = "app.example"


@pytest.fixture
def resolver(names: Names) -> str:
    """Returns the nameserver in the spelling of a monitor."""
    names.records[(NAME, "A")] = [["192.0.2.7"]]
    return f"127.0.0.1:{names.port}"


def down(failure: FailureClass) -> str:
    return message(failure, NAME)


def over_tls(authority: trustme.CA, handler: Callable[[Secure], Awaitable[None]]) -> Handler:
    """Serves the handler with a certificate for 127.0.0.1."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        await handler(trio.SSLStream(stream, context, server_side=True, https_compatible=True))

    return handle


@asynccontextmanager
async def dot(names: Names, authority: trustme.CA) -> AsyncIterator[str]:
    async with serving(over_tls(authority, names.converse)) as port:
        yield f"127.0.0.1:{port}"


@asynccontextmanager
async def doh(
    names: Names, authority: trustme.CA, status: str = "200 OK", kind: str = "dns-message"
) -> AsyncIterator[str]:
    async def handle(stream: Secure) -> None:
        data = b""
        while b"\r\n\r\n" not in data or data.endswith(b"\r\n\r\n"):
            data += await stream.receive_some(65_536)
        head, _, wire = data.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /dns-query HTTP/1.1\r\n")
        assert b"content-type: application/dns-message" in head
        assert wire[:2] == b"\0\0"
        reply = names.reply(wire, tcp=True) or b""
        said = f"HTTP/1.1 {status}\r\ncontent-type: application/{kind}\r\n"
        await stream.send_all(f"{said}content-length: {len(reply)}\r\n\r\n".encode() + reply)

    async with serving(over_tls(authority, handle)) as port:
        yield f"127.0.0.1:{port}"


# Values and rcodes.


@pytest.mark.parametrize(
    ("kind", "records", "value"),
    [
        ("A", ["192.0.2.9"], "192.0.2.9"),
        ("AAAA", ["2001:db8::1"], "2001:db8::1"),
        ("CNAME", ["Other.example."], "other.example"),
        ("MX", ["10 Mail.example."], "10 mail.example"),
        ("NS", ["ns1.example."], "ns1.example"),
        ("SRV", ["0 5 5060 sip.example."], "0 5 5060 sip.example"),
        ("TXT", ['"v=spf1 " "-all"'], "v=spf1 -all"),
        ("CAA", ['0 issue "ca.example"'], '0 issue "ca.example"'),
        ("SOA", ["ns1.example. admin.example. 7 1 1 1 1"], "ns1.example admin.example 7 1 1 1 1"),
    ],
)
async def test_a_record_is_a_value_without_its_final_dot(
    prober: Prober, names: Names, resolver: str, kind: str, records: list[str], value: str
) -> None:
    names.records[("x.example", kind)] = [records]
    quoted = value.replace('"', '\\"')
    config = {"record_type": kind, "resolver": resolver}
    good = await prober.check("dns", "x.example", f'[RESULT] == "{quoted}"', **config)
    bad = await prober.check("dns", "x.example", "[RESULT] == else", **config)
    assert (good.outcome, good.code) == (RunOutcome.UP, 0)
    assert bad.msg == "condition_failed x.example"


async def test_several_records_are_sorted_lines(
    prober: Prober, names: Names, resolver: str
) -> None:
    names.records[("two.example", "A")] = [["192.0.2.8", "192.0.2.1"]]
    names.records[("1.2.0.192.in-addr.arpa", "PTR")] = [["host.example."]]
    two = '[RESULT] == "192.0.2.1\\n192.0.2.8"'
    assert (await prober.check("dns", "two.example", two, resolver=resolver)).msg == ""
    named = await prober.check(
        "dns", "192.0.2.1", "[RESULT] == host.example", record_type="PTR", resolver=resolver
    )
    assert named.msg == ""


async def test_aliases_are_followed_to_the_records(
    prober: Prober, names: Names, resolver: str
) -> None:
    alias = dns.rrset.from_text("alias.example.", 60, "IN", "CNAME", "app.example.")
    end = dns.rrset.from_text("app.example.", 60, "IN", "A", "192.0.2.7")
    names.records[("alias.example", "A")] = [[alias, end]]
    names.records[("loose.example", "A")] = [
        [dns.rrset.from_text("loose.example.", 60, "IN", "CNAME", "nowhere.example.")]
    ]
    good = await prober.check("dns", "alias.example", "[RESULT] == 192.0.2.7", resolver=resolver)
    loose = await prober.check("dns", "loose.example", resolver=resolver)
    assert good.outcome is RunOutcome.UP
    assert loose.msg == "dns_error loose.example"


async def test_nxdomain_and_no_data_are_down_without_a_status_condition(
    prober: Prober, resolver: str
) -> None:
    gone = await prober.check("dns", "gone.example", resolver=resolver)
    valued = await prober.check("dns", "gone.example", "[RESULT] exists", resolver=resolver)
    wanted = await prober.check("dns", "gone.example", "[STATUS] == 3", resolver=resolver)
    empty = await prober.check("dns", NAME, resolver=resolver, record_type="MX")
    there = await prober.check("dns", NAME, "[STATUS] == 3", resolver=resolver)
    assert (gone.msg, gone.code) == ("dns_error gone.example", 3)
    assert (valued.msg, valued.code) == ("dns_error gone.example", 3)
    assert (wanted.outcome, wanted.code) == (RunOutcome.UP, 3)
    assert (empty.msg, empty.code) == (down(FailureClass.DNS_ERROR), 0)
    assert there.msg == down(FailureClass.CONDITION_FAILED)


# Resolvers.


async def test_a_failure_of_the_named_resolver_is_a_target_failure(
    prober: Prober, names: Names, resolver: str
) -> None:
    names.records[("mute.example", "A")] = [None]
    names.records[("broken.example", "A")] = [dns.rcode.SERVFAIL]
    names.root = None
    silent = await prober.check("dns", "mute.example", resolver=resolver, timeout_seconds=1)
    broken = await prober.check("dns", "broken.example", resolver=resolver)
    refused = await prober.check("dns", NAME, resolver="127.0.0.1:1")
    by_tcp = await prober.check("dns", NAME, resolver="127.0.0.1:1", transport="tcp")
    assert (silent.outcome, silent.msg) == (RunOutcome.DOWN, "timeout mute.example")
    assert (broken.msg, broken.code) == ("dns_error broken.example", 2)
    assert refused.msg == by_tcp.msg == down(FailureClass.CONNECT_REFUSED)


@pytest.mark.parametrize("said", [None, dns.rcode.SERVFAIL])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_a_system_resolver_without_the_root_is_a_local_failure(
    prober: Prober, names: Names, said: object, transport: str
) -> None:
    names.records[(NAME, "A")] = [said]
    alive = await prober.check("dns", NAME, transport=transport, timeout_seconds=2)
    names.root = said
    dead = await prober.check("dns", NAME, transport=transport, timeout_seconds=2)
    names.records[(NAME, "A")] = [["192.0.2.7"]]
    well = await prober.check("dns", NAME, transport=transport, timeout_seconds=2)
    gone = await prober.check("dns", "gone.example", transport=transport, timeout_seconds=2)
    assert alive.msg == down(FailureClass.DNS_ERROR)
    assert (dead.outcome, dead.unknown_reason) == (RunOutcome.UNKNOWN, UnknownReason.RESOLVER_DEAD)
    assert well.outcome is RunOutcome.UP
    assert gone.msg == "dns_error gone.example"


async def test_a_resolver_name_that_cannot_be_resolved_is_unknown(
    prober: Prober, names: Names
) -> None:
    names.records[("ns.example", "A")] = [dns.rcode.SERVFAIL]
    names.root = dns.rcode.SERVFAIL
    result = await prober.check("dns", NAME, resolver="ns.example")
    assert result.unknown_reason is UnknownReason.RESOLVER_DEAD


async def test_the_egress_policy_applies_to_the_resolver(prober: Prober, resolver: str) -> None:
    metadata = await prober.check("dns", NAME, resolver="169.254.169.254")
    canary = await prober.with_(policy=canary_policy()).check("dns", NAME, resolver=resolver)
    assert metadata.msg == canary.msg == down(FailureClass.TARGET_BLOCKED)


# Transports.


async def test_a_truncated_answer_is_requested_over_tcp(
    prober: Prober, names: Names, resolver: str
) -> None:
    names.truncate = True
    named = await prober.check("dns", NAME, "[RESULT] == 192.0.2.7", resolver=resolver)
    ours = await prober.check("dns", NAME, "[RESULT] == 192.0.2.7")
    assert named.outcome is ours.outcome is RunOutcome.UP


async def test_a_lost_datagram_is_sent_again(prober: Prober, names: Names, resolver: str) -> None:
    names.records[(NAME, "A")] = [None, ["192.0.2.7"]]
    assert (await prober.check("dns", NAME, resolver=resolver)).outcome is RunOutcome.UP
    assert names.asked == [(NAME, "A")] * 2


async def test_each_transport_gives_the_same_answer(
    prober: Prober, names: Names, resolver: str, authority: trustme.CA
) -> None:
    asked = ("dns", NAME, "[RESULT] == 192.0.2.7")
    assert (await prober.check(*asked, resolver=resolver, transport="tcp")).msg == ""
    async with dot(names, authority) as server:
        assert (await prober.check(*asked, resolver=server, transport="dot")).msg == ""
    async with doh(names, authority) as server:
        assert (await prober.check(*asked, resolver=server, transport="doh")).msg == ""
        url = f"https://{server}/dns-query"
        assert (await prober.check(*asked, resolver=url, transport="doh")).msg == ""


async def test_an_untrusted_resolver_is_a_tls_error(prober: Prober, names: Names) -> None:
    for transport, serve in (("dot", dot), ("doh", doh)):
        async with serve(names, trustme.CA()) as server:
            result = await prober.check("dns", NAME, resolver=server, transport=transport)
        assert result.msg == down(FailureClass.TLS_ERROR)


async def test_an_invalid_doh_answer_gets_its_failure_class(
    prober: Prober, names: Names, resolver: str, authority: trustme.CA
) -> None:
    async with doh(names, authority, status="415 No") as server:
        refused = await prober.check("dns", NAME, resolver=server, transport="doh")
    async with doh(names, authority, kind="json") as server:
        other = await prober.check("dns", NAME, resolver=server, transport="doh")
    assert (refused.msg, refused.code) == (down(FailureClass.HTTP_STATUS), 415)
    assert other.msg == down(FailureClass.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b"\x00\x05hello", FailureClass.PROTOCOL_ERROR),
        (b"\x00", FailureClass.PROTOCOL_ERROR),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureClass.PROTOCOL_ERROR),
    ],
)
async def test_an_invalid_tcp_answer_is_a_protocol_error(
    prober: Prober, data: bytes, failure: FailureClass
) -> None:
    async def garbage(stream: trio.SocketStream) -> None:
        await stream.receive_some(1_000)
        await stream.send_all(data)

    async with serving(garbage) as port:
        result = await prober.check("dns", NAME, resolver=f"127.0.0.1:{port}", transport="tcp")
    assert result.msg == down(failure)


async def test_an_invalid_datagram_counts_only_with_the_query_id(
    prober: Prober, nursery: trio.Nursery
) -> None:
    sock = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
    await sock.bind(("127.0.0.1", 0))
    server = f"127.0.0.1:{sock.getsockname()[1]}"
    knows_id = True

    async def garbage() -> None:
        with sock:
            while True:
                wire, peer = await sock.recvfrom(4_096)
                await sock.sendto((wire[:2] if knows_id else b"") + b"nonsense", peer)

    nursery.start_soon(garbage)
    known = await prober.check("dns", NAME, resolver=server, timeout_seconds=20)
    knows_id = False
    forged = await prober.check("dns", NAME, resolver=server, timeout_seconds=1)
    assert known.msg == down(FailureClass.PROTOCOL_ERROR)
    assert forged.msg == down(FailureClass.TIMEOUT)


async def test_cancelled_runs_leave_nothing_open(
    prober: Prober, names: Names, resolver: str, authority: trustme.CA
) -> None:
    names.truncate = True
    async with dot(names, authority) as server:
        await leaves_nothing(lambda: prober.check("dns", NAME))
        await leaves_nothing(lambda: prober.check("dns", NAME, resolver=resolver))
        await leaves_nothing(lambda: prober.check("dns", NAME, resolver=server, transport="dot"))


# Definitions.


@pytest.mark.parametrize(
    ("target", "config", "fields"),
    [
        (NAME, {}, []),
        (NAME, {"resolver": "10.0.0.53"}, []),
        (NAME, {"resolver": "10.0.0.53:5353"}, []),
        (NAME, {"resolver": "::1"}, []),
        (NAME, {"resolver": "[::1]"}, []),
        (NAME, {"resolver": "[::1]:5353"}, []),
        (NAME, {"resolver": "dns.example", "transport": "dot"}, []),
        (NAME, {"resolver": "https://dns.example/q", "transport": "doh"}, []),
        (NAME, {"resolver": "https://dns.example/q", "transport": "dot"}, ["config.resolver"]),
        (NAME, {"resolver": "http://dns.example/q", "transport": "doh"}, ["config.resolver"]),
        (NAME, {"resolver": "10.0.0.53:0"}, ["config.resolver"]),
        (NAME, {"transport": "doh"}, ["config.resolver"]),
        (NAME, {"transport": "dot"}, ["config.resolver"]),
        (NAME, {"record_type": "ANY"}, ["config.record_type"]),
        ("192.0.2.1", {}, ["target"]),
        ("192.0.2.1", {"record_type": "PTR"}, []),
        ("_dmarc.app.example", {"record_type": "TXT"}, []),
    ],
)
def test_invalid_definitions_are_refused(
    target: str, config: dict[str, object], fields: list[str]
) -> None:
    assert [f.field for f in validate("dns", target, None, config, [])] == fields
