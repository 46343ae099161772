"""httpx on the egress: addresses, redirects, limits, cancellation, TLS, and the environment."""

import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
import trustme
from trio.testing import wait_all_tasks_blocked

from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.result import FailureClass
from leadline.probes.check.target import read_url
from leadline.probes.net.egress import Egress
from leadline.probes.net.egress_httpx import is_whole, location_of, make_client, send_request
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.net.tls_contexts import HTTP_ALPN, TlsSetting
from tests.support.peers.leaks import leaves_nothing, nothing_left_behind
from tests.support.peers.servers import (
    HANGS_SECONDS,
    Handler,
    Names,
    Prober,
    answer,
    answering,
    read_head,
    serving,
)

BOUND = 10_000


async def get(
    egress: Egress,
    url: str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    seconds: float = HANGS_SECONDS,
) -> httpx.Response:
    return await send_request(
        egress,
        "POST" if body else "GET",
        read_url(url),
        headers=headers or {},
        body=body,
        bytes_most=BOUND,
        seconds=seconds,
    )


async def failure_of(egress: Egress, url: str, seconds: float = HANGS_SECONDS) -> FailureClass:
    with trio.fail_after(HANGS_SECONDS), pytest.raises(TargetFailure) as caught:
        await get(egress, url, seconds=seconds)
    return caught.value.failure


