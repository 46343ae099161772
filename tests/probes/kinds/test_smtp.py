"""SMTP probe against aiosmtpd, and against servers that follow the protocol up to a point."""

import ssl
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.monitor_spec import Spec
from leadline.probes.check.registry import spec_of
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from tests.support.peers.fake_services import CANARY
from tests.support.peers.mail_server import Box, serving_mail
from tests.support.peers.servers import Prober, serving

HOST = "127.0.0.1"
LOGIN = {"username": "watcher", "password": CANARY}


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


@pytest.fixture
def context(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(made)
    return made


@pytest.fixture
def box() -> Iterator[Box]:
    made = Box()
    yield made
    assert made.letters == []


async def test_a_server_that_accepts_ehlo_is_up(prober: Prober, box: Box) -> None:
    with serving_mail(box, ident="mail.example ESMTP") as server:
        target = f"{HOST}:{server.port}"
        plain = await prober.check("smtp", target, '[RESULT] contains "mail.example"')
        other = await prober.check("smtp", target, '[RESULT] contains "other.example"')
        # The server offers no TLS.
        encrypted = await prober.check("smtp", target, encryption="starttls")
    assert plain.outcome is RunOutcome.UP, plain
    assert other.msg.startswith(FailureClass.CONDITION_FAILED)
    assert encrypted.msg == down(FailureClass.TLS_ERROR)


@pytest.mark.parametrize("encryption", ["starttls", "tls"])
async def test_a_login_is_encrypted_and_a_wrong_password_is_refused(
    prober: Prober, box: Box, context: ssl.SSLContext, encryption: str
) -> None:
    options: dict[str, Any] = {"authenticator": box.login, "auth_required": True}
    if encryption == "tls":
        options |= {"ssl_context": context, "auth_require_tls": False}
    else:
        options |= {"tls_context": context, "require_starttls": True}
    with serving_mail(box, **options) as server:
        target = f"{HOST}:{server.port}"
        good = await prober.check(
            "smtp", target, "[CERT_EXPIRY] > 1h", encryption=encryption, **LOGIN
        )
        wrong = {**LOGIN, "password": "wrong"}
        bad = await prober.check("smtp", target, encryption=encryption, **wrong)
    assert good.outcome is RunOutcome.UP, good
    assert bad.msg == down(FailureClass.AUTH_FAILED)
    assert box.logins == [CANARY.encode(), b"wrong"]


async def test_an_untrusted_certificate_is_refused_before_the_login(
    prober: Prober, box: Box
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert(HOST).configure_cert(context)
    options = {"authenticator": box.login, "tls_context": context, "require_starttls": True}
    with serving_mail(box, **options) as server:
        target = f"{HOST}:{server.port}"
        refused = await prober.check("smtp", target, encryption="starttls", **LOGIN)
        assert box.logins == []
        skipped = await prober.check(
            "smtp", target, encryption="starttls", tls_skip_verify=True, **LOGIN
        )
    assert refused.msg == down(FailureClass.TLS_ERROR)
    assert skipped.outcome is RunOutcome.UP, skipped


async def test_a_password_that_did_not_decrypt_is_a_local_failure(prober: Prober) -> None:
    result = await prober.check(
        "smtp", f"{HOST}:1", encryption="tls", username="watcher", password=""
    )
    assert result.unknown_reason is UnknownReason.MISSING_REFERENCE


@pytest.mark.parametrize(
    ("said", "failure", "code"),
    [
        ([b"554 go away\r\n"], FailureClass.PROTOCOL_ERROR, 554),
        ([b"421-busy\r\n421 later\r\n"], FailureClass.PROTOCOL_ERROR, 421),
        ([b"220 hello\r\n", b"502 no\r\n"], FailureClass.PROTOCOL_ERROR, 502),
        ([b"220\r\n", b"250\r\n"], None, None),
        ([b"* OK IMAP ready\r\n"], FailureClass.PROTOCOL_ERROR, None),
        ([b"22\r\n"], FailureClass.PROTOCOL_ERROR, None),
        ([b"220_hello\r\n"], FailureClass.PROTOCOL_ERROR, None),
        ([b"220-" + b"x" * 70_000], FailureClass.RESPONSE_TOO_LARGE, None),
        ([b"220-x\r\n" * 20_000], FailureClass.RESPONSE_TOO_LARGE, None),
    ],
)
async def test_replies_get_their_failure_class(
    prober: Prober, said: list[bytes], failure: FailureClass | None, code: int | None
) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        for piece in said:
            await stream.send_all(piece)
            await stream.receive_some(1_000)

    async with serving(handle) as port:
        result = await prober.check("smtp", f"{HOST}:{port}", timeout_seconds=20)
    assert (result.msg, result.code) == (down(failure) if failure else "", code), result.bug


@pytest.mark.parametrize(
    ("mechanisms", "reply", "failure", "code"),
    [
        (b"CRAM-MD5 XOAUTH2", b"", FailureClass.PROTOCOL_ERROR, None),
        (b"PLAIN", b"454 later\r\n", FailureClass.PROTOCOL_ERROR, 454),
        (b"PLAIN", b"500 what\r\n", FailureClass.PROTOCOL_ERROR, 500),
        (b"PLAIN", b"535 no\r\n", FailureClass.AUTH_FAILED, 535),
        (b"LOGIN", b"534 weak\r\n", FailureClass.AUTH_FAILED, 534),
    ],
)
async def test_only_a_refusal_of_the_credentials_is_auth_failed(
    prober: Prober,
    context: ssl.SSLContext,
    mechanisms: bytes,
    reply: bytes,
    failure: FailureClass,
    code: int | None,
) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        secure = trio.SSLStream(stream, context, server_side=True)
        await secure.send_all(b"220 mail\r\n")
        await secure.receive_some(1_000)
        await secure.send_all(b"250-mail\r\n250 AUTH " + mechanisms + b"\r\n")
        if await secure.receive_some(1_000):
            await secure.send_all(reply)
            await secure.receive_some(1_000)

    async with serving(handle) as port:
        result = await prober.check("smtp", f"{HOST}:{port}", encryption="tls", **LOGIN)
    assert (result.msg, result.code) == (down(failure), code), result.bug


async def test_plain_text_behind_the_consent_to_tls_is_refused(prober: Prober) -> None:
    """A man in the middle could add it, and it would be read as if the server had encrypted it."""

    async def handle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"220 mail\r\n")
        await stream.receive_some(1_000)
        await stream.send_all(b"250-mail\r\n250 STARTTLS\r\n")
        await stream.receive_some(1_000)
        await stream.send_all(b"220 go ahead\r\n250 injected\r\n")
        await stream.receive_some(1_000)

    async with serving(handle) as port:
        result = await prober.check("smtp", f"{HOST}:{port}", encryption="starttls")
    assert result.msg == down(FailureClass.PROTOCOL_ERROR)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_arbitrary_replies_are_no_probe_bug(pieces: list[bytes]) -> None:
    async def main() -> None:
        async def handle(stream: trio.SocketStream) -> None:
            await stream.send_all(b"220 mail\r\n250-mail\r\n250-AUTH LOGIN PLAIN\r\n")
            for piece in pieces:
                await stream.send_all(piece)

        reach = make_reach(probe_policy())
        async with trio.open_nursery() as nursery:
            await nursery.start(reach.lag.watch)
            async with serving(handle) as port:
                result = await Prober(reach).check("smtp", f"{HOST}:{port}", timeout_seconds=5)
            assert result.bug is None
            nursery.cancel_scope.cancel()

    trio.run(main)


def _spec() -> Spec:
    spec = spec_of("smtp")
    assert spec is not None
    return spec


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"username": "a", "encryption": "tls"}, "config.password"),
        ({"password": "a", "encryption": "tls"}, "config.username"),
        ({"username": "a", "password": "b"}, "config.encryption"),
        ({"username": "a", "password": "b", "encryption": "none"}, "config.encryption"),
        ({"encryption": "ssl"}, "config.encryption"),
        (
            {"username": "a", "password": "b", "password_ref": "c", "encryption": "tls"},
            "config.password",
        ),
    ],
)
def test_invalid_settings_are_named(config: dict[str, object], field: str) -> None:
    spec = _spec()
    values, faults = spec.read(config)
    assert spec.rule is not None
    faults += spec.rule("mail.example", values)
    assert [fault.field for fault in faults] == [field]
