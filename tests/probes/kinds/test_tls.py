"""TLS checks: valid, expiring, expired and untrusted certificates, directly and with STARTTLS."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, ProbePhase, RunOutcome, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Prober, serving

HOST = "127.0.0.1"
Dialogue = Callable[[trio.SocketStream], Awaitable[None]]


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


def lasting(authority: trustme.CA, **time: float) -> trustme.LeafCert:
    """Returns a certificate that expires this much later than now."""
    ends = datetime.now(UTC) + timedelta(**time)
    return authority.issue_cert(HOST, not_before=ends - timedelta(days=90), not_after=ends)


async def nothing_first(stream: trio.SocketStream) -> None:
    """TLS from the first byte."""


async def read_expected(stream: trio.SocketStream, expected: bytes) -> None:
    """Reads exactly the expected bytes."""
    got = b""
    while len(got) < len(expected):
        more = await stream.receive_some(len(expected) - len(got))
        if not more:
            raise trio.BrokenResourceError
        got += more
    assert got == expected


async def smtp(stream: trio.SocketStream) -> None:
    await stream.send_all(b"220-mail.example\r\n220 ESMTP\r\n")
    await read_expected(stream, b"EHLO [127.0.0.1]\r\n")
    await stream.send_all(b"250-mail.example\r\n250-SIZE 1000\r\n250 StartTLS\r\n")
    await read_expected(stream, b"STARTTLS\r\n")
    await stream.send_all(b"220 go ahead\r\n")


async def imap(stream: trio.SocketStream) -> None:
    await stream.send_all(b"* OK [CAPABILITY IMAP4rev2 STARTTLS] ready\r\n")
    await read_expected(stream, b"a1 STARTTLS\r\n")
    await stream.send_all(b"* CAPABILITY IMAP4rev2\r\na1 OK begin\r\n")


async def postgres(stream: trio.SocketStream) -> None:
    await read_expected(stream, bytes([0, 0, 0, 8, 4, 210, 22, 47]))
    await stream.send_all(b"S")


STARTTLS = {"smtp": smtp, "imap": imap, "postgres": postgres}


@asynccontextmanager
async def secured(
    certificate: trustme.LeafCert, dialogue: Dialogue = nothing_first
) -> AsyncIterator[str]:
    """The target of a server that performs the TLS handshake after its dialogue."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        await dialogue(stream)
        secure = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        await secure.do_handshake()
        await secure.receive_some(1)

    async with serving(handle) as port:
        yield f"{HOST}:{port}"


# Certificates.


async def test_a_valid_certificate_is_up_with_its_expiry(
    prober: Prober, authority: trustme.CA
) -> None:
    async with secured(lasting(authority, days=30, minutes=5)) as target:
        plain = await prober.check("tls", target)
        read = await prober.check("tls", target, "[CERT_EXPIRY] > 30d", "[CERT_EXPIRY] < 31d")
        short = await prober.check("tls", target, "[CERT_EXPIRY] > 31d")
    assert plain.outcome is RunOutcome.UP
    assert plain.phases.tls_us is not None
    assert read.outcome is RunOutcome.UP
    assert short.msg == down(FailureClass.CONDITION_FAILED)


@pytest.mark.parametrize(
    ("time_left", "config", "failure"),
    [
        ({"days": 14, "minutes": 5}, {}, None),
        ({"days": 14, "minutes": -5}, {}, FailureClass.TLS_EXPIRING),
        ({"days": 2, "minutes": 5}, {"warn_days": 2}, None),
        ({"days": 20}, {"warn_days": 21}, FailureClass.TLS_EXPIRING),
        ({"minutes": 5}, {"warn_days": 0}, None),
        ({"minutes": -5}, {"warn_days": 0}, FailureClass.TLS_ERROR),
    ],
)
async def test_a_certificate_within_warn_days_is_down(
    prober: Prober,
    authority: trustme.CA,
    time_left: dict[str, float],
    config: dict[str, object],
    failure: FailureClass | None,
) -> None:
    async with secured(lasting(authority, **time_left)) as target:
        result = await prober.check("tls", target, **config)
    assert result.msg == (down(failure) if failure else "")


async def test_conditions_replace_warn_days_but_not_validity(
    prober: Prober, authority: trustme.CA
) -> None:
    async with secured(lasting(authority, days=3)) as target:
        soon = await prober.check("tls", target, "[CERT_EXPIRY] > 48h")
    async with secured(lasting(authority, days=-1)) as target:
        ended = await prober.check("tls", target, "[CONNECTED] == true")
    assert soon.outcome is RunOutcome.UP
    assert ended.msg == down(FailureClass.TLS_ERROR)


async def test_a_certificate_of_another_host_or_authority_is_a_tls_error(
    prober: Prober, authority: trustme.CA
) -> None:
    elsewhere = authority.issue_cert("app.example")
    foreign = trustme.CA().issue_cert(HOST)
    for certificate in (elsewhere, foreign):
        async with secured(certificate) as target:
            result = await prober.check("tls", target)
        assert result.msg == down(FailureClass.TLS_ERROR)
        assert result.phases.unfinished is ProbePhase.TLS
    async with secured(elsewhere) as target:
        named = await prober.check("tls", target, server_name="app.example")
        other = await prober.check("tls", target, server_name="other.example")
    assert named.outcome is RunOutcome.UP
    assert other.msg == down(FailureClass.TLS_ERROR)


