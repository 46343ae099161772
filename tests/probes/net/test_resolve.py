"""Name resolution: the first checked address is used, and a dead resolver is a local failure."""

from pathlib import Path

import dns.rcode
import pytest
import trio

from leadline.probes.check.result import ProbePhase, RunOutcome, UnknownReason
from leadline.probes.net import address_query
from leadline.probes.net import resolver_files as host_files
from leadline.probes.net.egress_policy import canary_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles, Nameserver, read_hosts, read_nameservers
from tests.support.peers.servers import Names, Prober, answer, answering, not_hanging, serving

FOR_EVER_SECONDS = 3_600


async def test_a_name_is_resolved_and_its_address_is_an_operand(
    prober: Prober, names: Names
) -> None:
    names.records[("app.example", "A")] = [["127.0.0.1"]]
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://APP.example.:{port}/", "[IP] == 127.0.0.1")
    assert result.outcome is RunOutcome.UP
    assert result.phases.dns_us is not None
    assert sorted(names.asked) == [("app.example", "A"), ("app.example", "AAAA")]


async def test_the_connected_address_is_the_checked_one(prober: Prober, names: Names) -> None:
    """A nameserver that answers differently the second time (rebinding) gains no access."""
    names.ttl = 0
    names.records[("rebind.example", "A")] = [["127.0.0.1"], ["169.254.169.254"]]
    async with serving(answering(answer())) as port:
        url = f"http://rebind.example:{port}/"
        first = await prober.check("http", url, "[IP] == 127.0.0.1", ip_family="ipv4")
        assert names.asked == [("rebind.example", "A")]
        second = await prober.check("http", url, ip_family="ipv4")
    assert first.outcome is RunOutcome.UP
    assert (second.outcome, second.msg) == (RunOutcome.DOWN, "target_blocked rebind.example")


async def test_a_forbidden_address_is_skipped_for_an_allowed_one(
    prober: Prober, names: Names
) -> None:
    names.records[("mixed.example", "A")] = [["169.254.169.254", "127.0.0.1"]]
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://mixed.example:{port}/", "[IP] == 127.0.0.1")
    assert result.outcome is RunOutcome.UP


async def test_a_name_of_a_private_address_is_blocked_for_a_canary(
    prober: Prober, names: Names
) -> None:
    names.records[("inner.example", "A")] = [["10.0.0.1"]]
    names.records[("inner.example", "AAAA")] = [["64:ff9b::a00:1"]]
    result = await prober.with_(policy=canary_policy()).check("http", "https://inner.example/")
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, "target_blocked inner.example")


async def test_a_name_that_does_not_exist_is_down(prober: Prober, names: Names) -> None:
    result = await prober.check("http", "http://nowhere.example/")
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, "dns_error nowhere.example")
    assert result.phases.unfinished is ProbePhase.DNS


async def test_a_name_without_addresses_is_down(prober: Prober, names: Names) -> None:
    names.records[("mail.example", "MX")] = [[]]
    result = await prober.check("tcp", "mail.example:25")
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, "dns_error mail.example")


