"""Direct messages of Slack and Mattermost: by an incoming webhook of the person, or by a bot.

A bot opens the conversation with the person. Later messages of an incident reply in its thread,
or are sent without it if its first message is gone.
"""

from typing import Any, Final

from ..net.egress_httpx import send_request
from . import slack
from .answer_buttons import LABELS
from .channel_spec import ChannelSetting, ChannelSpec, Config, SettingFault, ValueForm
from .message import Message, body_lines, clipped, title_line
from .send_result import (
    ANSWER_BYTES_MOST,
    SEND_SECONDS,
    Delivered,
    NotDelivered,
    SendContext,
    SendFailure,
    answer_of,
    by_status,
    post_json,
    url_of,
)

SLACK_URL: Final = "https://slack.com"
# Mattermost: maximum post size of version 5.0 and later, in characters.
POST_LONGEST: Final = 16_000
# Reasons of Slack that a repetition does not change.
_FINAL: Final = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "channel_not_found", "user_not_found"}
)


def _rule(config: Config) -> list[SettingFault]:
    """Requires either the URL of a webhook, or a bot's token and a user."""
    if config.get("url"):
        both = [name for name in ("bot_token", "user_id") if config.get(name)]
        return [SettingFault(f"config.{both[0]}", "must be empty with url")] if both else []
    missing = [name for name in ("bot_token", "user_id") if not config.get(name)]
    return [SettingFault(f"config.{name}", "is required without url") for name in missing[:1]]


def _settings(product: str, token: str) -> tuple[ChannelSetting, ...]:
    return (
        ChannelSetting(
            name="url",
            help=f"An incoming webhook of {product} that posts to you; empty with a bot",
            form=ValueForm.URL,
            secret=True,
        ),
        ChannelSetting(
            name="bot_token",
            help=f"The token of a bot of {product}",
            secret=True,
            pattern=token,
            hint="must be a bot's token",
            longest=256,
        ),
        ChannelSetting(
            name="user_id",
            help=f"Your member id in {product}",
            pattern=r"[A-Za-z0-9]{1,64}",
            hint="must be letters and digits",
            longest=64,
        ),
    )


SLACK: Final = ChannelSpec(
    type="slack",
    help="A direct message of Slack.",
    settings=_settings("Slack", r"xox[a-z]-[A-Za-z0-9-]{1,240}"),
    rule=_rule,
)
MATTERMOST: Final = ChannelSpec(
    type="mattermost",
    help="A direct message of Mattermost.",
    settings=(
        *_settings("Mattermost", r"[A-Za-z0-9]{1,64}"),
        ChannelSetting(
            name="server",
            help="The URL of the server, with a bot",
            form=ValueForm.URL,
            leads=False,
        ),
    ),
    rule=lambda config: _rule(config) or _server_rule(config),
)


def _server_rule(config: Config) -> list[SettingFault]:
    if config.get("bot_token") and not config.get("server"):
        return [SettingFault("config.server", "is required with bot_token")]
    return []


async def send_slack(message: Message, config: Config, means: SendContext) -> Delivered:
    if config["url"]:
        return await slack.send(message, config, means)
    body = {**slack.document(message), "channel": config["user_id"]}
    headers = {"Authorization": f"Bearer {config['bot_token']}"}
    if message.thread:
        body["thread_ts"] = message.thread
    answer = await _slack_answer(means, body, headers)
    if message.thread and _is_refused(answer):
        # A message without its thread is better than none.
        del body["thread_ts"]
        answer = await _slack_answer(means, body, headers)
    if answer.get("ok") is not True:
        reason = str(answer.get("error", "protocol_error"))
        verdict = SendFailure.REFUSED if reason in _FINAL else SendFailure.RETRY
        raise NotDelivered(verdict, reason if reason in _FINAL else "protocol_error")
    stamp = answer.get("ts")
    return Delivered(thread=message.thread or (stamp if isinstance(stamp, str) else ""))


async def _slack_answer(
    means: SendContext, body: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    return answer_of(await post_json(means, f"{SLACK_URL}/api/chat.postMessage", body, headers))


def _is_refused(answer: dict[str, Any]) -> bool:
    """Returns whether Slack posted nothing, for a reason that can be the thread."""
    return answer.get("ok") is False and str(answer.get("error")) not in _FINAL


def mattermost_text(message: Message) -> str:
    """Returns the message as Markdown text without formatting. A zero-width space ends mentions."""
    lines = [title_line(message), *body_lines(message)]
    text = "\n".join(lines).replace("@", "@\u200b")
    tail = f"\n{message.link}" if message.link else ""
    return clipped(text, POST_LONGEST - len(tail)) + tail


async def send_mattermost(message: Message, config: Config, means: SendContext) -> Delivered:
    text = mattermost_text(message)
    attached = _attachments(message)
    if config["url"]:
        await post_json(means, config["url"], {"text": text, **attached})
        return Delivered()
    api = f"{config['server'].rstrip('/')}/api/v4"
    headers = {"Authorization": f"Bearer {config['bot_token']}"}
    bot = _id_of(await _get(means, f"{api}/users/me", headers))
    pair = [bot, config["user_id"]]
    channel = _id_of(answer_of(await post_json(means, f"{api}/channels/direct", pair, headers)))
    post: dict[str, Any] = {"channel_id": channel, "message": text}
    if attached:
        post["props"] = attached
    if message.thread:
        try:
            replied = await post_json(
                means, f"{api}/posts", {**post, "root_id": message.thread}, headers
            )
            return Delivered(thread=_id_of(answer_of(replied)) and message.thread)
        except NotDelivered as failed:
            # The first message can be deleted. A message without its thread is better than none.
            if failed.verdict is not SendFailure.REFUSED:
                raise
    made = _id_of(answer_of(await post_json(means, f"{api}/posts", post, headers)))
    return Delivered(thread=made)


def _attachments(message: Message) -> dict[str, Any]:
    """Returns the attachment with the buttons, {} without any.

    The server keeps the URLs, which contain the token, and calls them itself.
    """
    buttons = message.buttons
    if buttons is None:
        return {}
    actions = [
        {
            "id": action.value,
            "type": "button",
            "name": label,
            "integration": {"url": f"{buttons.url}/{action.value}"},
        }
        for action, label in LABELS.items()
    ]
    return {"attachments": [{"fallback": "", "actions": actions}]}


async def _get(means: SendContext, url: str, headers: dict[str, str]) -> dict[str, Any]:
    response = await send_request(
        means.reach,
        "GET",
        url_of(url),
        headers=headers,
        bytes_most=ANSWER_BYTES_MOST,
        seconds=SEND_SECONDS,
    )
    if not response.is_success:
        raise by_status(response.status_code, response.headers.get("retry-after", ""))
    return answer_of(response)


def _id_of(answer: dict[str, Any]) -> str:
    found = answer.get("id")
    if not isinstance(found, str) or not found.isalnum():
        raise NotDelivered(SendFailure.RETRY, "protocol_error")
    return found
