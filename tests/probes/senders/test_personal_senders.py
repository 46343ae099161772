"""Senders of contact methods: requests of a gateway, and direct messages of bots."""

import json
from urllib.parse import parse_qs, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders import direct_message as direct
from leadline.probes.senders import ntfy, slack, telegram, webhook
from leadline.probes.senders.deliver import deliver_to_person
from leadline.probes.senders.gateway import request_of
from leadline.probes.senders.gateway_settings import (
    GatewayCall,
    GatewaySecrets,
    GatewaySettings,
    PhoneGateway,
    gateway_faults,
)
from leadline.probes.senders.personal import PERSONAL_SPECS
from leadline.probes.senders.phone import (
    SMS_LONGEST,
    VOICE_LONGEST,
    plain_number,
    sms_text,
    voice_text,
)
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from tests.support.peers.fake_services import a_message, means_of, service
from tests.support.peers.servers import Prober, answer

texts = st.text(st.characters(codec="utf-8"), max_size=200)
CALL = GatewayCall(
    url="https://sms.example/{to}", body='{"n": "{to}", "t": "{text}"}', format="json"
)


def gateway(call: GatewayCall, **headers: str) -> PhoneGateway:
    settings = GatewaySettings(provider="http", sms=call)
    return PhoneGateway(settings, GatewaySecrets(sms_headers=headers))


@pytest.mark.parametrize(
    ("settings", "services"),
    [
        (GatewaySettings(), ()),
        (GatewaySettings(sms=CALL, voice=CALL), ()),
        (GatewaySettings(provider="http"), ()),
        (GatewaySettings(provider="http", sms=CALL), ("sms",)),
        (GatewaySettings(provider="http", voice=CALL), ("voice",)),
        (GatewaySettings(provider="twilio"), ("sms", "voice")),
    ],
)
def test_a_gateway_offers_the_services_that_it_has_a_call_for(
    settings: GatewaySettings, services: tuple[str, ...]
) -> None:
    one = PhoneGateway(settings, GatewaySecrets())
    assert (one.can("sms"), one.can("voice")) == ("sms" in services, "voice" in services)


@given(texts, texts)
def test_a_template_encodes_each_value_once_for_its_place(to: str, text: str) -> None:
    request = request_of(gateway(CALL), "sms", to, text)
    assert json.loads(request.body) == {"n": to, "t": text}
    assert unquote(request.url.removeprefix("https://sms.example/")) == to
    assert "/" not in request.url.removeprefix("https://sms.example/")
    form = GatewayCall(url="https://sms.example/", body="a={to}&b={text}", format="form")
    found = parse_qs(
        request_of(gateway(form), "sms", to, text).body.decode(), keep_blank_values=True
    )
    assert found == {"a": [to], "b": [text]}


@pytest.mark.parametrize(
    ("call", "headers", "field"),
    [
        (GatewayCall(url="ftp://x/{to}{text}"), {}, "sms.url"),
        (GatewayCall(url="https://x.example/", body="{}"), {}, "sms.body"),
        (GatewayCall(url="https://x.example/", body='{"a": {to}, "b": "{text}'), {}, "sms.body"),
        (GatewayCall(url="https://x.example/", body='{"a": {to}, "b": "{text}"}'), {}, "sms.body"),
        (GatewayCall(url="https://x.example/", body='{"a": "{to}", "b": {text}}'), {}, "sms.body"),
        (GatewayCall(url="https://{to}.x.example/{text}"), {}, "sms.url"),
        (GatewayCall(url="https://x.example:{to}/{text}"), {}, "sms.url"),
        (GatewayCall(url="https://x.example/#{to}{text}"), {}, "sms.body"),
        (
            GatewayCall(url="https://x.example/", method="GET", body='["{to}", "{text}"]'),
            {},
            "sms.body",
        ),
        (CALL, {"X Y": "1"}, "sms.headers"),
        (CALL, {"X-Y": "a\r\nb"}, "sms.headers"),
        (CALL, {f"X-{n}": "1" for n in range(21)}, "sms.headers"),
        (GatewayCall(), {}, "sms.url"),
    ],
)
def test_an_invalid_gateway_is_refused_with_its_field(
    call: GatewayCall, headers: dict[str, str], field: str
) -> None:
    assert field in [name for name, _ in gateway_faults(gateway(call, **headers))]
    assert list(gateway_faults(gateway(CALL, **{"X-Key": "1"}))) == []


