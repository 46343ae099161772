"""Snooze and reassign by API, and answers by buttons of chat services and by keys in a call."""

import base64
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest

from leadline.probes.senders.gateway_settings import GatewaySecrets, GatewaySettings
from leadline.storage.accounts.transactions.write_setting import write_setting
from leadline.storage.core.instant import MINUTE, SECOND, Instant, to_text
from leadline.storage.incidents.transactions.answer_message import answer_token
from leadline.storage.incidents.transactions.escalate_incident import escalate_if_due
from leadline.storage.notifications.queries.gateway import NAME as GATEWAY
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call, refused

NOBODY: dict[str, str] = {}
SLACK_SECRET = "s" * 32
TELEGRAM_SECRET = "t" * 32


async def paged(api: Api, kind: str, **config: str) -> tuple[UUID, UUID, str]:
    """Pages the editor by a contact method. Returns the incident, the message and its token."""
    await api.new_contact_method("editor", kind, **config)  # type: ignore[arg-type]
    steps = [
        {"after_seconds": 0, "targets": [{"type": "person", "id": str(api.users["editor"][1])}]}
    ]
    policies = f"/projects/{api.project}/escalation-policies"
    policy = await call(api, "POST", policies, {"name": "n", "steps": steps}, 201)
    incident = await api.new_incident(policy=UUID(policy["id"]))
    async with api.pool.transaction("escalate") as tx:
        await escalate_if_due(tx, incident)
    ((event,),) = await api.rows("select uid from outbox where event = 'incident.escalated'")
    return incident, event, answer_token(event, api.context.keyring)


async def acknowledger(api: Api) -> Any:
    ((label,),) = await api.rows("select acknowledged_label from incidents")
    return label


async def press(
    api: Api, path: str, data: bytes, headers: dict[str, str], status: int = 200
) -> Any:
    answer = await api.ask(NOBODY, "POST", f"/api/v1/public{path}", data=data, headers=headers)
    assert answer.status_code == status
    return await answer.get_data()


async def set_buttons(api: Api) -> None:
    body = {"slack_signing_secret": SLACK_SECRET, "telegram_secret": TELEGRAM_SECRET}
    view = await call(api, "PUT", "/settings/answer-buttons", body, who="global_admin")
    assert (view["slack_set"], view["telegram_set"]) == (True, True)
    assert SLACK_SECRET not in json.dumps(view)
    # An absent secret is kept.
    assert await call(api, "PUT", "/settings/answer-buttons", {}, who="global_admin") == view


@pytest.fixture
async def ringed(api: Api) -> Api:
    await set_buttons(api)
    return api


async def test_a_snooze_and_a_reassignment_are_in_the_answer(api: Api) -> None:
    incident, _, _ = await paged(api, "email", to="a@example.com")
    one = f"/incidents/{incident}"
    found = await call(api, "POST", f"{one}/snooze", {"minutes": 30})
    assert found["snoozed_until"] == to_text(Instant(FROZEN_NOW + 30 * MINUTE))
    assert found["snoozed_by_name"] == "editor"
    assert await refused(api, "POST", f"{one}/snooze", {"minutes": 0}, 400)
    await call(api, "POST", f"{one}/snooze", {"minutes": 5}, 403, who="viewer")
    body = {"type": "person", "id": str(api.users["editor"][1])}
    found = await call(api, "POST", f"{one}/reassign", body)
    assert "snoozed_until" not in found
    assert found["assigned_to_type"] == "person"
    assert "id" in await refused(api, "POST", f"{one}/reassign", {**body, "id": str(incident)}, 400)
    actions = await api.rows(
        "select action from audit_entries where action like 'incident.%%' order by id"
    )
    assert [action for (action,) in actions] == [
        "incident.create",
        "incident.snooze",
        "incident.reassign",
    ]


async def test_a_button_with_a_sealed_token_answers_once(api: Api) -> None:
    _, _, token = await paged(api, "ntfy", url="https://ntfy.sh", topic="t")
    done = json.loads(await press(api, f"/answers/{token}/snooze", b"", {}))
    assert done == {"ephemeral_text": "Snoozed for 30 minutes."}
    again = json.loads(await press(api, f"/answers/{token}/acknowledge", b"", {}))
    assert "answered before" in again["ephemeral_text"]
    await press(api, f"/answers/{token[:-2]}xx/acknowledge", b"", {}, 404)
    await press(api, f"/answers/{token}/reassign", b"", {}, 404)
    assert await acknowledger(api) == ""
    ((target,),) = await api.rows(
        "select target from audit_entries where action = 'incident.answer'"
    )
    assert target.endswith("snooze by=ntfy via=button")


async def test_a_button_does_not_end_the_snooze_of_an_acknowledged_incident(api: Api) -> None:
    incident, _, token = await paged(api, "ntfy", url="https://ntfy.sh", topic="t")
    await call(api, "POST", f"/incidents/{incident}/acknowledge")
    await call(api, "POST", f"/incidents/{incident}/snooze", {"minutes": 30})
    done = json.loads(await press(api, f"/answers/{token}/acknowledge", b"", {}))
    words = "Already acknowledged. The escalation continues after the snooze."
    assert done == {"ephemeral_text": words}


async def test_mattermost_answers_for_its_own_user_only(api: Api) -> None:
    _, _, token = await paged(api, "mattermost", user_id="u1", server="https://m.example")
    path = f"/answers/{token}/acknowledge"
    other = await press(api, path, json.dumps({"user_id": "u2"}).encode(), {})
    assert b"cannot be answered" in other
    assert await acknowledger(api) == ""
    await press(api, path, json.dumps({"user_id": "u1"}).encode(), {})
    assert await acknowledger(api) == "editor"


