"""gRPC checks against the server of grpcio, in plain text, with TLS and with client certificates,
and against other peers.
"""

import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import make_check, validate
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.kinds.grpc import decoded, encoded, probe
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import pems
from tests.support.peers.servers import Handler, Prober, answering, deadline_for, serving
from tests.support.processes.ports import refusing_port

HOST = "127.0.0.1"
SERVER = Path(__file__).parents[2] / "support/peers/grpc_server.py"


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


HUNG_UP = [down(FailureClass.PROTOCOL_ERROR), down(FailureClass.CONNECT_ERROR)]


@dataclass(frozen=True)
class Health:
    plain: str
    tls: str
    mutual: str
    empty: str


@contextmanager
def health_server(
    folder: Path, certificate: trustme.LeafCert, clients: trustme.CA
) -> Iterator[Health]:
    chain, key, authority = (folder / name for name in ("chain.pem", "key.pem", "clients.pem"))
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    clients.cert_pem.write_to_path(str(authority))
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(chain), str(key), str(authority)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin:
        ports = [process.stdout.readline().strip() for _ in range(4)]
        yield Health(*[f"{HOST}:{port}" for port in ports])


@pytest.fixture(scope="module")
def clients() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def health(
    tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA, clients: trustme.CA
) -> Iterator[Health]:
    certificate = authority.issue_cert(HOST)
    with health_server(tmp_path_factory.mktemp("grpc"), certificate, clients) as server:
        yield server


# The server of grpcio.


@pytest.mark.parametrize(
    ("service", "conditions", "failure", "code"),
    [
        ("", [], None, 0),
        ("", ["[RESULT] == SERVING", "[STATUS] == 0", "[RESPONSE_TIME] < 1m"], None, 0),
        ("open", [], None, 0),
        ("closed", [], FailureClass.CONDITION_FAILED, 0),
        ("closed", ["[RESULT] == NOT_SERVING"], None, 0),
        ("unknown", ["[RESULT] == UNKNOWN"], None, 0),
        ("unheard", ["[RESULT] == SERVICE_UNKNOWN"], None, 0),
        ("new", ["[RESULT] == 7"], None, 0),
        ("new", [], FailureClass.CONDITION_FAILED, 0),
        ("long", ["[RESULT] == UNKNOWN"], None, 0),
        ("longer", [], FailureClass.RESPONSE_TOO_LARGE, None),
        ("broken", [], FailureClass.PROTOCOL_ERROR, None),
        ("missing", [], FailureClass.CONDITION_FAILED, 5),
        ("missing", ["[STATUS] == 5"], None, 5),
        ("missing", ["[CONNECTED] == true"], FailureClass.CONDITION_FAILED, 5),
        ("away", [], FailureClass.CONDITION_FAILED, 14),
        ("guarded", [], FailureClass.AUTH_FAILED, 16),
        ("denied", [], FailureClass.AUTH_FAILED, 7),
        ("late", [], FailureClass.TIMEOUT, 4),
    ],
)
async def test_the_health_status_decides(
    prober: Prober,
    health: Health,
    service: str,
    conditions: list[str],
    failure: FailureClass | None,
    code: int | None,
) -> None:
    result = await prober.check("grpc", health.plain, *conditions, service=service)
    assert (result.msg, result.code) == (down(failure) if failure else "", code), result.bug


async def test_a_missing_health_service_and_a_silent_one_are_down(
    prober: Prober, health: Health
) -> None:
    bare = await prober.check("grpc", health.empty)
    silent = await prober.check("grpc", health.plain, service="silent", timeout_seconds=1)
    assert (bare.msg, bare.code) == (down(FailureClass.PROTOCOL_ERROR), 12)
    assert silent.msg == down(FailureClass.TIMEOUT)


async def test_the_tls_certificate_is_verified(
    prober: Prober,
    health: Health,
    authority: trustme.CA,
    clients: trustme.CA,
    tmp_path: Path,
) -> None:
    good = await prober.check("grpc", health.tls, "[CERT_EXPIRY] > 1d", tls=True)
    without = await prober.check("grpc", health.tls, timeout_seconds=2)
    reverse = await prober.check("grpc", health.plain, tls=True)
    named = await prober.check("grpc", health.tls, tls=True, authority="other.example")
    assert good.outcome is RunOutcome.UP, good
    assert without.outcome is RunOutcome.DOWN
    assert reverse.msg == named.msg == down(FailureClass.TLS_ERROR)
    ended = datetime.now(UTC) - timedelta(minutes=5)
    bad = {
        "foreign": trustme.CA().issue_cert(HOST),
        "misnamed": authority.issue_cert("other.example"),
        "ended": authority.issue_cert(HOST, not_before=ended - timedelta(days=9), not_after=ended),
    }
    for name, certificate in bad.items():
        (tmp_path / name).mkdir()
        with health_server(tmp_path / name, certificate, clients) as server:
            strict = await prober.check("grpc", server.tls, tls=True)
            lax = await prober.check("grpc", server.tls, tls=True, tls_skip_verify=True)
            other = await prober.check(
                "grpc", server.tls, tls=True, authority="other.example:50051"
            )
        assert strict.msg == down(FailureClass.TLS_ERROR), name
        assert lax.outcome is RunOutcome.UP, name
        assert (other.outcome is RunOutcome.UP) == (name == "misnamed")


