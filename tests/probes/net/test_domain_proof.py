"""Evidence of a domain from real name servers and from a web server."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
import trio

from leadline.probes import domain_proof
from leadline.probes.check.domain_evidence import FILE_PATH, TEXT_PREFIX, DomainEvidence
from leadline.probes.domain_proof import HostNames, _is_local, look_at_domain
from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import EgressPolicy, probe_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles, Nameserver
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.own_network import own_network
from tests.support.peers.real_servers import HOST, open_folder, running
from tests.support.peers.servers import (
    Handler,
    Names,
    Prober,
    answer,
    answering,
    open_names,
    read_head,
    serving,
)
from tests.support.processes.ports import free_port

DOMAIN = "status.shop.test"
RECORD = f"_leadline.{DOMAIN}"
TOKEN = "abcdefghijklmnopqrstuvwxyz234567"
TEXT = f"{TEXT_PREFIX}{TOKEN}"
# An address that is not a loopback one, in a network of the test.
HERE = "198.51.100.7"

ZONE = f"""
$TTL 60
@     IN SOA  ns hostmaster 7 3600 600 86400 60
      IN NS   ns
ns    IN A    192.0.2.1
status IN A   192.0.2.10
_leadline.status IN TXT "v=spf1 -all"
_leadline.status IN TXT "{TEXT[:20]}" "{TEXT[20:]}"
alias IN A    192.0.2.10
_leadline.alias IN CNAME {TOKEN}.up.elsewhere.test.
deep  IN A    192.0.2.10
_leadline.deep IN CNAME proofs
proofs IN TXT "{TEXT}"
bare  IN A    192.0.2.10
"""
BIND = """
options {{
  directory "{folder}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on-v6 {{ none; }}; listen-on port {port} {{ 127.0.0.1; }};
}};
controls {{ }};
zone "shop.test" {{ type primary; file "{folder}/zone"; }};
"""


@pytest.fixture(scope="module")
def bind() -> Iterator[Nameserver]:
    with open_folder() as folder:
        (folder / "zone").write_text(ZONE)
        server = Nameserver(HOST, free_port())
        config = folder / "named.conf"
        config.write_text(BIND.format(folder=folder, port=server.port))
        shutil.chown(folder, "nobody")
        command = ["named", "-g", "-c", str(config), "-u", "nobody"]
        with running(command, folder / "log", lambda: has_zone(server)):
            yield server


def has_zone(server: Nameserver) -> bool:
    query = dns.message.make_query("shop.test", "SOA")
    try:
        found = dns.query.udp(query, HOST, port=server.port, timeout=1)
    except (OSError, dns.exception.DNSException):
        return False
    return found.rcode() == dns.rcode.NOERROR and bool(found.answer)


def asking(server: Nameserver) -> Egress:
    """Returns an egress that cannot connect: the web servers of the zone do not exist."""
    files = HostFiles(hosts=Path("/nonexistent"), nameservers=(server,))
    return make_reach(EgressPolicy(False), resolver=Resolver(files))


@pytest.mark.needs("named", "root")
@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("status.shop.test", {TOKEN}),
        ("alias.shop.test", {TOKEN}),
        # The record of another name to which the owner of the zone refers.
        ("deep.shop.test", {TOKEN, "proofs"}),
        ("bare.shop.test", set()),
        ("missing.shop.test", set()),
    ],
)
async def test_records_of_a_real_name_server(
    bind: Nameserver, name: str, records: set[str]
) -> None:
    seen = await look_at_domain(name, asking(bind))
    assert seen == DomainEvidence(records=frozenset(records), is_answered=True)


async def test_a_name_without_a_record_is_answered(names: Names, prober: Prober) -> None:
    assert await look_at_domain(DOMAIN, prober.reach) == DomainEvidence(is_answered=True)
    assert (RECORD, "TXT") in names.asked


@pytest.mark.parametrize("broken", [None, dns.rcode.SERVFAIL, dns.rcode.REFUSED])
@pytest.mark.parametrize("kind", ["TXT", "CNAME"])
async def test_a_record_without_an_answer_is_not_known_to_be_missing(
    names: Names, prober: Prober, kind: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.probes.net.dns_exchange.PATIENCE_SECONDS", (0.1,))
    names.records[(DOMAIN, "A")] = [["192.0.2.7"]]
    names.records[(RECORD, "TXT")] = [[f'"{TEXT}"']]
    names.records[(RECORD, kind)] = [broken]
    seen = await look_at_domain(DOMAIN, replace(prober.reach, policy=EgressPolicy(False)))
    assert not seen.is_answered
    assert seen.records == (set() if kind == "TXT" else {TOKEN})


async def test_no_name_server_is_no_answer() -> None:
    reach = asking(Nameserver(HOST, free_port()))
    assert await look_at_domain(DOMAIN, reach) == DomainEvidence()


async def test_the_evidence_of_a_slow_domain_ends(
    names: Names, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_proof, "LOOK_SECONDS", 0.2)
    names.records[(DOMAIN, "A")] = [["192.0.2.7"]]
    names.records[(RECORD, "TXT")] = [None]
    reach = replace(prober.reach, policy=EgressPolicy(False))
    assert not (await look_at_domain(DOMAIN, reach)).is_answered


@pytest.mark.parametrize(
    ("kind", "address", "is_local"),
    [
        ("A", "127.0.0.1", True),
        ("A", "127.9.9.9", True),
        ("A", "0.0.0.0", True),
        ("AAAA", "::1", True),
        ("AAAA", "::ffff:127.0.0.1", True),
        ("AAAA", "64:ff9b::7f00:1", True),
        ("A", "192.0.2.7", False),
        ("A", "10.0.0.1", False),
        ("AAAA", "fd00::7", False),
    ],
)
async def test_a_loopback_address_is_seen_and_not_asked(
    names: Names, prober: Prober, kind: str, address: str, is_local: bool
) -> None:
    names.records[(DOMAIN, kind)] = [[address]]
    names.records[(RECORD, "TXT")] = [[f'"{TEXT}"']]
    seen = await look_at_domain(DOMAIN, replace(prober.reach, policy=EgressPolicy(False)))
    assert seen.is_local is is_local
    assert seen.records == (set() if is_local else {TOKEN})
    assert _is_local(address) is is_local


async def file_of(handler: Handler, names: Names, *, allow_private: bool = True) -> str:
    """Returns the token of the file of a web server at an address that is not a loopback one."""
    names.records[(DOMAIN, "A")] = [[HERE]]
    files = HostFiles(hosts=Path("/nonexistent"), nameservers=(names.server,))
    policy = probe_policy(allow_private=allow_private)
    reach = make_reach(policy, resolver=Resolver(files))
    async with serving(handler, HERE) as port:
        return (await look_at_domain(DOMAIN, reach, file_port=port)).file


@pytest.mark.needs("root", "ip")
async def test_a_file_is_read_once_and_only_the_exact_one(nursery: trio.Nursery) -> None:
    asked: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        asked.append(await read_head(stream))
        await stream.send_all(answer(f"{TEXT}\n".encode()))

    with own_network(HERE):
        names = await open_names(nursery)
        assert await file_of(handle, names) == TOKEN
    (head,) = asked
    assert head.startswith(f"GET {FILE_PATH} HTTP/1.1\r\n".encode())
    assert TOKEN.encode() not in head
    host = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"host:"))
    assert host.partition(b":")[2].strip().startswith(DOMAIN.encode())


async def echo(stream: trio.SocketStream) -> None:
    """Repeats the request in the answer, as many catch-all pages do."""
    await stream.send_all(answer(await read_head(stream)))


@pytest.mark.needs("root", "ip")
@pytest.mark.parametrize(
    "handler",
    [
        echo,
        answering(answer(TEXT.encode(), "404 Not Found")),
        answering(answer(TEXT.encode(), "201 Created")),
        answering(answer(b"", "302 Found", f"location: http://{HERE}/proof")),
        answering(answer(f"<html>{TEXT}</html>".encode())),
        answering(answer(f"{TEXT}{' ' * 2_000}".encode())),
        answering(answer(f"{TEXT}\n{TEXT_PREFIX}other".encode())),
        answering(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n" + TEXT.encode()),
        answering(b"nonsense"),
    ],
)
async def test_another_answer_is_no_file(nursery: trio.Nursery, handler: Handler) -> None:
    with own_network(HERE):
        names = await open_names(nursery)
        assert await file_of(handler, names) == ""


@pytest.mark.needs("root", "ip")
async def test_the_egress_policy_decides_which_web_server_is_asked(nursery: trio.Nursery) -> None:
    with own_network(HERE):
        names = await open_names(nursery)
        assert await file_of(answering(answer(TEXT.encode())), names) == TOKEN
        assert await file_of(answering(answer(TEXT.encode())), names, allow_private=False) == ""


async def test_cancelled_checks_leave_nothing_open(names: Names, prober: Prober) -> None:
    names.records[(DOMAIN, "A")] = [["192.0.2.7"]]
    names.records[(RECORD, "TXT")] = [[f'"{TEXT}"']]
    reach = replace(prober.reach, policy=EgressPolicy(False))

    async def look() -> object:
        return await look_at_domain(DOMAIN, reach)

    await leaves_nothing(look)


async def test_the_host_has_a_name_even_if_its_full_name_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Nas")
    monkeypatch.setattr("socket.getfqdn", lambda: "Nas.example.com")
    names = HostNames()
    assert await names.known() == {"nas", "nas.example.com"}
    monkeypatch.setattr(domain_proof, "HOST_NAME_SECONDS", 0)
    assert await names.known() == {"nas", "nas.example.com"}
    assert await HostNames().known() == {"nas"}