async def test_a_peer_without_tls_is_a_tls_error(
    prober: Prober,
) -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n")
        await trio.sleep_forever()

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with serving(plain) as port:
        spoken = await prober.check("tls", f"{HOST}:{port}")
    async with serving(silent) as port:
        mute = await prober.check("tls", f"{HOST}:{port}", timeout_seconds=1)
    refused = await prober.check("tls", f"{HOST}:1")
    assert spoken.msg == down(FailureClass.TLS_ERROR)
    assert mute.msg == down(FailureClass.TIMEOUT)
    assert refused.msg == down(FailureClass.CONNECT_REFUSED)


# STARTTLS.


@pytest.mark.parametrize("protocol", STARTTLS)
async def test_certificates_with_starttls(
    prober: Prober, authority: trustme.CA, protocol: str
) -> None:
    async with secured(lasting(authority, days=30), STARTTLS[protocol]) as target:
        good = await prober.check("tls", target, starttls=protocol)
    async with secured(lasting(authority, days=5), STARTTLS[protocol]) as target:
        soon = await prober.check("tls", target, starttls=protocol)
    async with secured(trustme.CA().issue_cert(HOST), STARTTLS[protocol]) as target:
        foreign = await prober.check("tls", target, starttls=protocol)
    assert good.outcome is RunOutcome.UP, good
    assert soon.msg == down(FailureClass.TLS_EXPIRING)
    assert foreign.msg == down(FailureClass.TLS_ERROR)


NO_TLS = {
    "smtp": [(b"220 hi\r\n", 18), (b"250-mail\r\n250 SIZE\r\n", 0)],
    "imap": [(b"* OK hi\r\n", 13), (b"a1 BAD what\r\n", 0)],
    "postgres": [(b"", 8), (b"N", 0)],
}
INJECTED = {
    "smtp": [(b"220 hi\r\n", 18), (b"250-m\r\n250 STARTTLS\r\n", 10), (b"220 ok\r\n250 x\r\n", 0)],
    "imap": [(b"* OK hi\r\n", 13), (b"a1 OK go\r\n* x\r\n", 0)],
}
WORDS = {protocol: [(b"HTTP/1.1 400 Bad Request\r\n\r\n", 0)] for protocol in STARTTLS}
ENDLESS = {protocol: [(b"220-" + b"x" * 40_000, 0)] for protocol in ("smtp", "imap")}
BUSY = {"smtp": [(b"421 later\r\n", 0)], "imap": [(b"* BYE later\r\n", 0)], "postgres": [(b"E", 0)]}


@pytest.mark.parametrize(
    ("scripts", "failure"),
    [
        (NO_TLS, FailureClass.TLS_ERROR),
        (INJECTED, FailureClass.PROTOCOL_ERROR),
        (WORDS, FailureClass.PROTOCOL_ERROR),
        (ENDLESS, FailureClass.RESPONSE_TOO_LARGE),
        (BUSY, FailureClass.PROTOCOL_ERROR),
    ],
    ids=["no tls", "injected", "words", "endless", "busy"],
)
async def test_a_peer_without_starttls_gets_its_failure_class(
    prober: Prober, scripts: dict[str, list[tuple[bytes, int]]], failure: FailureClass
) -> None:
    """A script has pairs: the bytes to send, and the number of bytes to read after them."""
    for protocol, script in scripts.items():

        async def play(stream: trio.SocketStream, script: list[tuple[bytes, int]] = script) -> None:
            for said, reads in script:
                if said:
                    await stream.send_all(said)
                left = reads
                while left and (piece := await stream.receive_some(left)):
                    left -= len(piece)
            await trio.sleep_forever()

        async with serving(play) as port:
            target = f"{HOST}:{port}"
            # Only a peer that does not answer exceeds it, also on a busy machine.
            seconds = 2 if failure is FailureClass.TIMEOUT else 20
            result = await prober.check("tls", target, starttls=protocol, timeout_seconds=seconds)
        assert result.msg == down(failure), protocol


async def test_cancelled_runs_leave_nothing_open(prober: Prober, authority: trustme.CA) -> None:
    async with secured(lasting(authority, days=30)) as target:
        await leaves_nothing(lambda: prober.check("tls", target))
    async with secured(lasting(authority, days=30), smtp) as target:
        await leaves_nothing(lambda: prober.check("tls", target, starttls="smtp"))


def test_invalid_definitions_are_refused() -> None:
    def faulty_fields(**config: object) -> list[str]:
        return [f.field for f in validate("tls", "app.example:443", None, config, [])]

    assert faulty_fields(server_name="other.example", warn_days="30", starttls="imap") == []
    assert faulty_fields(server_name="a b") == ["config.server_name"]
    assert faulty_fields(warn_days=-1) == ["config.warn_days"]
    assert faulty_fields(starttls="pop3") == ["config.starttls"]