async def test_client_certificates_are_sent(
    prober: Prober, health: Health, clients: trustme.CA
) -> None:
    chain, key = pems(clients.issue_cert("leadline.example"))
    foreign_chain, foreign_key = pems(trustme.CA().issue_cert("leadline.example"))
    mine = {"tls": True, "client_cert": chain, "client_key_ref": "key"}
    for config, secret, failures in (
        (mine, key, [""]),
        # The server closes the connection without an alert: by FIN, or by RST because the request
        # is unread.
        ({"tls": True}, None, HUNG_UP),
        ({**mine, "client_cert": foreign_chain}, foreign_key, HUNG_UP),
    ):
        secrets = {"client_key": secret} if secret else {}
        result = await prober.check("grpc", health.mutual, secrets=secrets, **config)
        assert result.msg in failures, result.bug
    locked = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")
    )
    for value, reason in (
        ("", UnknownReason.MISSING_REFERENCE),
        ("no key", UnknownReason.BAD_SECRET),
        (foreign_key, UnknownReason.BAD_SECRET),
        (locked.decode(), UnknownReason.BAD_SECRET),
    ):
        secrets = {"client_key": value} if value else {}
        result = await prober.check("grpc", health.mutual, secrets=secrets, **mine)
        assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)


async def test_a_tls_alert_for_the_client_certificate_is_a_tls_error(
    prober: Prober, authority: trustme.CA, clients: trustme.CA
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    clients.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED

    def ask(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        # Trio's server does not send its alert. The standard library sends it and then closes with
        # the request unread, which would be a reset; the second handle keeps the connection open.
        with accepted.dup() as kept:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(accepted, server_side=True)
            while kept.recv(1_000):
                pass

    with socket.create_server((HOST, 0)) as listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, ask, listener)
            target = f"{HOST}:{listener.getsockname()[1]}"
            result = await prober.check("grpc", target, tls=True)
    assert result.msg == down(FailureClass.TLS_ERROR)


async def test_cancelled_runs_leave_nothing_open(
    prober: Prober, health: Health, clients: trustme.CA
) -> None:
    chain, key = pems(clients.issue_cert("leadline.example"))
    mine = {"tls": True, "client_cert": chain, "client_key_ref": "key"}
    await leaves_nothing(lambda: prober.check("grpc", health.plain))
    await leaves_nothing(
        lambda: prober.check("grpc", health.mutual, secrets={"client_key": key}, **mine)
    )


# Other peers.


def scripted(headers: list[tuple[str, str]], *more: object) -> Handler:
    """An HTTP/2 peer that sends these replies: bytes are data, lists are trailers."""

    async def handle(stream: trio.SocketStream) -> None:
        http = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, validate_outbound_headers=False)
        )
        http.initiate_connection()
        while data := await stream.receive_some():
            for event in http.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    http.send_headers(1, headers, end_stream=not more)
                    for number, part in enumerate(more, 1):
                        last = number == len(more)
                        if isinstance(part, bytes):
                            http.send_data(1, part, end_stream=last)
                        elif isinstance(part, list):
                            http.send_headers(1, part, end_stream=last)
                        elif part == "reset":
                            http.reset_stream(1, 7)
                        else:
                            http.close_connection(11)
            await stream.send_all(http.data_to_send())

    return handle


OK = [(":status", "200"), ("content-type", "application/grpc+proto")]
DONE = [("grpc-status", "0")]
SERVING = b"\x00\x00\x00\x00\x02\x08\x01"


@pytest.mark.parametrize(
    ("handler", "failure", "code"),
    [
        (scripted(OK, SERVING, DONE), None, 0),
        (scripted(OK, SERVING[:3], SERVING[3:], DONE), None, 0),
        (scripted([*OK, ("grpc-status", "16")]), FailureClass.AUTH_FAILED, 16),
        (scripted([(":status", "502"), ("content-type", "text/html")], b"<p>"),
         FailureClass.HTTP_STATUS, 502),
        (scripted([(":status", "200"), ("content-type", "text/html")], b"<p>"),
         FailureClass.PROTOCOL_ERROR, None),
        (scripted([(":status", "9" * 12)]), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, SERVING), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, SERVING, [("grpc-status", "-1")]), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, SERVING, [("grpc-status", "9" * 900)]), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, b"\x01" + SERVING[1:], DONE), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, SERVING + b"x", DONE), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, SERVING + SERVING, DONE), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, DONE), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, "reset"), FailureClass.PROTOCOL_ERROR, None),
        (scripted(OK, "goaway"), FailureClass.PROTOCOL_ERROR, None),
        (scripted([*OK, ("x", "y" * 9_000), ("z", "y" * 9_000)], b"x" * 16_000, b"x" * 16_000,
                  b"x" * 16_000, b"x" * 15_000, DONE), FailureClass.RESPONSE_TOO_LARGE, None),
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), FailureClass.PROTOCOL_ERROR, None),
        (answering(b""), FailureClass.PROTOCOL_ERROR, None),
        (answering(b"\x00" * 4_000), FailureClass.PROTOCOL_ERROR, None),
    ],
)  # fmt: skip
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, handler: Handler, failure: FailureClass | None, code: int | None
) -> None:
    async with serving(handler) as port:
        result = await prober.check("grpc", f"{HOST}:{port}", timeout_seconds=deadline_for(failure))
    assert (result.msg, result.code) == (down(failure) if failure else "", code), result.bug