async def test_silence_is_down_only_if_the_root_is_answered(
    prober: Prober, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second round does not end: the deadline ends it.
    monkeypatch.setattr(address_query, "PATIENCE_SECONDS", (0.1, FOR_EVER_SECONDS))
    names.records[("silent.example", "A")] = [None]
    names.records[("silent.example", "AAAA")] = [None]
    broken_name = await prober.check("http", "http://silent.example/", timeout_seconds=1)
    names.root = None
    dead_resolver = await prober.check("http", "http://silent.example/", timeout_seconds=1)
    assert (broken_name.outcome, broken_name.msg) == (RunOutcome.DOWN, "dns_error silent.example")
    assert dead_resolver.outcome is RunOutcome.UNKNOWN
    assert dead_resolver.unknown_reason is UnknownReason.RESOLVER_DEAD


async def test_servfail_is_down_only_if_the_root_is_answered(prober: Prober, names: Names) -> None:
    for rdtype in ("A", "AAAA"):
        names.records[("broken.example", rdtype)] = [dns.rcode.SERVFAIL]
    broken_name = await prober.check("http", "http://broken.example/")
    names.root = dns.rcode.SERVFAIL
    dead_resolver = await prober.check("http", "http://broken.example/")
    assert (broken_name.outcome, broken_name.msg) == (RunOutcome.DOWN, "dns_error broken.example")
    assert dead_resolver.unknown_reason is UnknownReason.RESOLVER_DEAD


async def test_a_closed_resolver_is_an_immediate_local_failure(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run that waited for the resolver would end at its deadline, after this test has failed.
    monkeypatch.setattr(address_query, "PATIENCE_SECONDS", (FOR_EVER_SECONDS,))
    closed = Resolver(
        HostFiles(hosts=Path("/nonexistent"), nameservers=(Nameserver("127.0.0.1", 9),))
    )
    async with not_hanging():
        result = await prober.with_(resolver=closed).check(
            "http", "http://app.example/", timeout_seconds=FOR_EVER_SECONDS
        )
    assert result.unknown_reason is UnknownReason.RESOLVER_DEAD
    assert result.msg == "probe_error app.example"


async def test_the_second_nameserver_is_used_if_the_first_fails(
    prober: Prober, names: Names
) -> None:
    names.records[("app.example", "A")] = [["127.0.0.1"]]
    servers = (Nameserver("127.0.0.1", 9), names.server)
    resolver = Resolver(HostFiles(hosts=Path("/nonexistent"), nameservers=servers))
    async with serving(answering(answer())) as port:
        result = await prober.with_(resolver=resolver).check("http", f"http://app.example:{port}/")
    assert result.outcome is RunOutcome.UP


async def test_a_silent_nameserver_delays_only_the_first_query(
    prober: Prober, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.records[("a.example", "A")] = names.records[("b.example", "A")] = [["127.0.0.1"]]
    with trio.socket.socket(type=trio.socket.SOCK_DGRAM) as silent:
        await silent.bind(("127.0.0.1", 0))
        servers = (Nameserver("127.0.0.1", silent.getsockname()[1]), names.server)
        resolver = Resolver(HostFiles(hosts=Path("/nonexistent"), nameservers=servers))
        patient = prober.with_(resolver=resolver)
        async with serving(answering(answer())) as port:
            first = await patient.check("tcp", f"a.example:{port}")
            assert b"\x01a\x07example" in await silent.recv(4_096), (
                "the silent nameserver is queried first"
            )
            # Waiting for this nameserver again would take the whole time of the run.
            monkeypatch.setattr(address_query, "PATIENCE_SECONDS", (FOR_EVER_SECONDS,))
            second = await patient.check("tcp", f"b.example:{port}")
    assert first.outcome is second.outcome is RunOutcome.UP


async def test_an_unanswered_address_family_does_not_delay_the_other(
    prober: Prober, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run that waits for this answer reaches its deadline, and is not up.
    monkeypatch.setattr(address_query, "PATIENCE_SECONDS", (FOR_EVER_SECONDS,))
    names.records[("app.example", "A")] = [["127.0.0.1"]]
    names.records[("app.example", "AAAA")] = [None]
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://app.example:{port}/")
    assert result.outcome is RunOutcome.UP


async def test_the_next_address_is_used_if_the_first_fails(prober: Prober, names: Names) -> None:
    names.records[("app.example", "A")] = [["127.0.0.1"]]
    names.records[("app.example", "AAAA")] = [["::1"]]
    async with serving(answering(answer())) as port:
        url = f"http://app.example:{port}/"
        any_family = await prober.check("http", url, "[IP] == 127.0.0.1")
        only_v6 = await prober.check("http", url, ip_family="ipv6")
    assert any_family.outcome is RunOutcome.UP
    assert (only_v6.outcome, only_v6.msg) == (RunOutcome.DOWN, "connect_refused app.example")


async def test_a_truncated_answer_is_requested_over_tcp(prober: Prober, names: Names) -> None:
    names.truncate = True
    names.records[("big.example", "A")] = [["127.0.0.1"]]
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://big.example:{port}/", ip_family="ipv4")
    assert result.outcome is RunOutcome.UP


async def test_answers_are_cached_for_their_ttl_and_failures_are_not(
    prober: Prober, names: Names
) -> None:
    names.records[("late.example", "A")] = [[], ["127.0.0.1"], dns.rcode.NXDOMAIN]
    async with serving(answering(answer())) as port:
        url = f"http://late.example:{port}/"
        outcomes = [(await prober.check("http", url, ip_family="ipv4")).outcome for _ in range(3)]
    assert outcomes == [RunOutcome.DOWN, RunOutcome.UP, RunOutcome.UP]
    assert len(names.asked) == 2


async def test_the_hosts_file_precedes_dns(prober: Prober, names: Names, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 App.Example other # nothing.example\n")
    resolver = Resolver(HostFiles(hosts=hosts, nameservers=(names.server,)))
    at_home = prober.with_(resolver=resolver)
    async with serving(answering(answer())) as port:
        assert (await at_home.check("tcp", f"app.example:{port}")).outcome is RunOutcome.UP
        assert (await at_home.check("tcp", f"other:{port}")).outcome is RunOutcome.UP
        assert (await at_home.check("tcp", f"localhost:{port}")).outcome is RunOutcome.UP
    assert names.asked == []
    assert (await at_home.check("tcp", "nothing.example:1")).msg == "dns_error nothing.example"
    v6 = await at_home.check("tcp", f"app.example:{port}", ip_family="ipv6")
    assert v6.msg == "dns_error app.example"


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(host_files, "monotonic", lambda: clock[0])
    hosts, resolv = tmp_path / "hosts", tmp_path / "resolv.conf"
    files = HostFiles(resolv, hosts)
    assert files.addresses("app.example") == ()
    assert files.nameservers() == (Nameserver("127.0.0.1"),)
    hosts.write_text("10.0.0.1 app.example\n")
    resolv.write_text("nameserver 10.0.0.53\n")
    clock[0] += host_files.RECHECK_SECONDS
    assert files.addresses("app.example") == ("10.0.0.1",)
    assert files.nameservers() == (Nameserver("10.0.0.53"),)


def test_resolv_conf_and_hosts_are_parsed_like_the_system_does() -> None:
    text = "# us\nsearch corp.example\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver x\n"
    assert [server.address for server in read_nameservers(text)] == ["10.0.0.1", "fe80::1%eth0"]
    assert [server.address for server in read_nameservers("")] == ["127.0.0.1"]
    assert read_hosts("10.0.0.1 a a\nnonsense b\n10.0.0.2 a") == {"a": ("10.0.0.1", "10.0.0.2")}


async def test_forged_answers_are_ignored(prober: Prober, names: Names) -> None:
    """Answers with a wrong id or question are ignored until the right answer arrives."""
    names.records[("app.example", "A")] = [["127.0.0.1"]]
    honest = names.reply

    def forged(wire: bytes, *, tcp: bool = False) -> bytes | None:
        reply = honest(wire, tcp=tcp)
        assert reply is not None
        return bytes([reply[0] ^ 1]) + reply[1:]

    names.reply = forged  # type: ignore[method-assign]
    with trio.fail_after(30):
        result = await prober.check("http", "http://app.example:1/", timeout_seconds=1)
    assert result.unknown_reason is UnknownReason.RESOLVER_DEAD