def test_secrets_of_a_gateway_are_in_no_representation() -> None:
    whole = gateway(CALL, **{"X-Key": "canary3b"})
    request = request_of(whole, "sms", "+1", "x")
    assert request.headers["x-key"] == "canary3b"
    assert "canary3b" not in repr(whole) + repr(whole.secrets) + repr(request)
    keyed = gateway(GatewayCall(url="https://sms.example/?key=canary3b&n={to}&t={text}"))
    assert "canary3b" not in repr(keyed) + repr(request_of(keyed, "sms", "+1", "x"))


def test_an_sms_keeps_the_link_and_a_call_says_no_url() -> None:
    message = a_message(lines=("word " * 300,), title="Checkout is down")
    text = sms_text(message)
    assert len(text) <= SMS_LONGEST
    assert text.startswith(f"Checkout is down\n{message.link}\n")
    said = voice_text(message)
    assert len(said) <= VOICE_LONGEST
    assert message.link not in said


def test_the_link_to_answer_is_in_each_written_message_and_in_no_representation() -> None:
    url = "https://leadline.example/answer/canary5c"
    message = a_message(lines=("word " * 300,), answer=url)
    assert sms_text(message).startswith(
        f"Checkout is down\n{message.link}\nAnswer: {url}\n" if message.link else ""
    )
    assert url not in voice_text(message)
    assert url in direct.mattermost_text(message)
    assert url in telegram.document(message, "1")["text"]
    assert url == webhook.document(message)["answer_url"]
    assert url == ntfy.document(message, "topic")["actions"][0]["url"]
    elements = slack.document(message)["blocks"][0]["elements"][0]["elements"]
    assert next(one["url"] for one in elements if one["type"] == "link") == url
    assert "canary5c" not in repr(message)
    plain = a_message()
    assert "answer_url" not in webhook.document(plain)
    assert "actions" not in ntfy.document(plain, "topic")


@pytest.mark.parametrize(
    ("kind", "config", "fields"),
    [
        ("slack", {"url": "https://hooks.example/x"}, []),
        ("slack", {"bot_token": "xoxb-1", "user_id": "U1"}, []),
        ("slack", {"bot_token": "xoxb-1"}, ["config.user_id"]),
        ("mattermost", {"url": "https://m.example/hooks/x"}, []),
        ("mattermost", {"bot_token": "a", "user_id": "b", "server": "https://m.example"}, []),
        ("sms", {"to": "+4930123456"}, []),
        ("voice", {"to": "+049"}, ["config.to"]),
        ("email", {"to": "a@example.com"}, []),
    ],
)
def test_the_specs_accept_one_address(kind: str, config: dict[str, str], fields: list[str]) -> None:
    assert [fault.field for fault in PERSONAL_SPECS[kind].faults(config)] == fields


def test_the_text_for_mattermost_mentions_nobody() -> None:
    text = direct.mattermost_text(a_message(title="@all down", lines=("@channel",)))
    assert "@all" not in text
    assert "@channel" not in text


@pytest.mark.parametrize("answer", [{}, {"id": 5}, {"id": "../x"}])
def test_an_answer_without_an_id_is_tried_again(answer: dict[str, object]) -> None:
    with pytest.raises(NotDelivered):
        direct._id_of(msgspec.to_builtins(answer))


async def test_a_slack_bot_writes_to_the_person_and_then_in_the_thread(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"bot_token": "xoxb-canary", "user_id": "U1"}
    async with service(answer(b'{"ok":true,"ts":"17.5"}')) as peer:
        monkeypatch.setattr(direct, "SLACK_URL", peer.url)
        means = means_of(prober.reach)
        first = await deliver_to_person("slack", a_message(), config, means)
        assert first.thread == "17.5"
        await deliver_to_person("slack", a_message(thread="17.5"), config, means)
    one, two = peer.got
    assert one.path == "/api/chat.postMessage"
    assert one.headers["authorization"] == "Bearer xoxb-canary"
    assert one.json["channel"] == "U1"
    assert "thread_ts" not in one.json
    assert two.json["thread_ts"] == "17.5"


