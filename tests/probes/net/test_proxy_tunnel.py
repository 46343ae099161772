"""Checks through tinyproxy, and through proxies that misbehave."""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.proxy import proxy_faults
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.egress_policy import METADATA, probe_policy
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import listens, open_folder, running
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

HOST = "127.0.0.1"
PROXY_ERROR = message(FailureClass.PROXY_ERROR, HOST)
LOGIN = {"proxy_username": "watcher", "proxy_password": "horse-battery"}


def secure(certificate: trustme.LeafCert, handler: Handler) -> Handler:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with suppress(ssl.SSLError, trio.BrokenResourceError):
            await handler(wrapped)  # type: ignore[arg-type]

    return handle


_CONF = """
User nobody
Port {port}
Listen 127.0.0.1
Timeout 20
LogFile "{folder}/tinyproxy.log"
Allow 127.0.0.1
{more}
"""


@contextmanager
def tinyproxy(more: str = "") -> Iterator[tuple[str, Path]]:
    """Yields the URL of a proxy and its log."""
    with open_folder() as folder:
        port, conf = free_port(), folder / "tinyproxy.conf"
        folder.chmod(0o777)
        conf.write_text(_CONF.format(port=port, folder=folder, more=more))
        command = ["tinyproxy", "-d", "-c", str(conf)]
        with running(command, folder / "out.log", lambda: listens(port)):
            yield f"http://{HOST}:{port}", folder / "tinyproxy.log"


@pytest.fixture(scope="module")
def proxy() -> Iterator[tuple[str, Path]]:
    with tinyproxy() as found:
        yield found


@pytest.mark.needs("tinyproxy")
async def test_tinyproxy_opens_the_tunnel_of_every_type(
    prober: Prober, proxy: tuple[str, Path], authority: trustme.CA
) -> None:
    url, log = proxy
    seen: list[str] = []

    async def site(stream: Any) -> None:
        seen.append((await read_head(stream)).decode())
        await stream.send_all(answer())

    async with serving(site) as port:
        plain = f"http://{HOST}:{port}/a"
        result = await prober.check("http", plain, proxy_url=url)
        assert result.outcome is RunOutcome.UP, (result, result.bug)
        assert result.phases.connect_us is not None
        unknown = await prober.check("http", plain, "[IP] == 127.0.0.1", proxy_url=url)
        assert unknown.failed is not None
        assert unknown.failed.text == "[IP] == 127.0.0.1 (no value)"
        socket = await prober.check("websocket", f"ws://{HOST}:{port}/b", proxy_url=url)
        assert socket.code == 200
        query = await prober.check("promql", plain, query="1", proxy_url=url)
        assert query.msg == message(FailureClass.PROTOCOL_ERROR, HOST)
    # The target sees the request of a client, not that of a proxy.
    assert [head.split()[1] for head in seen[:1]] == ["/a"]
    assert "proxy" not in "".join(seen).lower()
    assert log.read_text().count("CONNECT") >= 4


@pytest.mark.needs("tinyproxy")
async def test_the_certificate_is_that_of_the_target(
    prober: Prober, proxy: tuple[str, Path], authority: trustme.CA
) -> None:
    async with serving(secure(authority.issue_cert(HOST), answering(answer()))) as port:
        wants = ("[CERT_EXPIRY] > 1d", "[STATUS] == 200")
        result = await prober.check("http", f"https://{HOST}:{port}/", *wants, proxy_url=proxy[0])
    assert result.outcome is RunOutcome.UP, (result, result.bug)
    assert result.phases.tls_us is not None


@pytest.mark.needs("tinyproxy")
async def test_a_proxy_that_refuses_is_a_class_of_its_own(prober: Prober) -> None:
    with tinyproxy("BasicAuth watcher horse-battery\nConnectPort 443") as (url, _):
        async with serving(answering(answer())) as port:
            target = f"http://{HOST}:{port}/"
            nobody = await prober.check("http", target, proxy_url=url)
            port_refused = await prober.check("http", target, proxy_url=url, **LOGIN)
    assert (nobody.msg, nobody.code) == (PROXY_ERROR, 407)
    assert (port_refused.msg, port_refused.code) == (PROXY_ERROR, 403)
    with tinyproxy("BasicAuth watcher horse-battery") as (url, _):
        async with serving(answering(answer())) as port:
            known = await prober.check("http", f"http://{HOST}:{port}/", proxy_url=url, **LOGIN)
        with refusing_port() as port:
            away = await prober.check("http", f"http://{HOST}:{port}/", proxy_url=url, **LOGIN)
    assert known.outcome is RunOutcome.UP, known
    assert (away.msg, away.code) == (PROXY_ERROR, 500)


BAD = [
    answer(b"", "502 Bad Gateway"),
    answer(b"", "407 Proxy Authentication Required"),
    b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000,
    b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000,
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200",
    b"",
]


@pytest.mark.parametrize("response", BAD)
async def test_a_misbehaving_proxy_is_never_a_failure_of_the_target(
    prober: Prober, response: bytes
) -> None:
    async with serving(answering(response)) as port:
        url = f"http://{HOST}:{port}"
        wants = "[CONNECTED] == false"
        result = await prober.check("http", "https://shop.example/", wants, proxy_url=url, **LOGIN)
    assert result.msg == message(FailureClass.PROXY_ERROR, "shop.example"), result.bug
    assert "horse" not in repr(result)


