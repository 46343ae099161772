"""Answers by a button of a message, or by a key in a call.

A button contains the sealed token of its message, or is presented by a service that proves itself.
The answer is in the name of the person of the message, with the rights at that time. A POST is not
repeated by mail programs, so a button asks for no confirmation.
"""

from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID
from xml.sax.saxutils import escape as xml_escape

import msgspec
import trio

from ....probes.check.failure import LocalFailure, TargetFailure
from ....probes.senders.answer_buttons import KEYS, KEYS_SAID, ButtonAction
from ....probes.senders.gateway import gather
from ....probes.senders.send_result import NotDelivered, post_json
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.refusal import Refused
from ....storage.incidents.rules.answer_link import AnswerAction, acknowledged_words
from ....storage.incidents.rules.escalation_pause import BUTTON_SNOOZE_MINUTES
from ....storage.incidents.transactions.answer_incident import IncidentAnswer
from ....storage.incidents.transactions.answer_message import Presenter, answer_message, event_of
from ....storage.notifications.queries.answer_secrets import AnswerSecrets, select_answer_secrets
from ....storage.notifications.queries.gateway import gateway_in_force
from ....storage.notifications.rules.notification import link_of
from ...auth.answer_signatures import is_of_slack, is_of_telegram, is_of_twilio
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import PUBLIC_BODY_LARGEST, Request, Response, Route
from ..schemas import ButtonAnswer

_PUBLIC: Final = "/api/v1/public"
SLACK_HOST: Final = "hooks.slack.com"
# Slack waits 3 s for the answer of the request, and this text is sent before it.
SLACK_SECONDS: Final = 2.0
_FIELDS_MOST: Final = 100
_DONE: Final = {
    ButtonAction.RESOLVE: "Resolved.",
    ButtonAction.SNOOZE: f"Snoozed for {BUTTON_SNOOZE_MINUTES} minutes.",
}
_SAID: Final = {
    "forbidden": "Your role in the project does not allow it.",
    "incident_resolved": "The incident is already resolved.",
    "link_used": "This message was answered before. Use the console.",
    "link_expired": "This message is too old to be answered. Use the console.",
    "not_found": "This message cannot be answered. Use the console.",
    "update_quota": "The incident has no room for another note.",
}


async def answer_by_button(ask: Request) -> ButtonAnswer:
    """Answers by a sealed token: the buttons of ntfy and Mattermost.

    A refusal is a text too, because both services show it.
    """
    event = event_of(ask.words["token"], ask.context.keyring)
    action = _action(ask.words["action"])
    if event is None or action is None:
        raise Problem("not_found")
    user = _document(ask.body_start).get("user_id")
    presenter = Presenter("button", "", user if isinstance(user, str) else "")
    return ButtonAnswer(ephemeral_text=await _answer(ask, event, action, presenter))


async def answer_by_slack(ask: Request) -> Response:
    secrets = await _secrets(ask)
    now = ask.context.clock()
    if not is_of_slack(ask.body_start, ask.headers, secrets.slack_signing_secret, now):
        raise Problem("unauthorized")
    payload = _document(_form(ask).get("payload", "").encode())
    pressed = _first(payload.get("actions"))
    token, action = str(pressed.get("value", "")), _action(str(pressed.get("action_id", "")))
    event = event_of(token, ask.context.keyring)
    if event is None or action is None:
        # A link of the message is an action too, and needs no answer.
        return Response(body=b"", content_type="text/plain")
    user = str(_part(payload, "user").get("id", ""))
    said = await _answer(ask, event, action, Presenter("slack", "slack", user))
    await _tell_slack(ask, str(payload.get("response_url", "")), said)
    return Response(body=b"", content_type="text/plain")


async def answer_by_telegram(ask: Request) -> Response:
    secrets = await _secrets(ask)
    if not is_of_telegram(ask.headers, secrets.telegram_secret):
        raise Problem("unauthorized")
    query = _part(_document(ask.body_start), "callback_query")
    name, _, code = str(query.get("data", "")).partition(":")
    event, action = _uuid(code), _action(name)
    if event is None or action is None:
        return Response(body={})
    chat = str(_part(_part(query, "message"), "chat").get("id", ""))
    said = await _answer(ask, event, action, Presenter("telegram", "telegram", chat or "none"))
    told = {"method": "answerCallbackQuery", "callback_query_id": str(query.get("id", ""))}
    return Response(body={**told, "text": said, "show_alert": True})


