"""ntfy, on the public or another server. A recovery is a new notification.

ntfy has no replies. A recovery could replace the outage's notification, but then no device would
alert. Texts are plain, because ntfy interprets markup only on request.
"""

from typing import Any, Final

from .answer_buttons import LABELS, ButtonAction
from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import Message, MessageSeverity, NotificationStatus, body_lines, clipped, title_line
from .send_result import Delivered, SendContext, post_json

# ntfy converts a longer message into an attachment.
MESSAGE_BYTES_MOST: Final = 4_000
_TAGS: Final = {
    NotificationStatus.DOWN: "rotating_light",
    NotificationStatus.RECOVERED: "white_check_mark",
    NotificationStatus.TEST: "wrench",
}
_PRIORITIES: Final = {
    MessageSeverity.NONE: 3,
    MessageSeverity.MINOR: 3,
    MessageSeverity.MAJOR: 4,
    MessageSeverity.CRITICAL: 5,
}

SPEC: Final = ChannelSpec(
    type="ntfy",
    help="A notification to a topic of ntfy.",
    settings=(
        ChannelSetting(
            name="url",
            help="The server",
            form=ValueForm.URL,
            leads=True,
            default="https://ntfy.sh",
        ),
        ChannelSetting(
            name="topic",
            help="The topic; on a public server anyone with it can read the messages",
            required=True,
            pattern=r"[A-Za-z0-9_-]{1,64}",
            hint="must be 1 to 64 letters, digits, dashes and underscores",
            longest=64,
        ),
        ChannelSetting(
            name="token",
            help="An access token, if the topic requires one",
            secret=True,
            pattern=r"[\x21-\x7e]+",
            hint="must be visible ASCII without blanks",
            longest=256,
        ),
    ),
)


def document(message: Message, topic: str) -> dict[str, Any]:
    text = "\n".join(body_lines(message)) or title_line(message)
    while len(text.encode()) > MESSAGE_BYTES_MOST:
        text = clipped(text, len(text) * 9 // 10)
    down = message.status is NotificationStatus.DOWN
    found: dict[str, Any] = {
        "topic": topic,
        "title": title_line(message),
        "message": text,
        "tags": [_TAGS[message.status]],
        "priority": _PRIORITIES[message.severity] if down else 3,
    }
    if message.answer:
        found["actions"] = [{"action": "view", "label": "Answer", "url": message.answer}]
    if message.answer and message.buttons is not None:
        # ntfy shows at most three actions.
        found["actions"] += [
            {
                "action": "http",
                "label": LABELS[action],
                "method": "POST",
                "url": f"{message.buttons.url}/{action.value}",
                "clear": True,
            }
            for action in (ButtonAction.ACKNOWLEDGE, ButtonAction.SNOOZE)
        ]
    if message.link:
        found["click"] = message.link
    return found


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    headers = {"Authorization": f"Bearer {config['token']}"} if config["token"] else {}
    await post_json(means, config["url"], document(message, config["topic"]), headers)
    return Delivered()
