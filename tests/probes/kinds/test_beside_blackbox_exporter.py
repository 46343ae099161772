"""The same targets, probed by Leadline and by the blackbox_exporter of Prometheus: both give the
same verdict, except for the listed cases.

`DIFFERENCES` is the complete list of cases with different verdicts, each with the reason. The test
also fails if a listed difference no longer exists.
"""

import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dns.rcode
import httpx
import pytest
import trio
import trustme

from leadline.probes.check.result import RunOutcome
from tests.support.peers.real_servers import HOST, listens, running
from tests.support.peers.servers import (
    Handler,
    Names,
    Prober,
    answer,
    answering,
    read_head,
    serving,
)
from tests.support.processes.ports import free_port, refusing_port

PROGRAM = "prometheus-blackbox-exporter"
pytestmark = [pytest.mark.needs(PROGRAM)]
TIMEOUT_SECONDS = 2

DIFFERENCES = {
    "http: an endless body": "nobody asked for the body: what was read of it is enough",
    "dns: no record of the type": "an empty answer is no answer to what was asked",
    "tls: ends in ten days": "within warn_days of its end a certificate is a failure, to be mended",
}


@dataclass(frozen=True)
class Case:
    """A case: `ours` are the arguments of a check; `module` and `target` are the equivalent for the
    exporter.
    """

    kind: str
    target: str
    module: str
    their_target: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Exporter:
    port: int

    async def verdict(self, module: str, target: str) -> bool:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            url = f"http://{HOST}:{self.port}/probe"
            found = await client.get(url, params={"module": module, "target": target})
        lines = found.text.splitlines()
        (value,) = [line for line in lines if line.startswith("probe_success ")]
        return value == "probe_success 1"


def dns_module(name: str, transport: str = "udp", kind: str = "A") -> dict[str, Any]:
    settings = {
        "query_name": name,
        "query_type": kind,
        "transport_protocol": transport,
        "preferred_ip_protocol": "ip4",
    }
    return {"prober": "dns", "timeout": f"{TIMEOUT_SECONDS}s", "dns": settings}


def modules(ca: Path) -> dict[str, Any]:
    tls = {"ca_file": str(ca)}
    timeout = f"{TIMEOUT_SECONDS}s"
    return {
        "http": {
            "prober": "http",
            "timeout": timeout,
            "http": {"tls_config": tls, "preferred_ip_protocol": "ip4"},
        },
        "tcp": {"prober": "tcp", "timeout": timeout, "tcp": {"preferred_ip_protocol": "ip4"}},
        "tls": {
            "prober": "tcp",
            "timeout": timeout,
            "tcp": {"tls": True, "tls_config": tls, "preferred_ip_protocol": "ip4"},
        },
        "icmp": {"prober": "icmp", "timeout": timeout},
        "dns-there": dns_module("there.test"),
        "dns-there-tcp": dns_module("there.test", "tcp"),
        "dns-nowhere": dns_module("nowhere.test"),
        "dns-mx": dns_module("there.test", kind="MX"),
        "dns-failing": dns_module("failing.test"),
        "dns-silent": dns_module("silent.test"),
    }


