"""PagerDuty, by Events API v2: one incident per key, which triggers and resolves it.

A test triggers and resolves the incident in one delivery, so that none remains open.
"""

from typing import Any, Final

from .channel_spec import ChannelSetting, ChannelSpec, Config, ValueForm
from .message import (
    Message,
    MessageSeverity,
    NotificationStatus,
    body_lines,
    clipped,
    instant_text,
    title_line,
)
from .send_result import Delivered, SendContext, post_json

SUMMARY_LONGEST: Final = 1_024
_SEVERITIES: Final = {
    MessageSeverity.NONE: "info",
    MessageSeverity.MINOR: "warning",
    MessageSeverity.MAJOR: "error",
    MessageSeverity.CRITICAL: "critical",
}

SPEC: Final = ChannelSpec(
    type="pagerduty",
    help="Triggers and resolves an incident of PagerDuty.",
    settings=(
        ChannelSetting(
            name="routing_key",
            help="The integration key of Events API v2",
            required=True,
            secret=True,
            pattern=r"[A-Za-z0-9]{32}",
            hint="must be 32 letters and digits",
            longest=32,
        ),
        ChannelSetting(
            name="base_url",
            help="Another region's: https://events.eu.pagerduty.com",
            form=ValueForm.URL,
            leads=True,
            default="https://events.pagerduty.com",
        ),
    ),
)


def trigger(message: Message, routing_key: str) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "summary": clipped(title_line(message), SUMMARY_LONGEST),
        "source": "leadline",
        "severity": _SEVERITIES[message.severity],
        "custom_details": {"lines": body_lines(message)},
    }
    if message.since is not None:
        payload["timestamp"] = instant_text(message.since)
    found: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": message.key,
        "client": "Leadline",
        "payload": payload,
    }
    if message.link:
        found["client_url"] = message.link
        found["links"] = [{"href": message.link, "text": "Open in Leadline"}]
    return found


def resolve(message: Message, routing_key: str) -> dict[str, Any]:
    return {"routing_key": routing_key, "event_action": "resolve", "dedup_key": message.key}


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    url = f"{config['base_url'].rstrip('/')}/v2/enqueue"
    key = config["routing_key"]
    if message.status is not NotificationStatus.RECOVERED:
        await post_json(means, url, trigger(message, key))
    if message.status is not NotificationStatus.DOWN:
        await post_json(means, url, resolve(message, key))
    return Delivered(thread=message.key)