@asynccontextmanager
async def recording_server(reply: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yields the port of a server with one fixed reply, and the request heads that it received."""
    heads: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(reply)

    async with serving(handle) as port:
        yield port, heads


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_a_name_with_a_forbidden_address_is_blocked(
    prober: Prober, names: Names, address: str
) -> None:
    names.records[("inside.example", "A")] = [[address]]
    egress = replace(prober.reach, policy=notify_policy())
    async with recording_server(answer()) as (port, heads):
        assert await failure_of(egress, f"http://inside.example:{port}/") == "target_blocked"
    assert heads == []


async def test_the_address_is_checked_for_each_request_of_a_client(
    prober: Prober, names: Names
) -> None:
    names.ttl = 0
    names.records[("turning.example", "A")] = [["127.0.0.1"], ["169.254.169.254"]]
    async with recording_server(answer()) as (port, heads):
        url = f"http://turning.example:{port}/"
        async with make_client(prober.reach, seconds=HANGS_SECONDS, bytes_most=BOUND) as client:
            assert (await client.get(url)).status_code == 200
            with pytest.raises(TargetFailure) as caught:
                await client.get(url)
    assert caught.value.failure is FailureClass.TARGET_BLOCKED
    assert len(heads) == 1


@pytest.mark.parametrize(
    "place",
    ["/again", "http://169.254.169.254/", "ftp://a/", "http://[::1", "http://h:99999/", "//\xff:1"],
)
async def test_redirects_are_not_followed(prober: Prober, place: str) -> None:
    head = f"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nLocation: {place}\r\n\r\n"
    async with recording_server(head.encode("latin-1")) as (port, heads):
        response = await get(prober.reach, f"http://127.0.0.1:{port}/")
    assert (response.status_code, location_of(response)) == (302, place)
    assert "location" not in response.headers
    assert len(heads) == 1


def chunked(body: bytes) -> bytes:
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"


def packed(body: bytes) -> bytes:
    return answer(gzip.compress(body), "200 OK", "content-encoding: gzip")


def unframed(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n" + body


FRAMINGS: list[Callable[[bytes], bytes]] = [answer, chunked, packed, unframed]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("size", [0, 1, BOUND, BOUND + 1, 50 * BOUND])
async def test_a_body_is_read_up_to_the_limit(
    prober: Prober, framing: Callable[[bytes], bytes], size: int
) -> None:
    async with serving(answering(framing(b"x" * size))) as port:
        response = await get(prober.reach, f"http://127.0.0.1:{port}/")
    assert response.content == b"x" * min(size, BOUND)
    assert is_whole(response) == (size <= BOUND)
    assert response.status_code == 200


def sending(piece: bytes) -> Handler:
    """A server that sends one piece repeatedly."""

    async def handle(stream: trio.SocketStream) -> None:
        while True:
            await stream.send_all(piece)

    return handle


@pytest.mark.parametrize(
    "handler",
    [
        sending(b"HTTP/1.1 100 Continue\r\n\r\n"),
        sending(b"HTTP/1.1 200 OK\r\nx: " + b"x" * 10_000),
        answering(b"HTTP/1.1 200 OK\r\n" + b"a:b\r\n" * 10_000 + b"\r\n"),
    ],
)
async def test_an_oversized_head_is_too_large(prober: Prober, handler: Handler) -> None:
    async with serving(handler) as port:
        assert await failure_of(prober.reach, f"http://127.0.0.1:{port}/") == "response_too_large"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"", "protocol_error"),
        (b"\x00\xff\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", "protocol_error"),
        (answer(b"x" * 99, "200 OK", "content-encoding: gzip"), "protocol_error"),
        (answer(b"x", "200 OK", "content-encoding: br"), "protocol_error"),
    ],
)
async def test_invalid_answers_get_their_failure_class(
    prober: Prober, reply: bytes, expected: str
) -> None:
    async with serving(answering(reply)) as port:
        assert await failure_of(prober.reach, f"http://127.0.0.1:{port}/") == expected


async def test_a_closed_port_is_connect_refused(prober: Prober) -> None:
    assert await failure_of(prober.reach, "http://127.0.0.1:1/") == "connect_refused"


async def silent(stream: trio.SocketStream) -> None:
    """Waits until the client closes, so that both ends of a connection are open or neither is."""
    while await stream.receive_some():
        pass


async def half_a_body(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
    await silent(stream)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("handler", [silent, half_a_body])
async def test_a_timeout_leaves_no_connection_open(
    prober: Prober, handler: Handler, scheme: str
) -> None:
    async with serving(handler) as port:
        url = f"{scheme}://127.0.0.1:{port}/"

        async def ask() -> None:
            # A plain answer is no TLS handshake: that attempt fails without waiting.
            with suppress(TargetFailure):
                await get(prober.reach, url, body=b"x" * 99)
            await wait_all_tasks_blocked(cushion=0.01)

        # On a busy machine, an abandoned thread would still read the authorities at the end.
        setting = TlsSetting(verify=True, alpn=HTTP_ALPN)
        prober.reach.contexts.keep(setting, prober.reach.contexts.make(setting))
        with trio.move_on_after(0.2):
            await ask()
        await wait_all_tasks_blocked(cushion=0.01)
        with nothing_left_behind():
            with trio.move_on_after(0.2):
                await ask()
            await wait_all_tasks_blocked(cushion=0.01)


async def test_each_step_has_its_own_timeout(prober: Prober, names: Names) -> None:
    names.records[("slow.example", "A")] = [None]
    assert await failure_of(prober.reach, "http://slow.example/", 0.1) == "connect_timeout"
    for handler, scheme in ((silent, "http"), (silent, "https"), (half_a_body, "http")):
        async with serving(handler) as port:
            url = f"{scheme}://127.0.0.1:{port}/"
            assert await failure_of(prober.reach, url, 0.1) == "timeout"


@asynccontextmanager
async def serving_tls(certificate: trustme.LeafCert, reply: bytes) -> AsyncIterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True)
        await read_head(wrapped)
        await wrapped.send_all(reply)

    async with serving(handle) as port:
        yield port


async def test_tls_is_verified_by_the_authorities_of_the_egress(
    prober: Prober, authority: trustme.CA
) -> None:
    async with serving_tls(authority.issue_cert("127.0.0.1"), answer(b"safe")) as port:
        response = await get(prober.reach, f"https://127.0.0.1:{port}/")
    assert response.content == b"safe"
    for certificate in (
        authority.issue_cert("other.example"),
        trustme.CA().issue_cert("127.0.0.1"),
    ):
        async with serving_tls(certificate, answer()) as port:
            assert await failure_of(prober.reach, f"https://127.0.0.1:{port}/") == "tls_error"
    async with serving(half_a_body) as port:
        assert await failure_of(prober.reach, f"https://127.0.0.1:{port}/") == "tls_error"


async def test_no_proxy_netrc_or_cookie_of_the_environment_is_used(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    netrc = tmp_path / "netrc"
    netrc.write_text("default login a password b\n")
    monkeypatch.setenv("NETRC", str(netrc))
    reply = answer(b"", "200 OK", "Set-Cookie: kept=1; Path=/")
    async with recording_server(reply) as (port, heads):
        async with make_client(prober.reach, seconds=HANGS_SECONDS, bytes_most=BOUND) as client:
            for _ in range(2):
                assert (await client.get(f"http://127.0.0.1:{port}/")).status_code == 200
    assert len(heads) == 2
    for head in heads:
        assert b"cookie" not in head.lower()
        assert b"authorization" not in head.lower()
        assert b"connection: close" in head


async def test_a_request_is_sent_unchanged(prober: Prober) -> None:
    async with recording_server(answer()) as (port, heads):
        url = f"http://127.0.0.1:{port}/a/../b%2F?q=[1]&r='%zz"
        await get(prober.reach, url, headers={"x-text": "grün"}, body=b"said")
    (head,) = heads
    assert head.startswith(b"POST /a/../b%2F?q=[1]&r='%zz HTTP/1.1\r\n")
    assert "x-text: grün".encode() in head
    assert head.endswith(b"\r\n\r\nsaid"), "one segment"
    assert f"host: 127.0.0.1:{port}".encode() in head.lower()
    assert b"user-agent: leadline" in head.lower()


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_cancelled_request_leaves_nothing_open(
    prober: Prober, framing: Callable[[bytes], bytes]
) -> None:
    async with serving(answering(framing(b"x" * 5 * BOUND))) as port:
        url = f"http://127.0.0.1:{port}/"
        await leaves_nothing(partial(get, prober.reach, url, body=b"said"))


async def test_a_cancelled_tls_request_leaves_nothing_open(
    prober: Prober, authority: trustme.CA
) -> None:
    async with serving_tls(authority.issue_cert("127.0.0.1"), answer(b"safe")) as port:
        await leaves_nothing(partial(get, prober.reach, f"https://127.0.0.1:{port}/", body=b"said"))


@pytest.mark.parametrize(
    "headers",
    [{"x-a": "a\nb"}, {"a b": "c"}, {"content-length": "7"}],
    ids=["value", "name", "length"],
)
async def test_an_invalid_header_gets_a_failure_class(
    prober: Prober, headers: dict[str, str]
) -> None:
    async with recording_server(answer()) as (port, _):
        with pytest.raises(TargetFailure) as caught:
            await send_request(
                prober.reach,
                "POST",
                read_url(f"http://127.0.0.1:{port}/"),
                headers=headers,
                body=b"abc",
                bytes_most=BOUND,
                seconds=HANGS_SECONDS,
            )
    assert caught.value.failure is FailureClass.PROTOCOL_ERROR