async def test_the_request_has_the_configured_headers_and_message(prober: Prober) -> None:
    heard: dict[str, str] = {}

    async def note(stream: trio.SocketStream) -> None:
        http = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        )
        http.initiate_connection()
        while data := await stream.receive_some():
            for event in http.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    heard.update((str(n), str(v)) for n, v in event.headers or ())
                elif isinstance(event, h2.events.DataReceived):
                    heard["data"] = (event.data or b"").decode()
                elif isinstance(event, h2.events.StreamEnded):
                    http.send_headers(1, OK)
                    http.send_data(1, SERVING)
                    http.send_headers(1, DONE, end_stream=True)
            await stream.send_all(http.data_to_send())

    async with serving(note) as port:
        target = f"{HOST}:{port}"
        await prober.check("grpc", target, service="shop", timeout_seconds=3_600)
        first = dict(heard)
        await prober.check("grpc", target, authority="shop.example")
    timeout = first.pop("grpc-timeout")
    assert timeout.endswith("m")
    # The rest of an hour: no machine is so busy that ten minutes have passed.
    assert 3_000_000 < int(timeout[:-1]) <= 3_600_000
    assert first == {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": target,
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": "leadline",
        "data": "\x00\x00\x00\x00\x06\x0a\x04shop",
    }
    assert heard[":authority"] == "shop.example"


async def test_silence_slow_bytes_resets_and_a_closed_port_get_their_class(prober: Prober) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        await stream.send_all(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        while True:
            await stream.send_all(b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678")
            await trio.sleep(0.05)

    async def reset(stream: trio.SocketStream) -> None:
        await stream.receive_some(10)
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
        stream.socket.close()

    handlers: list[Callable[[trio.SocketStream], Awaitable[None]]] = [silent, dripping]
    for handler in handlers:
        async with serving(handler) as port:
            result = await prober.check("grpc", f"{HOST}:{port}", timeout_seconds=1)
        assert result.msg == down(FailureClass.TIMEOUT)
    async with serving(reset) as port:
        result = await prober.check("grpc", f"{HOST}:{port}")
    assert result.msg == down(FailureClass.CONNECT_ERROR)
    with refusing_port(HOST) as port:
        refused = await prober.check("grpc", f"{HOST}:{port}")
    assert refused.msg == down(FailureClass.CONNECT_REFUSED)


# Messages and definitions.


@given(st.text(max_size=1_000))
def test_a_request_message_contains_its_service(service: str) -> None:
    message = encoded(service)
    assert message.endswith(service.encode())
    assert decoded(message) == 0


@given(st.binary(max_size=60))
def test_any_response_message_has_a_status_or_is_refused(data: bytes) -> None:
    try:
        status = decoded(data)
    except TargetFailure as failed:
        assert failed.failure is FailureClass.PROTOCOL_ERROR  # noqa: PT017
    else:
        assert 0 <= status < 1 << 70


@given(st.integers(0, 1 << 31), st.binary(max_size=40))
def test_unknown_fields_are_skipped(status: int, other: bytes) -> None:
    number, packed = status, b""
    while number > 0x7F:
        packed += bytes([number & 0x7F | 0x80])
        number >>= 7
    packed += bytes([number])
    assert decoded(b"\x08\x09\x12" + bytes([len(other)]) + other + b"\x08" + packed) == status


def test_invalid_definitions_are_refused(authority: trustme.CA) -> None:
    def faulty_fields(**config: object) -> list[str]:
        return [f.field for f in validate("grpc", "shop.example:50051", None, config, [])]

    chain, _ = pems(authority.issue_cert("a.example"))
    assert faulty_fields(service="shop", tls="true", authority="shop.example:443") == []
    assert faulty_fields(tls=True, client_cert=chain, client_key_ref="key") == []
    assert faulty_fields(authority="a b") == ["config.authority"]
    assert faulty_fields(tls=True, client_cert="x", client_key_ref="key") == ["config.client_cert"]
    assert faulty_fields(tls=True, client_cert=chain) == ["config.client_key_ref"]
    assert faulty_fields(tls=True, client_key_ref="key") == ["config.client_cert"]
    assert faulty_fields(client_cert=chain, client_key_ref="key") == ["config.tls"]


async def test_a_run_cancelled_after_connecting_has_no_result(
    prober: Prober, health: Health
) -> None:
    scope = trio.CancelScope()

    class Ending(Stopwatch):
        def done(self) -> None:
            super().done()
            scope.cancel()

    check = make_check("grpc", health.plain, None, {}, [])
    with scope:
        await probe(check, prober.reach, Ending())
    assert scope.cancelled_caught
