"""Buttons of messages: each service gets those that the installation can verify."""

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from leadline.probes.senders import ntfy, slack, telegram
from leadline.probes.senders.answer_buttons import KEYS, KEYS_SAID, LABELS, AnswerButtons
from leadline.probes.senders.direct_message import _attachments
from leadline.probes.senders.gateway import request_of
from leadline.probes.senders.gateway_settings import (
    GatewaySecrets,
    GatewaySettings,
    PhoneGateway,
)
from leadline.probes.senders.message import Message, NotificationStatus

TOKEN = "T0ken"
BASE = "https://up.example/api/v1/public"
BUTTONS = AnswerButtons(
    TOKEN, "0" * 32, f"{BASE}/answers/{TOKEN}", f"{BASE}/calls/{TOKEN}", slack=True, telegram=True
)
PAGE = Message(
    id="1",
    key="2",
    event="incident.escalated",
    status=NotificationStatus.DOWN,
    title="Shop is down",
    answer=f"https://up.example/answer/{TOKEN}",
    buttons=BUTTONS,
)
UNPROVED = replace(PAGE, buttons=replace(BUTTONS, slack=False, telegram=False))


def test_slack_has_buttons_with_the_token_only_if_they_can_be_verified() -> None:
    blocks = slack.document(PAGE)["blocks"]
    elements = blocks[-1]["elements"]
    assert [one["action_id"] for one in elements] == [action.value for action in LABELS]
    assert {one["value"] for one in elements} == {TOKEN}
    assert [block["type"] for block in slack.document(UNPROVED)["blocks"]] == ["rich_text"]


def test_telegram_has_a_short_code_and_no_token() -> None:
    document = telegram.document(PAGE, "42")
    (row,) = document["reply_markup"]["inline_keyboard"]
    assert all(len(key["callback_data"].encode()) <= 64 for key in row), "the limit of Telegram"
    assert TOKEN not in str(row)
    for message, chat in ((UNPROVED, "42"), (PAGE, "@channel")):
        assert "reply_markup" not in telegram.document(message, chat)


def test_ntfy_and_mattermost_have_the_url_of_the_message() -> None:
    actions: list[dict[str, Any]] = ntfy.document(PAGE, "t")["actions"]
    assert len(actions) == 3, "the limit of ntfy"
    posted = [one["url"] for one in actions if one["action"] == "http"]
    assert posted == [f"{BUTTONS.url}/acknowledge", f"{BUTTONS.url}/snooze"]
    (attached,) = _attachments(PAGE)["attachments"]
    urls = [one["integration"]["url"] for one in attached["actions"]]
    assert urls == [f"{BUTTONS.url}/{action.value}" for action in LABELS]
    assert _attachments(replace(PAGE, buttons=None)) == {}


def test_a_call_asks_for_a_key_if_it_can_be_answered() -> None:
    settings = GatewaySettings(provider="twilio", account_sid="AC1", sender="+4930123456")
    gateway = PhoneGateway(settings, GatewaySecrets(auth_token="t"))

    def twiml(url: str) -> str:
        body = request_of(gateway, "voice", "+4930123457", "Down", url).body
        return parse_qs(body.decode())["Twiml"][0]

    said = twiml(BUTTONS.call_url)
    assert f'action="{BUTTONS.call_url}"' in said
    assert KEYS_SAID in said
    assert "Gather" not in twiml("")
    assert all(key in KEYS_SAID for key in KEYS)


def test_no_representation_has_the_token() -> None:
    assert TOKEN not in repr(PAGE)
    assert TOKEN not in repr(BUTTONS)
