"""Signed webhook: one JSON body with two signatures by the same secret.

`X-Leadline-Signature` covers the body. The Standard Webhooks headers cover id, instant and body, so
that a receiver can refuse replays. The id is the same for all attempts, and the instant differs.
Webhooks of organizations use `send_signed` with their own body.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from .channel_spec import ChannelSetting, ChannelSpec, Config, SettingFault, ValueForm
from .message import Message, body_lines, instant_text, title_line
from .send_result import Delivered, NotDelivered, SendContext, SendFailure, post

SECRET_PREFIX: Final = "whsec_"
# Key size limits of the Standard Webhooks specification.
KEY_BYTES_LEAST, KEY_BYTES_MOST = 24, 64


def key_of(secret: str) -> bytes | None:
    """Returns the signing key of a secret, or None if the secret is invalid."""
    if not secret.startswith(SECRET_PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if KEY_BYTES_LEAST <= len(key) <= KEY_BYTES_MOST else None


def secret_from(random: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(random).decode()


def secret_fault(secret: str) -> str | None:
    if key_of(secret) is not None:
        return None
    return f"must be whsec_ and the base64 of {KEY_BYTES_LEAST} to {KEY_BYTES_MOST} bytes"


def signed(body: bytes, key: bytes, uid: str, at_s: int) -> dict[str, str]:
    """Returns the headers that authenticate the sender and the instant."""
    whole = hmac.new(key, body, hashlib.sha256).hexdigest()
    stamped = hmac.new(key, f"{uid}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return {
        "X-Leadline-Signature": f"sha256={whole}",
        "webhook-id": uid,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{base64.b64encode(stamped).decode()}",
    }


async def send_signed(
    url: str,
    secret: str,
    event: str,
    uid: str,
    body: bytes,
    means: SendContext,
) -> Delivered:
    """Posts a signed body.

    Raises: `NotDelivered` invalid_secret, because a receiver could not know the sender of the body.
    """
    key = key_of(secret)
    if key is None:
        raise NotDelivered(SendFailure.REFUSED, "invalid_secret")
    await _post(url, event, body, means, signed(body, key, uid, means.now() // 1_000_000))
    return Delivered()


async def _post(
    url: str, event: str, body: bytes, means: SendContext, signature: dict[str, str]
) -> None:
    headers = {"Content-Type": "application/json", "X-Leadline-Event": event, **signature}
    await post(means, url, body, headers)


def _rule(config: Config) -> list[SettingFault]:
    fault = secret_fault(config["secret"]) if config.get("secret") else None
    return [SettingFault("config.secret", fault)] if fault else []


SPEC: Final = ChannelSpec(
    type="webhook",
    help="A POST of JSON to your URL, signed if a secret is set.",
    settings=(
        ChannelSetting(
            name="url",
            help="The URL of the request",
            form=ValueForm.URL,
            required=True,
            leads=True,
        ),
        ChannelSetting(name="secret", help="Signs each delivery: whsec_ and base64", secret=True),
    ),
    rule=_rule,
)


def document(message: Message) -> dict[str, object]:
    return {
        "event": message.event,
        "id": message.id,
        "key": message.key,
        "status": message.status.value,
        "severity": message.severity.value,
        "title": title_line(message),
        "lines": body_lines(message),
        "why": message.why,
        **({"conditions": list(message.conditions)} if message.conditions else {}),
        **({"runbook_url": message.runbook_url} if message.runbook_url else {}),
        **({"answer_url": message.answer} if message.answer else {}),
        "since": None if message.since is None else instant_text(message.since),
        "link": message.link,
    }


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    body = msgspec.json.encode(document(message))
    url, secret = config["url"], config["secret"]
    if secret:
        return await send_signed(url, secret, message.event, message.id, body, means)
    await _post(url, message.event, body, means, {})
    return Delivered()