async def answer_by_key(ask: Request) -> Response:
    """Answers by the key that a person pressed in a call of Twilio."""
    async with ask.context.pool.transaction("read_gateway", read_only=True) as tx:
        gateway = await gateway_in_force(tx, ask.context.keyring)
        base_url = (await mailing_in(tx, ask.context)).base_url
    if gateway is None or gateway.settings.provider != "twilio":
        raise Problem("not_found")
    fields = _form(ask)
    url = link_of(base_url, ask.path)
    if not is_of_twilio(url, fields, ask.headers, gateway.secrets.auth_token):
        raise Problem("unauthorized")
    event = event_of(ask.words["token"], ask.context.keyring)
    action = KEYS.get(fields.get("Digits", ""))
    if event is None:
        raise Problem("not_found")
    if action is None:
        return _spoken(KEYS_SAID, again=url)
    return _spoken(await _answer(ask, event, action, Presenter("call", "voice", "")))


def _spoken(text: str, again: str = "") -> Response:
    said = f"<Say>{xml_escape(text)}</Say>"
    body = gather(again, said) if again else f"<Response>{said}</Response>"
    return Response(body=body.encode(), content_type="text/xml")


async def _answer(ask: Request, event: UUID, action: ButtonAction, presenter: Presenter) -> str:
    """Performs the answer. Returns the text for the person, also of a refusal."""
    answer = IncidentAnswer(action=AnswerAction(action.value), minutes=BUTTON_SNOOZE_MINUTES)
    try:
        async with ask.context.pool.transaction("answer_message") as tx:
            row = await answer_message(tx, event, answer, presenter)
            is_snoozed = row.is_snoozed(tx.now)
    except Refused as refused:
        return _SAID.get(refused.code, "The answer was refused. Use the console.")
    ask.context.on_told()
    if action is ButtonAction.ACKNOWLEDGE:
        return acknowledged_words(is_snoozed=is_snoozed)
    return _DONE[action]


async def _secrets(ask: Request) -> AnswerSecrets:
    async with ask.context.pool.transaction("read_answer_secrets", read_only=True) as tx:
        return await select_answer_secrets(tx, ask.context.keyring)


async def _tell_slack(ask: Request, url: str, text: str) -> None:
    """Shows the text to the person. The answer counts also if Slack cannot be reached."""
    if urlsplit(url).scheme != "https" or urlsplit(url).hostname != SLACK_HOST:
        return
    with trio.move_on_after(SLACK_SECONDS):
        try:
            body = {"text": text, "response_type": "ephemeral", "replace_original": False}
            await post_json(ask.context.means, url, body)
        except (NotDelivered, TargetFailure, LocalFailure):
            return


def _action(text: str) -> ButtonAction | None:
    try:
        return ButtonAction(text)
    except ValueError:
        return None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(hex=text) if len(text) == 32 else None
    except ValueError:
        return None


def _form(ask: Request) -> dict[str, str]:
    try:
        text = ask.body_start.decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MOST)
    except ValueError:
        raise Problem("invalid form body") from None
    return dict(pairs)


def _document(body: bytes) -> dict[str, Any]:
    """Returns the JSON object, {} for anything else."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _first(found: object) -> dict[str, Any]:
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def _route(path: str, handler: Any, summary: str, **given: Any) -> Route:
    return Route(
        method="POST",
        path=_PUBLIC + path,
        action=Permission(Need.NOBODY),
        handler=handler,
        summary=summary,
        tag="public",
        body_ignored=True,
        body_largest=PUBLIC_BODY_LARGEST,
        **given,
    )


ROUTES: Final = (
    _route(
        "/answers/slack",
        answer_by_slack,
        "Button of Slack.",
        content_type="text/plain",
        also=(400, 401),
    ),
    _route(
        "/answers/telegram",
        answer_by_telegram,
        "Button of Telegram.",
        answer=dict[str, Any],
        also=(401,),
    ),
    _route(
        "/answers/{token}/{action}",
        answer_by_button,
        "Button of a message: acknowledge, resolve or snooze.",
        answer=ButtonAnswer,
    ),
    _route(
        "/calls/{token}",
        answer_by_key,
        "Key in a call.",
        content_type="text/xml",
        also=(400, 401),
    ),
)
