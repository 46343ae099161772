"""Opsgenie, by its alert API: one alert per alias, which opens and closes it.

A test opens and closes the alert in one delivery, so that no alert remains.
"""

from typing import Any, Final
from urllib.parse import quote

from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import Message, MessageSeverity, NotificationStatus, body_lines, clipped, title_line
from .send_result import Delivered, SendContext, post_json

MESSAGE_LONGEST: Final = 130
DESCRIPTION_LONGEST: Final = 15_000
_PRIORITIES: Final = {
    MessageSeverity.NONE: "P5",
    MessageSeverity.MINOR: "P3",
    MessageSeverity.MAJOR: "P2",
    MessageSeverity.CRITICAL: "P1",
}

SPEC: Final = ChannelSpec(
    type="opsgenie",
    help="Opens and closes an alert of Opsgenie.",
    settings=(
        ChannelSetting(
            name="api_key",
            help="The key of an API integration",
            required=True,
            secret=True,
            pattern=r"[A-Za-z0-9-]{8,128}",
            hint="must be 8 to 128 letters, digits and dashes",
            longest=128,
        ),
        ChannelSetting(
            name="base_url",
            help="Another region's: https://api.eu.opsgenie.com",
            form=ValueForm.URL,
            leads=True,
            default="https://api.opsgenie.com",
        ),
    ),
)


def opening(message: Message) -> dict[str, Any]:
    lines = [*body_lines(message), *([message.link] if message.link else [])]
    return {
        "message": clipped(title_line(message), MESSAGE_LONGEST),
        "alias": message.key,
        "description": clipped("\n".join(lines), DESCRIPTION_LONGEST),
        "priority": _PRIORITIES[message.severity],
        "source": "leadline",
    }


def closing(message: Message) -> dict[str, Any]:
    return {"source": "leadline", "note": title_line(message)}


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    alerts = f"{config['base_url'].rstrip('/')}/v2/alerts"
    headers = {"Authorization": f"GenieKey {config['api_key']}"}
    if message.status is not NotificationStatus.RECOVERED:
        await post_json(means, alerts, opening(message), headers)
    if message.status is not NotificationStatus.DOWN:
        alias = quote(message.key, safe="")
        url = f"{alerts}/{alias}/close?identifierType=alias"
        await post_json(means, url, closing(message), headers)
    return Delivered(thread=message.key)
