"""Deliveries over HTTP: requests, interpretation of answers, and limits for hostile receivers."""

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import trio
from standardwebhooks import Webhook, WebhookVerificationError

from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders import send_result as delivery
from leadline.probes.senders import telegram
from leadline.probes.senders import webhook as webhook_sender
from leadline.probes.senders.deliver import deliver, deliver_signed
from leadline.probes.senders.message import NotificationStatus
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from tests.support.peers.fake_services import (
    CANARY,
    KEY,
    NOW_US,
    Service,
    a_message,
    means_of,
    service,
)
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import HANGS_SECONDS, Prober, answer, serving

SECRET = webhook_sender.secret_from(b"s" * 32)


def config_of(kind: str, url: str) -> dict[str, str]:
    return {
        "webhook": {"url": f"{url}/hook?x=1", "secret": SECRET},
        "slack": {"url": f"{url}/services/{CANARY}"},
        "discord": {"url": f"{url}/api/webhooks/{CANARY}"},
        "teams": {"url": f"{url}/workflows?sig={CANARY}"},
        "telegram": {"bot_token": f"1:{CANARY}{'x' * 20}", "chat_id": "-5"},
        "ntfy": {"url": url, "topic": "ops", "token": CANARY},
        "pagerduty": {"base_url": url, "routing_key": "k" * 32},
        "opsgenie": {"base_url": f"{url}/", "api_key": CANARY},
    }[kind]


