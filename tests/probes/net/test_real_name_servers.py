"""DNS checks against BIND and Knot, over every transport that each of them has."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import pytest
import trustme

from leadline.probes.check.result import FailureClass, Result, RunOutcome, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, listens, open_folder, running, write_certificate
from tests.support.peers.servers import Prober
from tests.support.processes.ports import free_port

ZONE = """
$TTL 60
@     IN SOA  ns hostmaster 7 3600 600 86400 60
      IN NS   ns
      IN MX   10 mail
      IN TXT  "v=spf1 -all"
      IN CAA  0 issue "ca.example"
ns    IN A    192.0.2.1
www   IN A    192.0.2.10
      IN A    192.0.2.9
      IN AAAA 2001:db8::9
mail  IN A    192.0.2.25
alias IN CNAME www
_sip._tcp IN SRV 1 2 5060 www
large IN TXT  "{filler}"
"""
BIND = """
options {{
  directory "{folder}"; pid-file none; session-keyfile none; recursion no; dnssec-validation no;
  listen-on-v6 {{ none; }};
  listen-on port {plain} {{ 127.0.0.1; }};
  listen-on port {dot} tls local {{ 127.0.0.1; }};
  listen-on port {doh} tls local http default {{ 127.0.0.1; }};
}};
controls {{ }};
tls local {{ key-file "{folder}/server.key"; cert-file "{folder}/server.crt"; }};
zone "shop.test" {{ type primary; file "{folder}/zone"; }};
"""
KNOT = """
server:
    rundir: "{folder}/run"
    listen: 127.0.0.1@{plain}
database:
    storage: "{folder}/db"
log:
  - target: stderr
    any: warning
zone:
  - domain: shop.test
    file: "{folder}/zone"
"""
# A megabyte of strings does not fit; four kilobytes do, over TCP only.
FILLER = '" "'.join(["x" * 200] * 20)


@dataclass(frozen=True)
class NameServer:
    plain: int
    dot: int = 0
    doh: int = 0

    @property
    def at(self) -> str:
        return f"{HOST}:{self.plain}"


@pytest.fixture(scope="module")
def bind(authority: trustme.CA) -> Iterator[NameServer]:
    with open_folder() as folder:
        _write(folder)
        write_certificate(authority, folder, HOST)
        (folder / "server.key").chmod(0o644)
        server = NameServer(free_port(), free_port(), free_port())
        config = folder / "named.conf"
        config.write_text(BIND.format(folder=folder, **server.__dict__))
        shutil.chown(folder, "nobody")
        command = ["named", "-g", "-c", str(config), "-u", "nobody"]
        with running(command, folder / "log", lambda: listens(server.doh) and has_zone(server)):
            yield server


@pytest.fixture(scope="module")
def knot() -> Iterator[NameServer]:
    with open_folder() as folder:
        _write(folder)
        (folder / "run").mkdir()
        server = NameServer(free_port())
        config = folder / "knot.conf"
        config.write_text(KNOT.format(folder=folder, plain=server.plain))
        with running(["knotd", "-c", str(config)], folder / "log", lambda: has_zone(server)):
            yield server


def has_zone(server: NameServer) -> bool:
    """Returns whether the zones are loaded: the server listens before that, and answers
    SERVFAIL.
    """
    query = dns.message.make_query("shop.test", "SOA")
    try:
        answer = dns.query.udp(query, HOST, port=server.plain, timeout=1)
    except (OSError, dns.exception.DNSException):
        return False
    return answer.rcode() == dns.rcode.NOERROR and bool(answer.answer)


def _write(folder: Path) -> None:
    (folder / "zone").write_text(ZONE.format(filler=FILLER))


def is_down(result: Result, failure: FailureClass, name: str) -> bool:
    return result.outcome is RunOutcome.DOWN and result.msg == message(failure, name)


RECORDS = [
    ("www.shop.test", "A", "192.0.2.10\n192.0.2.9"),
    ("www.shop.test", "AAAA", "2001:db8::9"),
    ("shop.test", "MX", "10 mail.shop.test"),
    ("shop.test", "NS", "ns.shop.test"),
    ("shop.test", "TXT", "v=spf1 -all"),
    ("shop.test", "CAA", '0 issue "ca.example"'),
    ("shop.test", "SOA", "ns.shop.test hostmaster.shop.test 7 3600 600 86400 60"),
    ("alias.shop.test", "CNAME", "www.shop.test"),
    ("alias.shop.test", "A", "192.0.2.10\n192.0.2.9"),
    ("_sip._tcp.shop.test", "SRV", "1 2 5060 www.shop.test"),
]


async def assert_record(
    prober: Prober, server: NameServer, name: str, kind: str, wanted: str, **more: str
) -> None:
    settings = {"resolver": server.at, "record_type": kind, **more}
    spelt = wanted.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    result = await prober.check("dns", name, f'[RESULT] == "{spelt}"', "[STATUS] == 0", **settings)
    assert (result.outcome, result.code) == (RunOutcome.UP, 0), (name, kind, more, result)


@pytest.mark.needs("named")
@pytest.mark.parametrize("transport", ["udp", "tcp", "dot", "doh"])
async def test_bind_answers_every_type_over_every_transport(
    prober: Prober, bind: NameServer, transport: str
) -> None:
    port = {"dot": bind.dot, "doh": bind.doh}.get(transport, bind.plain)
    for name, kind, wanted in RECORDS:
        at = f"{HOST}:{port}"
        await assert_record(prober, bind, name, kind, wanted, transport=transport, resolver=at)


@pytest.mark.needs("knotd")
@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_knot_answers_every_type(prober: Prober, knot: NameServer, transport: str) -> None:
    for name, kind, wanted in RECORDS:
        await assert_record(prober, knot, name, kind, wanted, transport=transport)


@pytest.mark.needs("named", "knotd")
async def test_missing_and_refused_names_have_their_rcode(
    prober: Prober, bind: NameServer, knot: NameServer
) -> None:
    for server in (bind, knot):
        for name, record_type, code in (
            ("nowhere.shop.test", "A", 3),
            ("www.shop.test", "MX", 0),
            ("elsewhere.test", "A", 5),
        ):
            result = await prober.check("dns", name, resolver=server.at, record_type=record_type)
            assert is_down(result, FailureClass.DNS_ERROR, name), result
            assert result.code == code


@pytest.mark.needs("named", "knotd")
async def test_a_truncated_answer_is_requested_over_tcp(
    prober: Prober, bind: NameServer, knot: NameServer
) -> None:
    for server in (bind, knot):
        result = await prober.check(
            "dns", "large.shop.test", "[RESULT] contains xxx", resolver=server.at, record_type="TXT"
        )
        assert result.outcome is RunOutcome.UP, result


@pytest.mark.needs("named")
@pytest.mark.parametrize("transport", ["udp", "tcp", "dot", "doh"])
async def test_a_stopped_server_is_connect_refused(prober: Prober, transport: str) -> None:
    at = f"{HOST}:{free_port()}"
    result = await prober.check("dns", "www.shop.test", resolver=at, transport=transport)
    assert is_down(result, FailureClass.CONNECT_REFUSED, "www.shop.test"), result


@pytest.mark.needs("named")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, bind: NameServer) -> None:
    for transport, port in (("udp", bind.plain), ("dot", bind.dot), ("doh", bind.doh)):
        at = f"{HOST}:{port}"

        async def probe(at: str = at, transport: str = transport) -> object:
            return await prober.check("dns", "www.shop.test", resolver=at, transport=transport)

        await leaves_nothing(probe)
