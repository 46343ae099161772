"""Telegram, by a bot. A recovery replies to the message of the outage.

The text is escaped HTML. A word joiner after each @ prevents mentions.
"""

from html import escape
from typing import Any, Final

from .answer_buttons import LABELS
from .channel_spec import ChannelSetting, ChannelSpec, Config
from .message import Message, plain_text, title_line
from .send_result import Delivered, NotDelivered, SendContext, SendFailure, answer_of, post_json

ORIGIN: Final = "https://api.telegram.org"
TEXT_LONGEST: Final = 4_096
# Inserted between an @ and a name. It has no width and does not break the line.
_WORD_JOINER: Final = "\u2060"

SPEC: Final = ChannelSpec(
    type="telegram",
    help="A message by a bot of Telegram.",
    settings=(
        ChannelSetting(
            name="bot_token",
            help="As BotFather gave it",
            required=True,
            secret=True,
            pattern=r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}",
            hint="must be a bot's token",
            longest=128,
        ),
        ChannelSetting(
            name="chat_id",
            help="The chat's number, or @name of a public channel",
            required=True,
            pattern=r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}",
            hint="must be a number, or @ and a name",
            longest=65,
        ),
    ),
)


def document(message: Message, chat: str) -> dict[str, Any]:
    # Telegram counts UTF-16 units, of which a character may need two.
    text = plain_text(message, TEXT_LONGEST // 2)
    title = title_line(message)
    found: dict[str, Any] = {
        "chat_id": int(chat) if not chat.startswith("@") else chat,
        "text": f"<b>{_safe(title)}</b>{_safe(text.removeprefix(title))}",
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }
    buttons = message.buttons
    if buttons is not None and buttons.telegram and not chat.startswith("@"):
        keys = [
            {"text": label, "callback_data": f"{action.value}:{buttons.code}"}
            for action, label in LABELS.items()
        ]
        found["reply_markup"] = {"inline_keyboard": [keys]}
    if message.thread.isascii() and message.thread.isdigit():
        found["reply_parameters"] = {
            "message_id": int(message.thread),
            "allow_sending_without_reply": True,
        }
    return found


def _safe(text: str) -> str:
    return escape(text, quote=False).replace("@", f"@{_WORD_JOINER}")


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    url = f"{ORIGIN}/bot{config['bot_token']}/sendMessage"
    answer = answer_of(await post_json(means, url, document(message, config["chat_id"])))
    result = answer.get("result")
    number = result.get("message_id") if isinstance(result, dict) else None
    if answer.get("ok") is not True:
        raise NotDelivered(SendFailure.RETRY, "protocol_error")
    return Delivered(thread=message.thread or (str(number) if isinstance(number, int) else ""))