async def test_an_unreachable_or_silent_proxy_is_never_a_failure_of_the_target(
    prober: Prober, names: Names
) -> None:
    with refusing_port() as port:
        url = f"http://{HOST}:{port}"
        refused = await prober.check("http", "http://192.0.2.1/", proxy_url=url)
    assert refused.msg == message(FailureClass.PROXY_ERROR, "192.0.2.1")

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with serving(silent) as port:
        for scheme in ("http", "https"):
            url = f"{scheme}://{HOST}:{port}"
            slow = await prober.check("http", f"http://{HOST}:1/", proxy_url=url, timeout_seconds=1)
            assert slow.msg == PROXY_ERROR
    gone = await prober.check("http", f"http://{HOST}:1/", proxy_url="http://gone.example")
    assert gone.msg == PROXY_ERROR
    names.root = None
    names.records = {("mute.example", "A"): [None], ("mute.example", "AAAA"): [None]}
    url = "http://mute.example"
    mute = await prober.check("http", f"http://{HOST}:1/", proxy_url=url, timeout_seconds=1)
    assert mute.unknown_reason is UnknownReason.RESOLVER_DEAD


async def test_an_https_proxy_is_verified_and_carries_tls(
    prober: Prober, authority: trustme.CA
) -> None:
    heads: list[str] = []

    async def forward(stream: Any) -> None:
        head = (await read_head(stream)).decode()
        heads.append(head)
        host, port = head.split()[1].rsplit(":", 1)
        await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        out = await trio.open_tcp_stream(host, int(port))

        async def copy(one: Any, other: Any) -> None:
            while data := await one.receive_some(65_536):
                await other.send_all(data)
            nursery.cancel_scope.cancel()

        async with out, trio.open_nursery() as nursery:
            nursery.start_soon(copy, stream, out)
            nursery.start_soon(copy, out, stream)

    certificate = authority.issue_cert(HOST)
    async with (
        serving(secure(certificate, answering(answer()))) as site,
        serving(secure(certificate, forward)) as port,
        serving(secure(trustme.CA().issue_cert(HOST), forward)) as strange,
    ):
        target, wants = f"https://{HOST}:{site}/", "[CERT_EXPIRY] > 1d"
        url = f"https://{HOST}:{port}"
        result = await prober.check("http", target, wants, proxy_url=url, **LOGIN)
        assert result.outcome is RunOutcome.UP, (result, result.bug)
        bad = await prober.check("http", target, proxy_url=f"https://{HOST}:{strange}", **LOGIN)
        assert bad.msg == PROXY_ERROR
    pair = b64encode(b"watcher:horse-battery").decode()
    assert len(heads) == 1
    assert f"proxy-authorization: Basic {pair}" in heads[0]


@pytest.mark.needs("tinyproxy")
async def test_the_egress_policy_applies(prober: Prober, proxy: tuple[str, Path]) -> None:
    closed = prober.with_(policy=probe_policy(allow_private=False))
    hidden = await closed.check("http", "https://shop.example/", proxy_url=proxy[0])
    assert hidden.msg == message(FailureClass.PROXY_ERROR, "shop.example")
    metadata = str(next(iter(METADATA)).network_address)
    for policy, host in (
        (probe_policy(allow_private=False), "10.0.0.1"),
        (probe_policy(allow_private=False), "localhost"),
        (probe_policy(allow_private=False), "a.localhost"),
        (probe_policy(), metadata),
    ):
        result = await prober.with_(policy=policy).check(
            "http", f"http://{host}/", proxy_url=proxy[0]
        )
        assert result.msg == message(FailureClass.TARGET_BLOCKED, host)


@pytest.mark.needs("tinyproxy")
async def test_variables_of_the_environment_have_no_effect(
    prober: Prober, proxy: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy[0])
    before = proxy[1].read_text().count("Request")
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/")
    assert result.outcome is RunOutcome.UP
    assert proxy[1].read_text().count("Request") == before


@pytest.mark.needs("tinyproxy")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, proxy: tuple[str, Path]) -> None:
    # The target is a second proxy, because connections of this process would be counted.
    with tinyproxy() as (target, _):
        await leaves_nothing(lambda: prober.check("http", f"{target}/", proxy_url=proxy[0]))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"proxy_url": "http://a.example:3128"}, None),
        ({"proxy_url": "https://a.example", **LOGIN}, None),
        ({"proxy_url": "http://a.example", "proxy_username": "a", "proxy_password_ref": "b"}, None),
        ({"proxy_url": "socks5://a.example"}, "proxy_url"),
        ({"proxy_url": "http://u:p@a.example"}, "proxy_url"),
        ({"proxy_url": "http://a.example/path"}, "proxy_url"),
        (LOGIN, "proxy_url"),
        ({"proxy_url": "http://a.example", "proxy_username": "a"}, "proxy_password"),
        ({"proxy_url": "http://a.example", "proxy_password": "a"}, "proxy_username"),
        ({"proxy_url": "http://a.example", **LOGIN, "proxy_username": "a:b"}, "proxy_username"),
        ({"proxy_url": "http://a.example", **LOGIN, "proxy_password_ref": "b"}, "proxy_password"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "promql", "websocket"])
def test_the_settings_belong_together(kind: str, config: dict[str, str], field: str | None) -> None:
    given_ = {**config, "query": "1"} if kind == "promql" else config
    target = "ws://a.example/" if kind == "websocket" else "http://a.example/"
    found = [fault.field for fault in validate(kind, target, None, given_, [])]
    assert found == ([] if field is None else [f"config.{field}"])


@given(st.dictionaries(st.sampled_from(["proxy_url", *LOGIN, "proxy_password_ref"]), st.text()))
def test_any_settings_are_judged_without_an_exception(config: dict[str, str]) -> None:
    assert all(fault.field.startswith("config.proxy_") for fault in proxy_faults(config))
