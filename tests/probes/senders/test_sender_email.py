"""Mail over SMTP, with and without STARTTLS and a password, and to servers that misbehave."""

import email
import email.policy
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.net.tls_contexts import TlsContexts
from leadline.probes.senders.deliver import deliver
from leadline.probes.senders.email import letter
from leadline.probes.senders.message import NotificationStatus
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from tests.support.peers.fake_services import CANARY, KEY, NOW_US, a_message, means_of
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.mail_server import FROM, Box, Server, mail_of, serving_mail
from tests.support.peers.real_servers import HOST, write_certificate
from tests.support.peers.servers import HANGS_SECONDS, Prober, serving

USER = "leadline"


@pytest.fixture
def start(tmp_path: Path, authority: trustme.CA) -> Iterator[Callable[..., Server]]:
    running = ExitStack()

    def begin(*, tls: bool = True, auth: bool = False) -> Server:
        box = Box()
        options: dict[str, Any] = {}
        if tls:
            chain, key = write_certificate(authority, tmp_path, HOST)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain, key)
            options["tls_context"] = context
        if auth:
            options |= {"authenticator": box.login, "auth_required": True}
            options["auth_require_tls"] = tls
        return running.enter_context(serving_mail(box, **options))

    with running:
        yield begin


async def mail_it(prober: Prober, port: int, to: str = "ops@example.com", **given: Any) -> Any:
    message = given.pop("message", a_message())
    # The egress policy of channels must not apply to the operator's mail server.
    guarded = replace(prober.reach, policy=notify_policy())
    means = means_of(guarded, mail=mail_of(prober.reach, port, **given))
    return await deliver("email", message, {"to": to}, means)


LOGIN = {"username": USER, "password": CANARY}


async def test_a_mail_arrives_over_tls_after_a_login(
    prober: Prober, start: Callable[..., Server]
) -> None:
    server = start(auth=True)
    await mail_it(prober, server.port, "a@example.com, b@example.com", **LOGIN)
    (got,) = server.box.letters
    assert server.box.encrypted == [True]
    assert server.box.logins == [CANARY.encode()]
    assert server.box.envelopes[0].rcpt_tos == ["a@example.com", "b@example.com"]
    assert got["Subject"] == "Checkout is down"
    assert got["From"] == FROM
    assert got["Auto-Submitted"] == "auto-generated"
    assert got["Date"].datetime.timestamp() == NOW_US // 1_000_000
    plain, html = got.get_body(("plain",)), got.get_body(("html",))
    assert plain is not None
    assert html is not None
    for part in (plain, html):
        text = part.get_content()
        assert "http_status shop.example.com" in text
        assert "https://leadline.example.com/monitors/1" in text


async def test_a_recovery_is_in_the_thread_of_its_outage(
    prober: Prober, start: Callable[..., Server]
) -> None:
    server = start(tls=False)
    first = await mail_it(prober, server.port)
    recovered = a_message(NotificationStatus.RECOVERED, thread=first.thread)
    second = await mail_it(prober, server.port, message=recovered)
    down, up = server.box.letters
    root = f"<{KEY}@leadline.example.com>"
    assert down["References"] == root
    assert up["References"].split() == [root, down["Message-ID"]]
    assert up["In-Reply-To"] == down["Message-ID"]
    assert up["Message-ID"] != down["Message-ID"]
    assert first.thread == second.thread == down["Message-ID"]


async def test_tls_is_used_if_offered_and_required_for_a_password(
    prober: Prober, start: Callable[..., Server]
) -> None:
    offering = start()
    await mail_it(prober, offering.port)
    assert offering.box.encrypted == [True]
    bare = start(tls=False)
    await mail_it(prober, bare.port)
    assert bare.box.encrypted == [False]
    with pytest.raises(NotDelivered) as caught:
        await mail_it(prober, bare.port, **LOGIN)
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.REFUSED, "starttls_missing")
    assert (len(bare.box.letters), bare.box.logins) == (1, [])


async def test_a_password_is_not_sent_to_an_untrusted_server(
    prober: Prober, start: Callable[..., Server], tmp_path: Path
) -> None:
    server = start(auth=True)
    stranger = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(stranger))
    reach = replace(prober.reach, contexts=TlsContexts(stranger))
    with pytest.raises(NotDelivered) as caught:
        await mail_it(Prober(reach), server.port, **LOGIN)
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.RETRY, "tls_error")
    assert server.box.logins == []