def slack_request(token: str, action: str, user: str, at_s: int) -> tuple[bytes, dict[str, str]]:
    payload = {
        "type": "block_actions",
        "user": {"id": user},
        "actions": [{"action_id": action, "value": token}],
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    made = hmac.new(SLACK_SECRET.encode(), f"v0:{at_s}:".encode() + body, hashlib.sha256)
    stamp = {"X-Slack-Request-Timestamp": str(at_s)}
    return body, {**stamp, "X-Slack-Signature": f"v0={made.hexdigest()}"}


async def test_slack_answers_with_a_signature_and_for_its_own_user(ringed: Api) -> None:
    _, _, token = await paged(ringed, "slack", user_id="U1")
    now_s = FROZEN_NOW // SECOND
    body, headers = slack_request(token, "acknowledge", "U1", now_s)
    await press(ringed, "/answers/slack", body + b"&x=1", headers, 401)
    await press(ringed, "/answers/slack", body, {}, 401)
    old = slack_request(token, "acknowledge", "U1", now_s - 301)
    await press(ringed, "/answers/slack", *old, 401)
    await press(ringed, "/answers/slack", *slack_request(token, "acknowledge", "U2", now_s))
    assert await acknowledger(ringed) == ""
    await press(ringed, "/answers/slack", body, headers)
    assert await acknowledger(ringed) == "editor"


async def test_telegram_answers_with_the_secret_and_from_its_own_chat(ringed: Api) -> None:
    _, event, _ = await paged(ringed, "telegram", chat_id="42")
    secret = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}

    def pressed(chat: int) -> bytes:
        query = {
            "id": "7",
            "data": f"acknowledge:{event.hex}",
            "message": {"chat": {"id": chat}},
        }
        return json.dumps({"callback_query": query}).encode()

    await press(ringed, "/answers/telegram", pressed(42), {}, 401)
    wrong = {"X-Telegram-Bot-Api-Secret-Token": "x"}
    await press(ringed, "/answers/telegram", pressed(42), wrong, 401)
    await press(ringed, "/answers/telegram", pressed(43), secret)
    await press(ringed, "/answers/telegram", b"[]", secret)
    assert await acknowledger(ringed) == ""
    told = json.loads(await press(ringed, "/answers/telegram", pressed(42), secret))
    assert (told["method"], told["callback_query_id"]) == ("answerCallbackQuery", "7")
    assert await acknowledger(ringed) == "editor"


async def test_telegram_cannot_answer_a_message_of_another_kind(ringed: Api) -> None:
    _, event, _ = await paged(ringed, "email", to="a@example.com")
    query = {"id": "7", "data": f"resolve:{event.hex}", "message": {"chat": {"id": 42}}}
    body = json.dumps({"callback_query": query}).encode()
    secret = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}
    await press(ringed, "/answers/telegram", body, secret)
    assert await ringed.rows("select status from incidents") == [("investigating",)]


def twilio_headers(url: str, fields: dict[str, str], token: str) -> dict[str, str]:
    whole = url + "".join(name + fields[name] for name in sorted(fields))
    made = hmac.new(token.encode(), whole.encode(), hashlib.sha1).digest()
    return {"X-Twilio-Signature": base64.b64encode(made).decode()}


async def test_a_key_in_a_signed_call_answers(api: Api) -> None:
    settings = GatewaySettings(provider="twilio", account_sid="AC1", sender="+4930123456")
    secrets = GatewaySecrets(auth_token="tok")
    async with api.pool.transaction("gateway") as tx:
        values = (json.dumps({"provider": "twilio", "account_sid": settings.account_sid}),)
        text = json.dumps({"auth_token": secrets.auth_token})
        await write_setting(tx, GATEWAY, *values, text, api.context.keyring)
    _, _, token = await paged(api, "voice", to="+4930123457")
    path = f"/calls/{token}"
    base = {"enabled": False, "public_base_url": "https://up.example"}
    await call(api, "PUT", "/settings/mail", base, who="global_admin")
    url = f"https://up.example/api/v1/public{path}"

    def keyed(digits: str) -> tuple[bytes, dict[str, str]]:
        fields = {"CallSid": "CA1", "Digits": digits}
        return urlencode(fields).encode(), twilio_headers(url, fields, "tok")

    body, headers = keyed("1")
    await press(api, path, body + b"&Digits=2", headers, 401)
    await press(api, path, body, {}, 401)
    again = await press(api, path, *keyed("9"))
    assert b"<Gather" in again
    assert b"Press 1" in again
    assert await acknowledger(api) == ""
    said = await press(api, path, body, headers)
    assert said == b"<Response><Say>Acknowledged. The escalation has stopped.</Say></Response>"
    assert await acknowledger(api) == "editor"


async def test_without_their_secrets_no_service_is_trusted(api: Api) -> None:
    _, event, token = await paged(api, "slack", user_id="U1")
    now_s = FROZEN_NOW // SECOND
    await press(api, "/answers/slack", *slack_request(token, "acknowledge", "U1", now_s), 401)
    empty = {"X-Telegram-Bot-Api-Secret-Token": ""}
    await press(api, "/answers/telegram", event.hex.encode(), empty, 401)
    await press(api, f"/calls/{token}", b"Digits=1", {}, 404)
    await call(
        api,
        "PUT",
        "/settings/answer-buttons",
        {"telegram_secret": "short"},
        400,
        who="global_admin",
    )
    await call(api, "PUT", "/settings/answer-buttons", {}, 403, who="editor")