@pytest.mark.parametrize(
    ("said", "verdict", "reason"),
    [
        (b'{"ok":false,"error":"invalid_auth"}', SendFailure.REFUSED, "invalid_auth"),
        (b'{"ok":false,"error":"canary"}', SendFailure.RETRY, "protocol_error"),
        (b"canary", SendFailure.RETRY, "protocol_error"),
    ],
)
async def test_a_refusal_of_slack_has_a_bounded_reason(
    prober: Prober,
    monkeypatch: pytest.MonkeyPatch,
    said: bytes,
    verdict: SendFailure,
    reason: str,
) -> None:
    config = {"bot_token": "xoxb-1", "user_id": "U1"}
    async with service(answer(said)) as peer:
        monkeypatch.setattr(direct, "SLACK_URL", peer.url)
        with pytest.raises(NotDelivered) as failed:
            await deliver_to_person("slack", a_message(), config, means_of(prober.reach))
    assert (failed.value.verdict, failed.value.reason) == (verdict, reason)


async def test_a_mattermost_bot_opens_the_conversation_and_posts(prober: Prober) -> None:
    ids = [answer(f'{{"id":"{name}"}}'.encode()) for name in ("bot1", "chan2", "post3")]
    async with service(*ids) as peer:
        config = {"bot_token": "canary", "user_id": "user9", "server": f"{peer.url}/"}
        done = await deliver_to_person("mattermost", a_message(), config, means_of(prober.reach))
    assert done.thread == "post3"
    me, opened, post = peer.got
    assert (me.method, me.path) == ("GET", "/api/v4/users/me")
    assert (opened.path, opened.json) == ("/api/v4/channels/direct", ["bot1", "user9"])
    assert post.path == "/api/v4/posts"
    assert post.json["channel_id"] == "chan2"
    assert post.json["message"].startswith("Checkout is down")
    assert {one.headers["authorization"] for one in peer.got} == {"Bearer canary"}


async def test_a_deleted_first_message_does_not_stop_mattermost(prober: Prober) -> None:
    ids = [answer(f'{{"id":"{name}"}}'.encode()) for name in ("bot1", "chan2", "post4")]
    ids.insert(2, answer(b'{"id":"api.post.create_post.root_id.app_error"}', "400 Bad Request"))
    async with service(*ids) as peer:
        config = {"bot_token": "canary", "user_id": "user9", "server": peer.url}
        message = a_message(thread="gone")
        done = await deliver_to_person("mattermost", message, config, means_of(prober.reach))
    assert done.thread == "post4"
    assert peer.got[2].json["root_id"] == "gone"
    assert "root_id" not in peer.got[3].json


async def test_a_deleted_first_message_does_not_stop_slack(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [answer(b'{"ok":false,"error":"thread_not_found"}'), answer(b'{"ok":true,"ts":"18.5"}')]
    async with service(*said) as peer:
        monkeypatch.setattr(direct, "SLACK_URL", peer.url)
        config = {"bot_token": "xoxb-1", "user_id": "U1"}
        message = a_message(thread="17.5")
        done = await deliver_to_person("slack", message, config, means_of(prober.reach))
    assert done.thread
    assert [one.json.get("thread_ts") for one in peer.got] == ["17.5", None]


@given(st.text("0123456789", min_size=7, max_size=12), st.data())
def test_a_number_is_read_as_people_write_it(digits: str, data: st.DataObject) -> None:
    digits = f"4{digits}"
    blanks = st.sampled_from(["", " ", "-", ".", "/", "\u00a0"])
    typed = "".join(f"{digit}{data.draw(blanks)}" for digit in digits)
    for prefix in ("+", "00", "+ ", " 00 "):
        assert plain_number(prefix + typed) == f"+{digits}"
    assert plain_number(f"+49 (0) {typed}") == f"+49{digits}"
    assert plain_number(f"+1 ({digits[:3]}) {digits[3:]}") == f"+1{digits}"


@pytest.mark.parametrize("typed", ["030 1234567", "+49x30", "\u0664\u0669", "", "++4930123456"])
def test_a_number_without_a_country_stays_invalid(typed: str) -> None:
    assert PERSONAL_SPECS["sms"].faults({"to": plain_number(typed)})


async def test_incoming_webhooks_need_no_bot(prober: Prober) -> None:
    async with service() as peer:
        for kind in ("slack", "mattermost"):
            config = {"url": f"{peer.url}/{kind}"}
            await deliver_to_person(kind, a_message(), config, means_of(prober.reach))
    assert [one.path for one in peer.got] == ["/slack", "/mattermost"]
    assert "Checkout is down" in peer.got[1].json["text"]
