"""HTTP checks against real servers: up, the failure classes of down, and deadlines."""

import gzip
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import trio
import trustme

from leadline.probes.check.result import FailureClass, ProbePhase, Result, RunOutcome
from leadline.probes.net.egress_policy import canary_policy
from tests.support.peers.real_servers import listens, running
from tests.support.peers.servers import (
    Handler,
    Prober,
    answer,
    answering,
    deadline_for,
    gzip_bomb,
    read_head,
    serving,
)
from tests.support.processes.ports import free_port, full_port, refusing_port


def down(result: Result, failure: FailureClass, host: str = "127.0.0.1") -> bool:
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, f"{failure} {host}"), result
    return True


@asynccontextmanager
async def serving_tls(handler: Handler, certificate: trustme.LeafCert) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)

    async def encrypted(stream: trio.SocketStream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with suppress(ssl.SSLError):
            await handler(wrapped)  # type: ignore[arg-type]

    async with serving(encrypted) as port:
        yield port


async def test_a_2xx_answer_is_up_with_its_code_and_phases(prober: Prober) -> None:
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/x?y=1")
    assert (result.outcome, result.code, result.msg) == (RunOutcome.UP, 200, "")
    phases = result.phases
    assert phases.unfinished is None
    assert phases.tls_us is None
    assert phases.connect_us is not None
    assert phases.first_byte_us is not None
    assert phases.total_us >= phases.connect_us + phases.first_byte_us


async def test_another_status_is_down_with_its_code(prober: Prober) -> None:
    async with serving(answering(answer(status="503 Nope"))) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/secret?token=hunter2")
    assert down(result, FailureClass.HTTP_STATUS)
    assert result.code == 503


async def test_conditions_replace_the_status_check(prober: Prober) -> None:
    body = b'{"status": "UP", "items": [{"id": 7}]}'
    good = (
        "[STATUS] == 503",
        "[BODY].status == UP",
        "[BODY].items[0].id == 7",
        "[IP] == 127.0.0.1",
    )
    async with serving(answering(answer(body, "503 Nope", "x-build: 42"))) as port:
        url = f"http://127.0.0.1:{port}/"
        up = await prober.check(
            "http", url, *good, "[HEADER].X-Build == 42", "[RESPONSE_TIME] < 1m"
        )
        bad = await prober.check("http", url, *good, "[BODY].status == DOWN")
    assert up.outcome is RunOutcome.UP
    assert down(bad, FailureClass.CONDITION_FAILED)
    assert bad.code == 503


async def test_the_request_has_the_configured_parts(prober: Prober) -> None:
    heads: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(answer())

    async with serving(handle) as port:
        result = await prober.check(
            "http",
            f"http://127.0.0.1:{port}/a b".replace(" ", "%20"),
            method="POST",
            headers={"X-One": "1", "Host": "virtual.example"},
            body="hello",
            auth_mode="basic",
            username="joe",
            password="pass:word",
        )
    assert result.outcome is RunOutcome.UP
    head = heads[0].decode()
    assert head.startswith("POST /a%20b HTTP/1.1\r\n")
    assert head.endswith("\r\n\r\nhello")
    for line in (
        "X-One: 1",
        "Host: virtual.example",
        "content-length: 5",
        "authorization: Basic am9lOnBhc3M6d29yZA==",
    ):
        assert f"\r\n{line}\r\n" in head
    assert head.lower().count("\r\nhost:") == 1


async def test_a_missing_bearer_token_is_a_local_failure(
    prober: Prober,
) -> None:
    heads: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(answer())

    async with serving(handle) as port:
        url = f"http://127.0.0.1:{port}/"
        settings = {"auth_mode": "bearer", "token_ref": "api"}
        up = await prober.check("http", url, secrets={"token": "t0ken"}, **settings)
        missing = await prober.check("http", url, **settings)
        broken = await prober.check("http", url, secrets={"token": "a\nb: c"}, **settings)
    assert up.outcome is RunOutcome.UP
    assert b"authorization: Bearer t0ken\r\n" in heads[0]
    assert (missing.outcome, missing.unknown_reason) == (RunOutcome.UNKNOWN, "missing_reference")
    assert (broken.outcome, broken.unknown_reason) == (RunOutcome.UNKNOWN, "bad_secret")
    assert len(heads) == 1


# TLS.


async def test_a_trusted_certificate_is_up_with_its_expiry(
    prober: Prober, authority: trustme.CA
) -> None:
    ends = datetime.now(UTC) + timedelta(days=30)
    certificate = authority.issue_cert("127.0.0.1", not_after=ends)
    async with serving_tls(answering(answer()), certificate) as port:
        url = f"https://127.0.0.1:{port}/"
        result = await prober.check("http", url, "[CERT_EXPIRY] > 29d", "[CERT_EXPIRY] < 721h")
        late = await prober.check("http", url, "[CERT_EXPIRY] > 31d")
    assert result.outcome is RunOutcome.UP, result
    assert result.phases.tls_us is not None
    assert down(late, FailureClass.CONDITION_FAILED)


async def test_a_bad_certificate_is_a_tls_error_if_verified(
    prober: Prober, authority: trustme.CA
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    before = past - timedelta(days=1)
    certificates = {
        "expired": authority.issue_cert("127.0.0.1", not_before=before, not_after=past),
        "wrong host": authority.issue_cert("elsewhere.example"),
        "unknown authority": trustme.CA().issue_cert("127.0.0.1"),
    }
    for what, certificate in certificates.items():
        async with serving_tls(answering(answer()), certificate) as port:
            url = f"https://127.0.0.1:{port}/"
            strict = await prober.check("http", url)
            lax = await prober.check("http", url, tls_skip_verify=True)
            expiry = await prober.check("http", url, "[CERT_EXPIRY] < 1h", tls_skip_verify=True)
        assert down(strict, FailureClass.TLS_ERROR), what
        assert strict.phases.unfinished is ProbePhase.TLS
        assert lax.outcome is RunOutcome.UP, what
        assert (expiry.outcome is RunOutcome.UP) is (what == "expired")


async def test_plain_text_instead_of_tls_is_a_tls_error(prober: Prober) -> None:
    async def at_once(stream: trio.SocketStream) -> None:
        await stream.send_all(answer(b"", "400 Bad Request"))
        await trio.sleep_forever()

    async with serving(at_once) as port:
        result = await prober.check("http", f"https://127.0.0.1:{port}/")
    assert down(result, FailureClass.TLS_ERROR)


# Misbehaving servers.


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def dripping_head(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await stream.send_all(b"x: y\r\n")
        await trio.sleep(0.05)


async def dripping_body(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b".")
        await trio.sleep(0.05)


async def endless_body(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b"." * 65_536)


async def endless_head(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await stream.send_all(b"x: " + b"y" * 4_096 + b"\r\n")


async def endless_continue(stream: trio.SocketStream) -> None:
    await read_head(stream)
    while True:
        await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")


async def resetting(stream: trio.SocketStream) -> None:
    await read_head(stream)
    stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    stream.socket.close()


async def half_body(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")


def encoded(body: bytes, encoding: str) -> Handler:
    return answering(answer(body, "200 OK", f"content-encoding: {encoding}"))


MISBEHAVING: dict[str, tuple[Handler, FailureClass]] = {
    "silent": (silent, FailureClass.TIMEOUT),
    "dripping head": (dripping_head, FailureClass.TIMEOUT),
    "dripping body": (dripping_body, FailureClass.TIMEOUT),
    "endless body": (endless_body, FailureClass.RESPONSE_TOO_LARGE),
    "endless head": (endless_head, FailureClass.RESPONSE_TOO_LARGE),
    "endless continue": (endless_continue, FailureClass.PROTOCOL_ERROR),
    "bomb": (encoded(gzip_bomb(), "gzip"), FailureClass.RESPONSE_TOO_LARGE),
    "broken gzip": (encoded(b"nonsense", "gzip"), FailureClass.PROTOCOL_ERROR),
    "short gzip": (encoded(gzip.compress(b"x" * 999)[:-9], "gzip"), FailureClass.PROTOCOL_ERROR),
    "unknown coding": (encoded(b"nonsense", "br"), FailureClass.PROTOCOL_ERROR),
    "garbage": (answering(b"\x16\x03\x01 what?\r\n\r\n"), FailureClass.PROTOCOL_ERROR),
    "another protocol": (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), FailureClass.PROTOCOL_ERROR),
    "nothing": (answering(b""), FailureClass.PROTOCOL_ERROR),
    "half a head": (answering(b"HTTP/1.1 200 OK\r\nx: "), FailureClass.PROTOCOL_ERROR),
    "half a body": (half_body, FailureClass.PROTOCOL_ERROR),
    "reset": (resetting, FailureClass.CONNECT_ERROR),
    "switching": (answering(b"HTTP/1.1 101 Hm\r\nupgrade: x\r\n\r\n"), FailureClass.PROTOCOL_ERROR),
}


@pytest.mark.parametrize("what", MISBEHAVING)
async def test_a_misbehaving_server_gets_its_failure_class_in_time(
    prober: Prober, what: str
) -> None:
    handler, failure = MISBEHAVING[what]
    async with serving(handler) as port:
        result = await prober.check(
            "http",
            f"http://127.0.0.1:{port}/",
            "[BODY] exists",
            timeout_seconds=deadline_for(failure),
        )
    assert down(result, failure)


async def test_a_server_that_never_accepts_is_a_connect_timeout(prober: Prober) -> None:
    """A listening socket whose backlog is full does not answer a SYN."""
    with full_port() as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/", timeout_seconds=1)
    assert down(result, FailureClass.CONNECT_TIMEOUT)


async def test_a_closed_port_is_refused_and_can_be_the_condition(prober: Prober) -> None:
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}/"
        found = await prober.check("http", url)
        other = await prober.check("http", url, "[CONNECTED] == true")
        wanted = await prober.check("http", url, "[CONNECTED] == false")
    assert down(found, FailureClass.CONNECT_REFUSED)
    assert down(other, FailureClass.CONNECT_REFUSED)
    assert wanted.outcome is RunOutcome.UP


async def test_a_large_body_without_a_condition_is_up(prober: Prober) -> None:
    async with serving(endless_body) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/", "[STATUS] == 200")
    assert result.outcome is RunOutcome.UP


async def test_bodies_are_decompressed_before_conditions(prober: Prober) -> None:
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(b"pong\n"),
        "deflate": zlib.compress(b"pong\n"),
        "Deflate ": raw.compress(b"pong\n") + raw.flush(),
        "identity": b"pong\n",
    }
    for encoding, body in packed.items():
        async with serving(encoded(body, encoding)) as port:
            result = await prober.check("http", f"http://127.0.0.1:{port}/", "[BODY] == pong")
        assert result.outcome is RunOutcome.UP, encoding


async def test_an_early_answer_to_a_large_request_is_read(prober: Prober) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some(10)
        await stream.send_all(answer(b"", "413 Too Large"))
        with trio.move_on_after(1):
            while await stream.receive_some(65_536):
                pass

    async with serving(handle) as port:
        result = await prober.check(
            "http", f"http://127.0.0.1:{port}/", method="POST", body="x" * 65_536
        )
    assert (result.outcome, result.code) == (RunOutcome.DOWN, 413)


# Redirects.


def redirecting(location: str, status: str = "302 Found") -> Handler:
    return answering(answer(b"", status, f"location: {location}"))


async def test_following_redirects_can_be_disabled(prober: Prober) -> None:
    async with serving(answering(answer())) as there:
        async with serving(redirecting(f"http://127.0.0.1:{there}/")) as here:
            url = f"http://127.0.0.1:{here}/"
            followed = await prober.check("http", url)
            left = await prober.check("http", url, follow_redirects="false")
            wanted = await prober.check("http", url, "[STATUS] == 302", follow_redirects=False)
    assert followed.outcome is RunOutcome.UP
    assert down(left, FailureClass.HTTP_STATUS)
    assert left.code == 302
    assert wanted.outcome is RunOutcome.UP


@pytest.mark.parametrize("hops", [5, 6])
async def test_at_most_five_redirects_are_followed(prober: Prober, hops: int) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        at = int((await read_head(stream)).split()[1][1:])
        if at == hops:
            await stream.send_all(answer())
        else:
            await stream.send_all(answer(b"", "301 Moved", f"location: {at + 1}"))

    async with serving(handle) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/0")
    if hops == 5:
        assert result.outcome is RunOutcome.UP
    else:
        assert down(result, FailureClass.HTTP_STATUS)
        assert result.code == 301


@pytest.mark.parametrize("to_other_origin", [False, True])
async def test_redirects_to_another_origin_drop_credentials(
    prober: Prober, to_other_origin: bool
) -> None:
    heads: list[bytes] = []

    async def target(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(answer())

    async with serving(target) as other:

        async def here(stream: trio.SocketStream) -> None:
            head = await read_head(stream)
            if b" /start " not in head:
                heads.append(head)
                await stream.send_all(answer())
                return
            to = f"http://127.0.0.1:{other}/end" if to_other_origin else "/end"
            await stream.send_all(answer(b"", "307 Again", f"location: {to}"))

        async with serving(here) as port:
            result = await prober.check(
                "http",
                f"http://127.0.0.1:{port}/start",
                method="POST",
                headers={"X-Api-Key": "k3y", "X-Plain": "yes", "Cookie": "a=b"},
                body='{"password": "hunter2"}',
                auth_mode="basic",
                username="joe",
                password="hunter2",
            )
    assert result.outcome is RunOutcome.UP
    head = heads[0].lower()
    assert b"x-plain: yes" in head
    for secret in (b"k3y", b"a=b", b"authorization", b"hunter2"):
        assert (secret in head) is not to_other_origin, secret


async def test_a_redirect_to_a_metadata_address_is_blocked(prober: Prober) -> None:
    for location in (
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
        "//100.100.100.200/",
    ):
        async with serving(redirecting(location)) as port:
            result = await prober.check("http", f"http://127.0.0.1:{port}/")
        assert down(result, FailureClass.TARGET_BLOCKED), location


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/", "http://user:pass@127.0.0.1/", "http://[", "http://127.1/"]
)
async def test_an_invalid_redirect_is_a_protocol_error(prober: Prober, location: str) -> None:
    async with serving(redirecting(location)) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/")
    assert down(result, FailureClass.PROTOCOL_ERROR)


async def test_a_canary_reaches_no_private_address(prober: Prober) -> None:
    spoken = {
        "127.0.0.1": "127.0.0.1",
        "[::1]": "::1",
        "[::ffff:127.0.0.1]": "::ffff:7f00:1",
        "localhost": "localhost",
        "0.0.0.0": "0.0.0.0",
    }
    canary = prober.with_(policy=canary_policy())
    async with serving(answering(answer())) as port:
        for host, said in spoken.items():
            result = await canary.check("http", f"http://{host}:{port}/")
            assert down(result, FailureClass.TARGET_BLOCKED, said)


async def test_proxy_variables_have_no_effect(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heads: list[bytes] = []
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")

    async def handle(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(answer())

    async with serving(handle) as port:
        result = await prober.check("http", f"http://127.0.0.1:{port}/")
    assert result.outcome is RunOutcome.UP
    assert b"authorization" not in heads[0].lower()


NGINX = """
daemon off; master_process off; pid {dir}/pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir}; gzip on; gzip_min_length 1; gzip_types *;
  server {{
    listen 127.0.0.1:{port};
    location = /health {{ default_type application/json; return 200 '{{"status": "UP"}}'; }}
    location = /old {{ return 301 /health; }}
  }}
}}
"""


@pytest.mark.needs("nginx")
async def test_nginx_is_up_and_down_after_it_stops(prober: Prober, tmp_path: Path) -> None:
    port = free_port()
    config, url = tmp_path / "nginx.conf", f"http://127.0.0.1:{port}"
    config.write_text(NGINX.format(dir=tmp_path, port=port))
    command = ["nginx", "-c", str(config), "-p", str(tmp_path)]
    with running(command, tmp_path / "log", partial(listens, port)):
        healthy = await prober.check("http", f"{url}/health")
        moved = await prober.check(
            "http", f"{url}/old", "[BODY].status == UP", "[HEADER].content-type contains json"
        )
        missing = await prober.check("http", f"{url}/nothing")
    assert healthy.outcome is RunOutcome.UP, healthy
    assert (moved.outcome, moved.code) == (RunOutcome.UP, 200)
    assert (missing.outcome, missing.code) == (RunOutcome.DOWN, 404)
    assert down(await prober.check("http", f"{url}/health"), FailureClass.CONNECT_REFUSED)