KINDS = ["webhook", "slack", "discord", "teams", "telegram", "ntfy", "pagerduty", "opsgenie"]
TAKEN = {
    "telegram": answer(b'{"ok":true,"result":{"message_id":77}}'),
    "pagerduty": answer(b'{"status":"success"}', "202 Accepted"),
    "discord": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the URL of Telegram to a server of the test."""
    return lambda url: monkeypatch.setattr(telegram, "ORIGIN", url)


@pytest.mark.parametrize("kind", KINDS)
async def test_templates_word_the_message_of_each_service_but_the_webhook(
    prober: Prober, at: Callable[[str], None], kind: str
) -> None:
    words = {"title_template": "Now {title}", "text_template": "Runbook first"}
    async with service(TAKEN.get(kind, answer(b"ok"))) as peer:
        at(peer.url)
        config = {**config_of(kind, peer.url), **words}
        await deliver(kind, a_message(), config, means_of(prober.reach))
    (got,) = peer.got
    is_worded = kind != "webhook"
    assert ("Now Checkout is down" in str(got.json)) == is_worded
    assert ("Runbook first" in str(got.json)) == is_worded


@pytest.mark.parametrize("kind", KINDS)
async def test_each_service_gets_one_post(
    prober: Prober, at: Callable[[str], None], kind: str
) -> None:
    async with service(TAKEN.get(kind, answer(b"ok"))) as peer:
        at(peer.url)
        await deliver(kind, a_message(), config_of(kind, peer.url), means_of(prober.reach))
    (got,) = peer.got
    assert got.method == "POST"
    assert got.headers["content-type"] == "application/json"
    assert "Checkout is down" in str(got.json)


async def test_paths_and_credentials_of_each_service(
    prober: Prober, at: Callable[[str], None]
) -> None:
    async with service(TAKEN["telegram"]) as peer:
        at(peer.url)
        for kind in ("telegram", "ntfy", "pagerduty", "opsgenie"):
            await deliver(kind, a_message(), config_of(kind, peer.url), means_of(prober.reach))
    telegram_got, ntfy_got, pagerduty_got, opsgenie_got = peer.got
    assert telegram_got.path == f"/bot1:{CANARY}{'x' * 20}/sendMessage"
    assert (ntfy_got.path, ntfy_got.headers["authorization"]) == ("/", f"Bearer {CANARY}")
    assert (pagerduty_got.path, pagerduty_got.json["routing_key"]) == ("/v2/enqueue", "k" * 32)
    assert opsgenie_got.path == "/v2/alerts"
    assert opsgenie_got.headers["authorization"] == f"GenieKey {CANARY}"


async def test_a_recovery_closes_its_alert(prober: Prober, at: Callable[[str], None]) -> None:
    async with service(TAKEN["telegram"]) as peer:
        at(peer.url)
        means = means_of(prober.reach)
        opened = await deliver("telegram", a_message(), config_of("telegram", ""), means)
        recovery = a_message(NotificationStatus.RECOVERED, thread=opened.thread)
        for kind in ("telegram", "pagerduty", "opsgenie"):
            await deliver(kind, recovery, config_of(kind, peer.url), means)
    _, reply, resolved, closed = peer.got
    assert reply.json["reply_parameters"]["message_id"] == 77
    assert (resolved.json["event_action"], resolved.json["dedup_key"]) == ("resolve", KEY)
    assert closed.path == f"/v2/alerts/{KEY}/close?identifierType=alias"


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie"])
async def test_a_test_message_opens_and_closes_an_alert(prober: Prober, kind: str) -> None:
    async with service(answer(b"{}", "202 Accepted")) as peer:
        means = means_of(prober.reach)
        await deliver(kind, a_message(NotificationStatus.TEST), config_of(kind, peer.url), means)
    opened, closed = peer.got
    assert "trigger" in str(opened.json) or opened.path == "/v2/alerts"
    assert "resolve" in str(closed.json) or closed.path.endswith("/close?identifierType=alias")


async def hooked(prober: Prober, **config: str) -> Service:
    async with service() as peer:
        given = {**config_of("webhook", peer.url), **config}
        await deliver("webhook", a_message(), given, means_of(prober.reach))
    return peer


async def test_a_webhook_has_both_signatures_of_its_body(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    (got,) = (await hooked(prober)).got
    assert got.path == "/hook?x=1"
    assert got.headers["x-leadline-event"] == "channel.down"
    expected = hmac.new(b"s" * 32, got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-leadline-signature"] == f"sha256={expected}"
    assert got.headers["webhook-timestamp"] == str(NOW_US // 1_000_000)
    judge = Webhook(SECRET)

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Frozen":
            return cls.fromtimestamp(NOW_US / 1_000_000, UTC)

    monkeypatch.setattr("standardwebhooks.webhooks.datetime", Frozen)
    assert judge.verify(got.body, dict(got.headers)) == got.json
    for changed in (got.body + b" ", got.body.replace(b"down", b"DOWN")):
        with pytest.raises(WebhookVerificationError):
            judge.verify(changed, dict(got.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(webhook_sender.secret_from(b"t" * 32)).verify(got.body, dict(got.headers))


async def test_a_webhook_without_a_secret_has_no_signature(prober: Prober) -> None:
    (got,) = (await hooked(prober, secret="")).got
    assert not [name for name in got.headers if "signature" in name or name == "webhook-id"]


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_***", "s" * 32, SECRET[:-20]])
async def test_an_invalid_stored_secret_sends_nothing(prober: Prober, secret: str) -> None:
    async with service() as peer:
        means = means_of(prober.reach)
        sends: list[Callable[[], Awaitable[object]]] = [
            lambda: deliver_signed(f"{peer.url}/hook", secret, "incident.opened", "1", b"{}", means)
        ]
        if secret:
            config = {"url": f"{peer.url}/hook", "secret": secret}
            sends.append(lambda: deliver("webhook", a_message(), config, means))
        for send in sends:
            with pytest.raises(NotDelivered) as found:
                await send()
            assert (found.value.verdict, found.value.reason) == (REFUSED, "invalid_secret")
    assert peer.got == []


def test_a_webhook_secret_is_base64_of_24_to_64_bytes() -> None:
    assert webhook_sender.key_of(SECRET) == b"s" * 32
    for size, good in ((23, False), (24, True), (64, True), (65, False)):
        text = "whsec_" + base64.b64encode(b"x" * size).decode()
        assert (webhook_sender.secret_fault(text) is None) == good
    assert webhook_sender.secret_fault("whsec_***") is not None


REFUSED, RETRY = SendFailure.REFUSED, SendFailure.RETRY


@pytest.mark.parametrize(
    ("status", "headers", "verdict", "after"),
    [
        ("400 Bad", (), REFUSED, None),
        ("401 No", ("Retry-After: 5",), REFUSED, None),
        ("404 No", (), REFUSED, None),
        ("410 Gone", (), REFUSED, None),
        ("301 Moved", ("Location: http://127.0.0.1:1/",), REFUSED, None),
        ("307 Moved", ("Location: http://169.254.169.254/",), REFUSED, None),
        ("408 Late", (), RETRY, None),
        ("429 Slow", ("Retry-After: 7",), RETRY, 7),
        ("429 Slow", ("Retry-After: 999999999",), RETRY, 3_600),
        ("429 Slow", ("Retry-After: Wed, 21 Oct 2026 07:28:00 GMT",), RETRY, None),
        ("429 Slow", ("Retry-After: " + "9" * 5_000,), RETRY, 3_600),
        ("500 Oh", (), RETRY, None),
        ("503 Oh", ("Retry-After: 2",), RETRY, 2),
    ],
)
async def test_the_answer_decides_if_a_delivery_is_retried(
    prober: Prober, status: str, headers: tuple[str, ...], verdict: SendFailure, after: int | None
) -> None:
    async with service(answer(CANARY.encode(), status, *headers)) as peer:
        with pytest.raises(NotDelivered) as caught:
            await deliver(
                "slack", a_message(), config_of("slack", peer.url), means_of(prober.reach)
            )
    assert len(peer.got) == 1, "redirects are not followed"
    assert caught.value.verdict is verdict
    assert caught.value.retry_after == after
    assert caught.value.reason == f"http_status {status[:3]}"


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def dripping(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        await stream.send_all(b"x")
        await trio.sleep(0.02)


async def endless(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b"x" * 65_536)


async def headless(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"x" * 65_536)


async def garbage(stream: trio.SocketStream) -> None:
    await stream.send_all(b"\x00\xff garbage\r\n\r\n")


async def closing(stream: trio.SocketStream) -> None:
    await stream.aclose()


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (silent, "timeout"),
        (dripping, "timeout"),
        (headless, "protocol_error"),
        (garbage, "protocol_error"),
        (closing, "protocol_error"),
    ],
)
async def test_a_hostile_receiver_ends_in_time(
    prober: Prober,
    monkeypatch: pytest.MonkeyPatch,
    handler: Callable[[trio.SocketStream], Awaitable[None]],
    reason: str,
) -> None:
    monkeypatch.setattr("leadline.probes.senders.deliver.SEND_SECONDS", 0.5)
    async with serving(handler) as port:
        config = config_of("webhook", f"http://127.0.0.1:{port}")
        with trio.fail_after(HANGS_SECONDS), pytest.raises(NotDelivered) as caught:
            await deliver("webhook", a_message(), config, means_of(prober.reach))
    assert caught.value.verdict is SendFailure.RETRY
    assert caught.value.reason in (reason, "connect_error", "response_too_large")


async def test_an_endless_answer_is_read_to_a_limit(
    prober: Prober,
) -> None:
    async with serving(endless) as port:
        config = config_of("slack", f"http://127.0.0.1:{port}")
        with trio.fail_after(30):
            await deliver("slack", a_message(), config, means_of(prober.reach))
    assert delivery.ANSWER_BYTES_MOST <= 65_536


@pytest.mark.parametrize("body", [b"", b"ok", b"[1]", b'{"ok":false}', b'{"ok":1}', b"[" * 9_000])
async def test_an_invalid_answer_of_telegram_is_retried(
    prober: Prober, at: Callable[[str], None], body: bytes
) -> None:
    async with service(answer(body)) as peer:
        at(peer.url)
        with pytest.raises(NotDelivered) as caught:
            await deliver(
                "telegram", a_message(), config_of("telegram", ""), means_of(prober.reach)
            )
    assert caught.value.verdict is SendFailure.RETRY


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254"])
async def test_private_addresses_are_refused_before_a_connection(prober: Prober, host: str) -> None:
    reach = replace(prober.reach, policy=notify_policy())
    with pytest.raises(NotDelivered) as caught:
        await deliver("webhook", a_message(), {"url": f"http://{host}:1/"}, means_of(reach))
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.BLOCKED, "target_blocked")


async def test_metadata_addresses_are_refused_if_private_ones_are_allowed(prober: Prober) -> None:
    reach = replace(prober.reach, policy=notify_policy(allow_private=True))
    with pytest.raises(NotDelivered) as caught:
        await deliver("webhook", a_message(), {"url": "http://169.254.169.254/"}, means_of(reach))
    assert caught.value.verdict is SendFailure.BLOCKED


@pytest.mark.parametrize("kind", KINDS)
async def test_no_reason_contains_configuration_or_message(
    prober: Prober, at: Callable[[str], None], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with service(answer(CANARY.encode() * 10, f"500 {CANARY}", f"x-a: {CANARY}")) as peer:
        at(peer.url)
        with pytest.raises(NotDelivered) as caught:
            await deliver(
                kind, a_message(title=CANARY), config_of(kind, peer.url), means_of(prober.reach)
            )
    assert CANARY not in repr(caught.value)
    assert CANARY not in caplog.text


async def test_a_cancelled_delivery_leaves_nothing_open(prober: Prober) -> None:
    async with service() as peer:
        config = config_of("webhook", peer.url)
        await leaves_nothing(
            lambda: deliver("webhook", a_message(), config, means_of(prober.reach))
        )