async def test_a_wrong_password_is_refused(prober: Prober, start: Callable[..., Server]) -> None:
    server = start(auth=True)
    with pytest.raises(NotDelivered) as caught:
        await mail_it(prober, server.port, username=USER, password="wrong")
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.REFUSED, "auth_failed 535")


async def test_refused_recipients_are_counted_and_not_named(
    prober: Prober, start: Callable[..., Server]
) -> None:
    server = start(tls=False)
    done = await mail_it(prober, server.port, "no@x.test, yes@x.test")
    assert done.note == "recipient_refused 1 of 2"
    for to, verdict, code in (
        ("no@x.test", SendFailure.REFUSED, 550),
        ("no@x.test, later@x.test", SendFailure.RETRY, 451),
    ):
        with pytest.raises(NotDelivered) as caught:
            await mail_it(prober, server.port, to)
        assert caught.value.verdict is verdict
        assert caught.value.reason == f"recipient_refused {code}"
        assert CANARY not in repr(caught.value)


async def test_the_repr_of_the_server_has_no_password(prober: Prober) -> None:
    assert CANARY not in repr(mail_of(prober.reach, 25, **LOGIN))


async def test_without_a_mail_server_the_delivery_is_retried(prober: Prober) -> None:
    with pytest.raises(NotDelivered) as caught:
        await deliver("email", a_message(), {"to": "a@x.test"}, means_of(prober.reach))
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.RETRY, "mail_unavailable")


async def test_a_message_adds_no_header_and_no_markup(prober: Prober) -> None:
    hostile = "x\r\nBcc: evil@x.test\r\n\r\n<script>"
    message = a_message(title=hostile, lines=(hostile,), thread="<a@b>\r\nBcc: c@d")
    whole = letter(message, ["a@x.test"], mail_of(prober.reach, 25), NOW_US)
    parsed = email.message_from_bytes(bytes(whole), policy=email.policy.default)
    assert parsed["Bcc"] is None
    assert parsed["Subject"] == "x Bcc: evil@x.test <script>"
    html = whole.get_body(("html",))
    assert html is not None
    assert "<script>" not in html.get_content()


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def dripping(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"220-x\r\n")
        await trio.sleep(0.01)


async def endless(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"220-x\r\n" * 1_000)


async def garbage(stream: trio.SocketStream) -> None:
    await stream.send_all(b"\x00\xff\xfe garbage\r\n")


async def no_service(stream: trio.SocketStream) -> None:
    await stream.send_all(b"554 go away\r\n")


@pytest.mark.parametrize(
    ("handler", "verdict", "reason"),
    [
        (silent, SendFailure.RETRY, "timeout"),
        (dripping, SendFailure.RETRY, "timeout"),
        (endless, SendFailure.RETRY, "connect_error"),
        (garbage, SendFailure.RETRY, "smtp_status"),
        (no_service, SendFailure.REFUSED, "smtp_status 554"),
    ],
)
async def test_a_hostile_server_and_its_thread_end_in_time(
    prober: Prober,
    monkeypatch: pytest.MonkeyPatch,
    handler: Callable[[trio.SocketStream], Any],
    verdict: SendFailure,
    reason: str,
) -> None:
    monkeypatch.setattr("leadline.probes.senders.deliver.SEND_SECONDS", 0.5)
    threads = trio.CapacityLimiter(4)
    reach = replace(prober.reach, threads=threads)
    async with serving(handler) as port:
        with trio.fail_after(HANGS_SECONDS), pytest.raises(NotDelivered) as caught:
            await mail_it(Prober(reach), port)
    assert (caught.value.verdict, caught.value.reason) == (verdict, reason)
    with trio.fail_after(30):
        for place in range(4):
            await threads.acquire_on_behalf_of(place)


async def test_a_cancelled_mail_leaves_nothing_open(
    prober: Prober, start: Callable[..., Server]
) -> None:
    server = start()
    threads = trio.CapacityLimiter(64)
    reach = replace(prober.reach, threads=threads)
    await leaves_nothing(lambda: mail_it(Prober(reach), server.port), threads)