@pytest.fixture(scope="module")
def exporter(authority_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("exporter")
    config = folder / "modules.yml"
    # JSON is valid YAML.
    config.write_text(json.dumps({"modules": modules(authority_file)}))
    port = free_port()
    command = [PROGRAM, f"--config.file={config}", f"--web.listen-address={HOST}:{port}"]
    with running(command, folder / "log", lambda: listens(port)):
        yield Exporter(port)


# Peers.


async def silent(_stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def resetting(stream: trio.SocketStream) -> None:
    await read_head(stream)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    stream.socket.close()


async def endless(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b"." * 65_536)


def moved(location: str, status: str = "302 Found") -> Handler:
    return answering(answer(b"", status, f"location: {location}"))


@asynccontextmanager
async def serving_tls(certificate: trustme.LeafCert, handler: Handler) -> AsyncIterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def encrypted(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            await wrapped.do_handshake()
            await handler(wrapped)  # type: ignore[arg-type]
        except (trio.BrokenResourceError, ssl.SSLError):
            return

    async with serving(encrypted) as port:
        yield port


def ending(authority: trustme.CA, days: float, *names: str) -> trustme.LeafCert:
    now = datetime.now(UTC)
    start = now - timedelta(days=400)
    return authority.issue_cert(
        *(names or (HOST,)), not_before=start, not_after=now + timedelta(days=days)
    )


HTTP: dict[str, Handler] = {
    "200": answering(answer()),
    "204": answering(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "301 without a place": answering(answer(b"", "301 Moved Permanently")),
    "404": answering(answer(b"", "404 Not Found")),
    "500": answering(answer(b"", "500 Oh")),
    "503 with retry": answering(answer(b"", "503 Busy", "retry-after: 1")),
    "silent": silent,
    "reset": resetting,
    "garbage": answering(b"\x16\x03\x01 what?\r\n\r\n"),
    "nothing": answering(b""),
    "half a head": answering(b"HTTP/1.1 200 OK\r\nx: "),
    "an endless body": endless,
    "a broken gzip body": answering(answer(b"nonsense", "200 OK", "content-encoding: gzip")),
    "a redirect to a metadata address": moved("http://169.254.169.254/"),
    "a redirect to what is no address": moved("http://256.256.256.256/"),
}


async def http_cases(stack: AsyncExitStack, good_url: str) -> dict[str, Case]:
    found = {}
    handlers = {
        **HTTP,
        "a redirect to what is fine": moved(good_url),
        "a redirect to a closed port": moved(
            f"http://{HOST}:{stack.enter_context(refusing_port(HOST))}/"
        ),
    }
    for name, handler in handlers.items():
        port = await stack.enter_async_context(serving(handler))
        url = f"http://{HOST}:{port}/"
        found[f"http: {name}"] = Case("http", url, "http", url)
    url = f"http://{HOST}:{stack.enter_context(refusing_port(HOST))}/"
    found["http: refused"] = Case("http", url, "http", url)
    return found


async def tls_cases(stack: AsyncExitStack, authority: trustme.CA) -> dict[str, Case]:
    certificates = {
        "good": ending(authority, 90),
        "ends in ten days": ending(authority, 10),
        "expired": ending(authority, -1),
        "for another host": ending(authority, 90, "elsewhere.test"),
        "of nobody that is believed": ending(trustme.CA(), 90),
    }
    found = {}
    for name, certificate in certificates.items():
        port = await stack.enter_async_context(serving_tls(certificate, answering(answer())))
        at = f"{HOST}:{port}"
        found[f"tls: {name}"] = Case("tls", at, "tls", at)
        url = f"https://{at}/"
        found[f"https: {name}"] = Case("http", url, "http", url)
    plain = f"{HOST}:{await stack.enter_async_context(serving(answering(answer())))}"
    found["tls: plain text"] = Case("tls", plain, "tls", plain)
    found["https: plain text"] = Case("http", f"https://{plain}/", "http", f"https://{plain}/")
    mute = f"{HOST}:{await stack.enter_async_context(serving(silent))}"
    found["tls: silent"] = Case("tls", mute, "tls", mute)
    return found


async def tcp_cases(stack: AsyncExitStack) -> dict[str, Case]:
    open_ = f"{HOST}:{await stack.enter_async_context(serving(silent))}"
    closed = f"{HOST}:{stack.enter_context(refusing_port(HOST))}"
    return {
        "tcp: open and silent": Case("tcp", open_, "tcp", open_),
        "tcp: refused": Case("tcp", closed, "tcp", closed),
    }


def dns_cases(names: Names) -> dict[str, Case]:
    names.records |= {
        ("there.test", "A"): [["192.0.2.1"]],
        ("failing.test", "A"): [dns.rcode.SERVFAIL],
        ("silent.test", "A"): [None],
    }
    at = f"{HOST}:{names.port}"

    def case(name: str, module: str, **settings: Any) -> Case:
        return Case("dns", name, module, at, {"resolver": at, **settings})

    return {
        "dns: there": case("there.test", "dns-there"),
        "dns: there by tcp": case("there.test", "dns-there-tcp", transport="tcp"),
        "dns: nowhere": case("nowhere.test", "dns-nowhere"),
        "dns: no record of the type": case("there.test", "dns-mx", record_type="MX"),
        "dns: failing": case("failing.test", "dns-failing"),
        "dns: silent": case("silent.test", "dns-silent"),
    }


ICMP = {
    "icmp: this host": Case("icmp", HOST, "icmp", HOST),
    "icmp: this host by IPv6": Case("icmp", "::1", "icmp", "::1"),
}


async def judged(prober: Prober, exporter: Exporter, case: Case) -> tuple[bool, bool]:
    theirs = await exporter.verdict(case.module, case.their_target)
    result = await prober.check(
        case.kind, case.target, timeout_seconds=TIMEOUT_SECONDS, **case.settings
    )
    assert result.outcome is not RunOutcome.UNKNOWN, result
    return result.outcome is RunOutcome.UP, theirs


async def test_verdicts_agree_except_for_listed_differences(
    prober: Prober, names: Names, authority: trustme.CA, exporter: Exporter
) -> None:
    verdicts: dict[str, tuple[bool, bool]] = {}
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(serving(answering(answer())))
        cases = {
            **await http_cases(stack, f"http://{HOST}:{good}/"),
            **await tls_cases(stack, authority),
            **await tcp_cases(stack),
            **dns_cases(names),
            **ICMP,
        }
        async with trio.open_nursery() as nursery:
            for name, case in cases.items():
                nursery.start_soon(partial(_note, verdicts, name, prober, exporter, case))
    differ = {name for name, (ours, theirs) in verdicts.items() if ours is not theirs}
    assert differ == set(DIFFERENCES), {n: verdicts.get(n) for n in differ ^ set(DIFFERENCES)}
    assert {True, False} == {ours for ours, _ in verdicts.values()}


async def _note(
    verdicts: dict[str, tuple[bool, bool]],
    name: str,
    prober: Prober,
    exporter: Exporter,
    case: Case,
) -> None:
    verdicts[name] = await judged(prober, exporter, case)
